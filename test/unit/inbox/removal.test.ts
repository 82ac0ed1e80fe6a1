import { spawn } from "node:child_process";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { chmod, chown, mkdir, readdir, rename, rmdir, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { clearAside, removeDelivered } from "../../../src/inbox/removal.ts";
import { makeFolder } from "../../support/program.ts";

const MANIFEST = JSON.stringify({ version: 2, deliveryId: "d1", trackingId: "t1", files: [] });
const CONSUMER = 16_000;
const DELIVERY = { id: "d1", folder: "m/t1" };

test("a delivered folder is removed whole, and a second time there is nothing left to do", async () => {
  const { root, staging } = await prepare();
  await symlink("/etc", join(root, "m/t1/link"));
  for (const _ of [1, 2]) expect(await removeDelivered(root, staging, DELIVERY)).toBe("removed");
  expect([await readdir(join(root, "m")), await readdir(staging)]).toEqual([[], []]);
});

test("a delivered folder is removed to the end where a crash came after it was moved aside", async () => {
  const { root, staging } = await prepare();
  await rename(join(root, "m/t1"), join(staging, "d1.removed"));
  expect(await removeDelivered(root, staging, DELIVERY)).toBe("removed");
  expect(await readdir(staging)).toEqual([]);
});

test.each([
  ["is another delivery", JSON.stringify({ deliveryId: "d2" })],
  ["only quotes the id", JSON.stringify({ subject: '"deliveryId": "d1"' })],
  ["has another manifest", "null"],
  ["has a damaged manifest", "{"],
])("a delivered folder is left alone where what stands there %s", async (_why, manifest) => {
  const { root, staging } = await prepare();
  await chmod(join(root, "m/t1/transfer.json"), 0o600);
  await writeFile(join(root, "m/t1/transfer.json"), manifest);
  expect(await removeDelivered(root, staging, DELIVERY)).toBe("foreign");
  expect(existsSync(join(root, "m/t1/transfer.json"))).toBe(true);
});

test("a delivered folder is left alone where a link leads elsewhere: in its place, above it, or to its manifest", async () => {
  const { root, staging } = await prepare();
  const elsewhere = await prepare();
  const target = join(elsewhere.root, "m/t1");
  await symlink(target, join(root, "m/link"));
  await symlink(join(elsewhere.root, "m"), join(root, "n"));
  await mkdir(join(root, "m/t3"));
  await symlink(join(target, "transfer.json"), join(root, "m/t3/transfer.json"));
  for (const folder of ["m/link", "n/t1", "m/t3"]) {
    expect(await removeDelivered(root, staging, { ...DELIVERY, folder })).toBe("foreign");
  }
  expect(existsSync(join(target, "transfer.json"))).toBe(true);
});

test("a delivered folder is left alone where somebody has made a folder in it, or where it is somebody else's", {
  tags: ["system"],
}, async () => {
  const { root, staging } = await prepare();
  await mkdir(join(root, "m/t1/sub"));
  expect(await removeDelivered(root, staging, DELIVERY)).toBe("foreign");
  await rmdir(join(root, "m/t1/sub"));
  await chown(join(root, "m/t1"), CONSUMER, CONSUMER);
  expect(await removeDelivered(root, staging, DELIVERY)).toBe("foreign");
  expect(await readdir(join(root, "m/t1"))).toEqual(["transfer.json"]);
});

test("a delivered folder is put back as it was where a consumer inside it makes a folder while it is moved", {
  tags: ["system"],
}, async () => {
  const { root, staging } = await prepare();
  const folder = join(root, "m/t1");
  const work = "mkdir sub && touch sub/mine";
  expect(await removeWhileUsed(root, staging, "folder moved aside", work)).toEqual(["foreign", "0"]);
  expect(await readdir(staging)).toEqual([]);
  expect((await readdir(folder)).toSorted()).toEqual(["sub", "transfer.json"]);
  expect(existsSync(join(folder, "sub/mine"))).toBe(true);
  expect((await stat(folder)).mode & 0o777).toBe(0o770);
});

test("a delivered folder cannot be changed any more by a consumer inside it once something of it is deleted", {
  tags: ["system"],
}, async () => {
  const { root, staging } = await prepare();
  const work = "mkdir sub || mv transfer.json other || ln -s / link";
  expect(await removeWhileUsed(root, staging, "folder closed", work)).toEqual(["removed", "1"]);
  expect([await readdir(join(root, "m")), await readdir(staging)]).toEqual([[], []]);
});

test("what is left of a removed folder is cleared by name, never entered where it holds a folder, and then named", async () => {
  const { root, staging } = await prepare();
  const aside = (name: string) => join(staging, `${name}.removed`);
  const [flat, deep, link] = [aside("a"), aside("b"), aside("c")];
  await rename(join(root, "m/t1"), flat);
  await mkdir(join(deep, "sub"), { recursive: true });
  await writeFile(join(deep, "sub/mine"), "");
  await symlink(root, link);
  for (const path of [flat, link]) await clearAside(path);
  const refused = { code: "DISK_REFUSED", message: expect.stringContaining(deep) };
  await expect(clearAside(deep)).rejects.toMatchObject(refused);
  expect([await readdir(staging), existsSync(join(deep, "sub/mine"))]).toEqual([["b.removed"], true]);
  expect(existsSync(root)).toBe(true);
});

/** Removes the folder while a consumer in it runs a command at one step. Returns the result, and that of the command. */
async function removeWhileUsed(root: string, staging: string, at: string, command: string) {
  const folder = join(root, "m/t1");
  await chmod(folder, 0o770);
  await chown(folder, 0, CONSUMER);
  const consumer = await workInside(folder, command);
  onStep(at, () => consumer.act());
  return [await removeDelivered(root, staging, DELIVERY), consumer.exitCode()];
}

/** A process of another user with its working directory in the folder; `act` has it run a command there, to the end. */
async function workInside(folder: string, command: string) {
  const signals = await makeFolder();
  await chmod(signals, 0o777);
  for (let path = folder; path.startsWith("/tmp/inlet-test-"); path = join(path, ".."))
    if (path !== folder) await chmod(path, 0o755);
  const script = `touch ${signals}/in; until [ -e ${signals}/go ]; do sleep 0.01; done; (${command}); echo $? > ${signals}/new; mv ${signals}/new ${signals}/done`;
  const who = { uid: CONSUMER, gid: CONSUMER, cwd: folder, stdio: "ignore" } as const;
  const child = spawn("sh", ["-c", script], who);
  onTestFinished(() => void child.kill("SIGKILL"));
  await expect.poll(() => existsSync(join(signals, "in"))).toBe(true);
  return {
    // Within a step, which waits for nobody.
    act() {
      writeFileSync(join(signals, "go"), "");
      const until = Date.now() + 10_000;
      while (!existsSync(join(signals, "done")) && Date.now() < until) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      }
    },
    exitCode: () => readFileSync(join(signals, "done"), "utf8").trim(),
  };
}

function onStep(name: string, work: () => void): void {
  const listener = (step: unknown) => {
    if (step === name) work();
  };
  subscribe("inlet:durable-step", listener);
  onTestFinished(() => void unsubscribe("inlet:durable-step", listener));
}

async function prepare() {
  const folder = await makeFolder();
  const [root, staging] = [join(folder, "inbox"), join(folder, "staging")];
  await mkdir(join(root, "m/t1"), { recursive: true });
  await mkdir(staging);
  await writeFile(join(root, "m/t1/transfer.json"), MANIFEST);
  return { root, staging };
}
