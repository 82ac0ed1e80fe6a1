/**
 * A user without rights learns which file or folder refuses, and which group or sudo helps. Nothing is said about the
 * configuration, which may be perfectly right.
 *
 * @module-tag system
 */
import { chmod, chown, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nameIn } from "../../src/base/process.ts";
import { type Installation, install } from "../support/installation.ts";
import { makeFolder, runProgram, startProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";

const STRANGER = 65_534;
/** A group that every system has, and the stranger is not in. */
const GROUP = 1;
const READING = ["status", "list", "show t1", "history", "route t1", "doctor"];
const OWNER_ONLY = "Run the command with sudo, or as the owner that the message names.";

test.each([
  ["the file", 0o640, 0o755, "inlet.yaml"],
  ["its folder", 0o644, 0o750, ""],
])("who may not read the configuration: %s", async (_, fileMode, folderMode, refusing) => {
  const { config, folder } = await running({ http: { listen: `127.0.0.1:${await freePort()}` } });
  for (const path of [config, folder]) await chown(path, 0, GROUP);
  await chmod(config, fileMode);
  await chmod(folder, folderMode);
  const advice = `If you operate Inlet, ask an administrator to add this user to the group ${await groupName()}, or run the command with sudo. Consumers need no access.`;
  for (const command of [...READING, "config check", "config show", "once --dry-run", "retry t1"]) {
    await expectRefusal({ command, config, refusing: join(folder, refusing), advice });
  }
  const health = await inlet("status --health", config);
  expect([health.exitCode, health.stderr]).toEqual([1, expect.stringContaining("runs as nobody")]);
});

test("who may read neither the work folder nor a private key", async () => {
  const made = await install();
  const { config, folder, inbox, text } = made;
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  for (const file of [cert, key]) await writeFile(file, "-----BEGIN X-----\n", { mode: 0o600 });
  const { service } = JSON.parse(text({}));
  await runProgram(["once", "--config", config]);
  await made.rewrite({ service: { ...service, cert, key } });
  await letEnter(made);
  for (const command of ["status", "list", "show t1", "history", "route t1"]) {
    await expectRefusal({ command, config, refusing: join(inbox, ".inlet"), advice: OWNER_ONLY });
  }
});

test("who may read everything except a secret", async () => {
  const made = await install();
  const { config, folder, text } = made;
  const file = join(folder, "client-id");
  await writeFile(file, "C".repeat(64), { mode: 0o600 });
  const { service } = JSON.parse(text({}));
  await made.rewrite({ service: { ...service, clientId: { file } } });
  await letEnter(made);
  for (const command of ["config check", "doctor", "once", "api status"]) {
    await expectRefusal({ command, config, refusing: file, advice: OWNER_ONLY });
  }
  expect((await inlet("config check --no-secrets", config)).exitCode).toBe(0);
  // A real mistake is still shown.
  await made.rewrite({ service: { ...service, clientId: { file } }, inbax: "/srv" });
  await letEnter(made);
  const wrong = await inlet("config check", config);
  expect([wrong.exitCode, wrong.stdout]).toEqual([2, expect.stringContaining("inbax")]);
});

test.each([
  ["the socket", 0o755, "console.sock"],
  ["its folder", 0o750, ""],
])("who may not use %s: the command does not say that no daemon answers", async (_, mode, refusing) => {
  const sockets = join(await makeFolder(), "sockets");
  await mkdir(sockets);
  await chmod(join(sockets, ".."), 0o755);
  const path = join(sockets, "console.sock");
  const made = await running({ http: { listen: `unix:${path}` } });
  await letEnter(made);
  for (const each of [sockets, path]) await chown(each, 0, GROUP);
  await chmod(path, 0o660);
  await chmod(sockets, mode);
  const advice = `to the group ${await groupName()}, or run the command with sudo.`;
  for (const command of ["status", "list", "show t1", "history"]) {
    await expectRefusal({ command, config: made.config, refusing: join(sockets, refusing), advice });
  }
});

interface Refusal {
  readonly command: string;
  readonly config: string;
  readonly refusing: string;
  readonly advice: string;
}

async function expectRefusal({ command, config, refusing, advice }: Refusal): Promise<void> {
  const { exitCode, stdout, stderr } = await inlet(command, config);
  // The doctor prints what it finds.
  const text = `${stdout}${stderr}`;
  expect({ command, exitCode, text }).toEqual({
    command,
    exitCode: 5,
    text: expect.stringContaining(advice),
  });
  expect(text).toContain(`${refusing.replace(/\/$/, "")} belongs to root and the group `);
  expect(text).toContain("the command runs as nobody");
  expect(text).not.toMatch(/not valid|Correct what|No daemon answers|damaged/);
}

function inlet(command: string, config: string) {
  return runProgram([...command.split(" "), "--config", config], { user: STRANGER });
}

/** A daemon that has delivered its transfer. */
async function running(keys: Record<string, unknown>): Promise<Installation> {
  const made = await install(undefined, keys);
  const daemon = startProgram(["run", "--config", made.config]);
  for await (const line of daemon.stdout ?? []) if (String(line).includes('"delivered"')) break;
  daemon.stdout?.resume();
  return made;
}

/** All users may reach the folders, and read the configuration. */
async function letEnter({ folder, config, inbox }: Installation): Promise<void> {
  await chmod(folder, 0o755);
  await chmod(config, 0o644);
  await chmod(inbox, 0o755).catch(() => {});
}

function groupName(): Promise<string> {
  return nameIn("/etc/group", GROUP);
}
