// @module-tag system
/** The hand-off command of docs/recipes.md that uploads with rclone, against rclone's own servers on this machine. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, statSync } from "node:fs";
import { chmod, cp, mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { installProgram } from "../support/debian.ts";
import { makeHandoff } from "../support/handoff.ts";
import { makeFolder, runCommand, startCommand } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { ROOT } from "../support/root.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";
import { readTree } from "../support/tree.ts";

const SCRIPT = join(ROOT, "examples/consumers/upload-transfer");
const OTHER = "archive@example.com";
const ID = "0123456789abcdef0123456789abcdef";
const CALLS = ["lsf", "copy", "copyto", "moveto"] as const;

/** Kills the process group before or after the wanted call of rclone. */
const SHIM = `#!/bin/sh
[ "$KILL" != "before $2" ] || kill -9 0
PATH=$REST rclone "$@"
code=$?
[ "$KILL" != "after $2" ] || kill -9 0
exit "$code"
`;

beforeAll(() => installProgram("rclone", "rclone"));

describe.each(["sftp", "webdav"] as const)("upload-transfer to %s", (kind) => {
  test("uploads each delivery once, after failures too", async () => {
    const server = await prepareServer(kind);
    const transfers = [transferPlan({ trackingId: "t1", to: [MAILBOX, OTHER], message: "Psst" })];
    const simulator = await openTestSimulator({ transfers });
    const handoff = makeHandoff({ command: [SCRIPT, server.config, "there:in/box"] });
    const mailboxes = [MAILBOX, OTHER].map((email) => mailboxSettings(simulator, { name: email, email }));
    const settings = await daemonSettings(mailboxes, { handoff });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.handoffs[0]).toContain("t1: command failed");
    await server.start();
    const done = () => daemon.handoffs.filter((line) => line === "t1: command done");
    await expect.poll(done).toHaveLength(2);

    const uploaded = await readTree(join(server.root, "in/box"));
    const folders = [MAILBOX, OTHER].map((mailbox) =>
      join(settings.inbox, mailbox, "anna@supplier.example/t1"),
    );
    expect(Object.keys(uploaded)).toHaveLength(2 * 5);
    for (const folder of folders) {
      const files = await readTree(folder);
      const { deliveryId } = JSON.parse(files["transfer.json"] ?? "");
      for (const [name, text] of Object.entries(files)) expect(uploaded[`${deliveryId}/${name}`]).toBe(text);
    }
  });
});

test("upload-transfer is killed at every step, and its repetition completes the same folder", async () => {
  const { server, folder, upload } = await prepareUpload();
  const target = join(server.root, "box", ID);
  const whole = await readTree(folder);
  for (const moment of CALLS.flatMap((call) => [`before ${call}`, `after ${call}`])) {
    await rm(join(server.root, "box"), { recursive: true, force: true });
    expect((await upload(moment)).exitCode, moment).toBe(null);
    // A reader takes only a complete folder.
    if (existsSync(join(target, "transfer.json"))) expect(await readTree(target)).toEqual(whole);
    expect(await upload()).toMatchObject({ exitCode: 0, stderr: "" });
    expect(await readTree(join(server.root, "box")), moment).toEqual(prefixed(ID, whole));
  }
});

test("upload-transfer replaces what a killed upload has left, and leaves a complete folder alone", async () => {
  const { server, folder, upload } = await prepareUpload();
  const target = join(server.root, "box", ID);
  await mkdir(target, { recursive: true });
  await cp(join(folder, "a.txt"), join(target, "a.txt"));
  await truncate(join(target, "a.txt"), 2);
  // Of the right size, with a hole.
  await writeFile(join(target, "b.txt"), Buffer.alloc(statSync(join(folder, "b.txt")).size));
  await writeFile(join(target, "transfer.json.part"), "{");
  expect(await upload()).toMatchObject({ exitCode: 0, stderr: "" });
  expect(await readTree(target)).toEqual(await readTree(folder));

  await writeFile(join(target, "a.txt"), "the reader's own");
  await rm(folder, { recursive: true });
  expect(await upload()).toMatchObject({ exitCode: 0, stderr: "" });
  expect((await readTree(target))["a.txt"]).toBe("the reader's own");
  // Without a complete copy, a missing folder is a failure.
  await rm(join(target, "transfer.json"));
  expect((await upload()).exitCode).not.toBe(0);
  expect(existsSync(join(target, "transfer.json"))).toBe(false);
});

/** A server that has not been started yet. */
async function prepareServer(kind: "sftp" | "webdav") {
  const folder = await makeFolder();
  const port = await freePort();
  const root = join(folder, "served");
  const config = join(folder, "rclone.conf");
  await mkdir(root);
  const { stdout } = await runCommand("rclone", ["obscure", "secret"]);
  const remote = {
    sftp: `host = 127.0.0.1\nport = ${port}`,
    webdav: `url = http://127.0.0.1:${port}\nvendor = other`,
  };
  const text = `[there]\ntype = ${kind}\n${remote[kind]}\nuser = inlet\npass = ${stdout.trim()}\n`;
  await writeFile(config, text, { mode: 0o600 });
  const start = async () => {
    const options = [
      "--addr",
      `127.0.0.1:${port}`,
      "--user",
      "inlet",
      "--pass",
      "secret",
      "--dir-cache-time",
      "0s",
    ];
    const env = { XDG_CACHE_HOME: folder, RCLONE_CONFIG: config };
    startCommand("rclone", ["serve", kind, ...options, root], { env });
    const isUp = () => runCommand("rclone", ["lsf", "there:"], { env }).then(({ exitCode }) => exitCode);
    await expect.poll(isUp).toBe(0);
  };
  return { root, config, start };
}

/** A folder like a delivered one, and the command for it. */
async function prepareUpload() {
  const server = await prepareServer("sftp");
  await server.start();
  const own = await makeFolder();
  const [folder, bin] = [join(own, "t1"), join(own, "bin")];
  for (const made of [folder, bin]) await mkdir(made);
  const files = { "a.txt": "Hello", "b.txt": "x".repeat(1_000), "transfer.json": "{}\n", SHA256SUMS: "" };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  await writeFile(join(bin, "rclone"), SHIM);
  await chmod(join(bin, "rclone"), 0o755);
  const rest = process.env["PATH"] ?? "";
  const upload = async (kill = "") => {
    const env = { INLET_ID: ID, INLET_FOLDER: folder, KILL: kill, REST: rest, PATH: `${bin}:${rest}` };
    return finished(startCommand("setsid", [SCRIPT, server.config, "there:box"], { env }));
  };
  return { server, folder, upload };
}

async function finished(child: ChildProcess) {
  let stderr = "";
  child.stderr?.on("data", (chunk) => (stderr += chunk));
  const [exitCode] = await once(child, "close");
  return { exitCode: exitCode as number | null, stderr };
}

function prefixed(folder: string, tree: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(tree).map(([name, text]) => [`${folder}/${name}`, text]));
}
