// @module-tag system
/** The hand-off command of docs/recipes.md that uploads with rclone, against rclone's own servers, and Swift's S3 interface. */
import { once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { beforeAll, describe, expect, test } from "vitest";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { installModule, installProgram } from "../support/debian.ts";
import { makeHandoff } from "../support/handoff.ts";
import { makeFolder, runCommand, startCommand } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { ROOT } from "../support/root.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";
import { prefixed, readTree } from "../support/tree.ts";

const SCRIPT = join(ROOT, "examples/consumers/upload-transfer");
const OTHER = "archive@example.com";
const ID = "0123456789abcdef0123456789abcdef";
const CALLS = ["lsf", "copy", "copyto", "moveto"] as const;

/** Kills the process group after the wanted call of rclone. */
const SHIM = `#!/bin/sh
PATH=$REST rclone "$@"
code=$?
[ "$KILL" != "$2" ] || kill -9 0
exit "$code"
`;

type Kind = "sftp" | "webdav" | "s3";

beforeAll(async () => {
  await installProgram("rclone", "rclone");
  // For Amazon's servers: rclone refuses to start with it.
  delete process.env["AWS_CA_BUNDLE"];
});

describe.each<Kind>(["sftp", "webdav", "s3"])("upload-transfer to %s", (kind) => {
  test("uploads each delivery once, after failures too", async () => {
    const server = await startServer(kind, "wrong");
    const transfers = [transferPlan({ trackingId: "t1", to: [MAILBOX, OTHER], message: "Psst" })];
    const simulator = await openTestSimulator({ transfers });
    const handoff = makeHandoff({ command: [SCRIPT, server.config, "there:inbox/box"] });
    const mailboxes = [MAILBOX, OTHER].map((email) => mailboxSettings(simulator, { name: email, email }));
    const settings = await daemonSettings(mailboxes, { handoff });
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.handoffs[0]).toContain("t1: command failed");
    await server.configure("secret");
    const done = () => daemon.handoffs.filter((line) => line === "t1: command done");
    await expect.poll(done).toHaveLength(2);

    const uploaded = await server.read("inbox/box");
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

describe.each<Kind>(["sftp", "s3"])("upload-transfer to %s", (kind) => {
  // Swift makes rclone print warnings about its answers.
  const success = { exitCode: 0, ...(kind === "s3" ? {} : { stderr: "" }) };

  test("is killed at every step, and its repetition completes the same folder", async () => {
    const { server, folder, upload } = await prepareUpload(kind);
    const whole = prefixed(ID, await readTree(folder));
    for (const call of CALLS) {
      await server.rclone("purge", "there:inbox/box");
      expect((await upload(call)).exitCode, call).toBe(null);
      // A reader takes only a complete folder.
      const left = await server.read("inbox/box");
      if (`${ID}/transfer.json` in left) expect(left).toMatchObject(whole);
      expect(await upload()).toMatchObject(success);
      expect(await server.read("inbox/box"), call).toEqual(whole);
    }
  });

  test("replaces what a killed upload has left, and leaves a complete folder alone", async () => {
    const { server, folder, upload } = await prepareUpload(kind);
    const target = `inbox/box/${ID}`;
    // The second one has the right size and a hole.
    const left = { "a.txt": "He", "b.txt": "\0".repeat(1_000), "transfer.json.part": "{" };
    for (const [name, text] of Object.entries(left)) await server.write(`${target}/${name}`, text);
    expect(await upload()).toMatchObject(success);
    expect(await server.read(target)).toEqual(await readTree(folder));

    await server.write(`${target}/a.txt`, "the reader's own");
    await rm(folder, { recursive: true });
    expect(await upload()).toMatchObject(success);
    expect((await server.read(target))["a.txt"]).toBe("the reader's own");
    // Without a complete copy, a missing folder is a failure.
    await server.rclone("deletefile", `there:${target}/transfer.json`);
    expect((await upload()).exitCode).not.toBe(0);
    expect(await server.read(target)).not.toHaveProperty(["transfer.json"]);
  });
});

/** Its remote is `there`, with the folder or bucket `inbox`. The configuration has the given secret. */
async function startServer(kind: Kind, secret: string) {
  const folder = await makeFolder();
  const port = await freePort();
  const [root, config] = [join(folder, "served"), join(folder, "rclone.conf")];
  await mkdir(root);
  const env = { XDG_CACHE_HOME: folder, RCLONE_CONFIG: config };
  const rclone = (...args: readonly string[]) => runCommand("rclone", args, { env });
  const configure = async (secret: string) => {
    const { stdout } = await rclone("obscure", secret);
    const login = `user = inlet\npass = ${stdout.trim()}`;
    const remotes = {
      sftp: `host = 127.0.0.1\nport = ${port}\n${login}`,
      webdav: `url = http://127.0.0.1:${port}\nvendor = other\n${login}`,
      s3: `provider = Other\nendpoint = http://127.0.0.1:${port}\naccess_key_id = test:inlet\nsecret_access_key = ${secret}`,
    };
    await writeFile(config, `[there]\ntype = ${kind}\n${remotes[kind]}\n`, { mode: 0o600 });
  };
  await configure("secret");
  if (kind === "s3") await startS3(root, port);
  else {
    const login = ["--user", "inlet", "--pass", "secret", "--dir-cache-time", "0s"];
    startCommand("rclone", ["serve", kind, "--addr", `127.0.0.1:${port}`, ...login, root], { env });
  }
  const isUp = () => rclone("mkdir", "there:inbox").then(({ exitCode }) => exitCode);
  await expect.poll(isUp).toBe(0);
  await configure(secret);
  return {
    config,
    configure,
    rclone,
    async read(path: string): Promise<Record<string, string>> {
      const copy = await makeFolder();
      await rclone("copy", `there:${path}`, copy);
      return readTree(copy);
    },
    async write(path: string, text: string): Promise<void> {
      await writeFile(join(folder, "written"), text);
      await rclone("copyto", join(folder, "written"), `there:${path}`);
    },
  };
}

async function startS3(folder: string, port: number): Promise<void> {
  const python = await installModule("swift");
  const child = startCommand(python, [join(ROOT, "test/support/s3-server.py"), folder, String(port)]);
  let stderr = "";
  child.stderr?.on("data", (chunk) => (stderr += chunk));
  const [ready] = await Promise.race([once(child.stdout as Readable, "data"), once(child, "close")]);
  if (String(ready) !== "ready\n") throw new Error(`Swift did not start: ${stderr}`);
}

/** A folder like a delivered one, and the command for it. */
async function prepareUpload(kind: Kind) {
  const server = await startServer(kind, "secret");
  const own = await makeFolder();
  const [folder, bin] = [join(own, "t1"), join(own, "bin")];
  for (const made of [folder, bin]) await mkdir(made);
  const files = { "a.txt": "Hello", "b.txt": "x".repeat(1_000), "transfer.json": "{}\n", SHA256SUMS: "" };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  await writeFile(join(bin, "rclone"), SHIM, { mode: 0o755 });
  const rest = process.env["PATH"] ?? "";
  const upload = async (kill = "") => {
    const env = { INLET_ID: ID, INLET_FOLDER: folder, KILL: kill, REST: rest, PATH: `${bin}:${rest}` };
    return runCommand("setsid", [SCRIPT, server.config, "there:inbox/box"], { env });
  };
  return { server, folder, upload };
}
