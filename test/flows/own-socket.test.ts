/** The daemon's own socket: where it is, who may use it, and what follows where none can be made. */
import { once } from "node:events";
import { chmod, chown, mkdir, readdir, rename, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { basename, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { socketsOf } from "../../src/config/folders.ts";
import type { Status } from "../../src/model/status.ts";
import { mailboxKeys } from "../support/installation.ts";
import { openSite } from "../support/operator.ts";
import { makeFolder, runCommand, runProgram, startProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const T1 = { transfers: [transferPlan({ trackingId: "t1" })] };
const [DAEMON, CONSUMER] = [1_000, 1_001];

test("is for this user and root alone, in a folder of its own, replaces one that a crash left, and goes with the daemon", async () => {
  const site = await openSite();
  const env = { RUNTIME_DIRECTORY: join(await makeFolder(), "run") };
  const [path = ""] = socketsOf(site.inbox, env);
  await mkdir(dirname(path), { mode: 0o700 });
  // What a killed process leaves: a socket that nobody answers.
  const listener =
    "require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";
  await runCommand(process.execPath, ["-e", listener, path]);
  const daemon = await site.run(env);
  await expect
    .poll(async () => (await site.inlet("status", { env })).stdout)
    .toContain(`process ${process.pid}, `);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await daemon.stop();
  expect(await readdir(dirname(path))).toEqual([]);
});

test.each([
  ["others may write to it", 0o777, "others may write to"],
  ["it is a file", undefined, "ENOTDIR"],
])("where no folder is safe, that is a problem, and the daemon runs on: %s", async (_, mode, why) => {
  const listen = `127.0.0.1:${await freePort()}`;
  const site = await openSite(T1, { http: { listen } });
  const folder = join(await makeFolder(), "run");
  if (mode === undefined) await writeFile(folder, "");
  else {
    await mkdir(folder);
    await chmod(folder, mode);
  }
  const env = { RUNTIME_DIRECTORY: folder };
  await site.run(env);
  await expect.poll(site.deliveries).toEqual(["t1"]);
  const { troubles } = (await (await fetch(`http://${listen}/api/status`)).json()) as Status;
  expect(troubles).toEqual([
    expect.objectContaining({ what: "socket", code: "SOCKET_UNSAFE", message: expect.stringContaining(why) }),
  ]);
  const shown = await site.inlet("status", { env });
  expect(shown).toMatchObject({
    exitCode: 4,
    stdout: expect.stringContaining("A daemon of this inbox runs, but none"),
  });
  expect((await site.inlet("doctor", { env })).stdout).toContain(
    "a daemon of this inbox runs, but none answers",
  );
});

test("a program of this user that holds the place keeps the socket away, and is not taken for the daemon", async () => {
  const site = await openSite();
  const env = { RUNTIME_DIRECTORY: await makeFolder() };
  const [path = ""] = socketsOf(site.inbox, env);
  const other = createServer((socket) => socket.end()).listen(path);
  const daemon = await site.run(env);
  await expect.poll(daemon.logged).toMatch(/it has no socket, and retries/);
  expect(daemon.logged()).toContain(`${basename(path)} (EEXIST)`);
  expect((await site.inlet("status", { env })).stdout).toContain("A daemon of this inbox runs, but none");
  other.close();
});

describe("with several users", { tags: ["system"] }, () => {
  test("root finds the socket of another user's daemon, also in an environment without its folder, and a stranger gets nothing", async () => {
    const run = join(await makeFolder(), "run");
    await chmod(dirname(run), 0o1777);
    const keys = { http: { listen: false }, mailboxes: [mailboxKeys(MAILBOX)] };
    const site = await openSite(T1, keys);
    await chmod(site.folder, 0o1777);
    await chmod(site.config, 0o644);
    const env = { RUNTIME_DIRECTORY: run, HOME: site.folder };
    const daemon = startProgram(["run", "--config", site.config], { user: DAEMON, env });
    daemon.stdout?.resume();
    const status = async (options: object) => runProgram(["status", "--config", site.config], options);
    await expect.poll(async () => (await status({})).stdout).toContain(`process ${daemon.pid}, `);
    const stranger = await status({ user: 65_534, env });
    expect(stranger).toMatchObject({ exitCode: 5, stderr: expect.stringContaining("belongs to") });
  });
});

describe("while the daemon is stopped", { tags: ["system"] }, () => {
  test("a consumer that owns the inbox, and runs a daemon of its own with another work folder there, is not taken for it", async () => {
    const site = await openSite({}, { http: { listen: false }, state: undefined });
    await chmod(site.folder, 0o1777);
    const root = { STATE_DIRECTORY: site.state };
    const homeOf = async (user: number) => {
      const home = join(await makeFolder(), "home");
      await mkdir(home, { mode: 0o700 });
      await chmod(dirname(home), 0o755);
      await chown(home, user, user);
      return { HOME: home, RUNTIME_DIRECTORY: home, STATE_DIRECTORY: join(home, "state") };
    };
    const daemonsHome = { ...(await homeOf(DAEMON)), ...root };
    await mkdir(site.inbox);
    for (const path of [site.inbox, site.config]) await chown(path, DAEMON, DAEMON);
    const started = startProgram(["run", "--config", site.config], { user: DAEMON, env: daemonsHome });
    started.stdout?.resume();
    const status = async (...options: string[]) =>
      (await runProgram(["status", "--config", site.config, ...options], { env: root })).stdout;
    await expect.poll(() => status()).toContain(`process ${started.pid}, `);
    started.kill("SIGTERM");
    await once(started, "exit");
    await chown(site.inbox, CONSUMER, CONSUMER);
    await rename(join(site.inbox, ".inlet"), join(site.inbox, ".gone"));
    const env = await homeOf(CONSUMER);
    const config = join(env.HOME, "inlet.yaml");
    await writeFile(config, site.text({ state: undefined }), { mode: 0o600 });
    await chown(config, CONSUMER, CONSUMER);
    const taker = startProgram(["run", "--config", config], { user: CONSUMER, env });
    taker.stdout?.resume();
    const asked = () => runProgram(["status", "--config", config], { user: CONSUMER, env });
    await expect.poll(async () => (await asked()).stdout).toContain(`process ${taker.pid}, `);
    expect(await status()).toContain(`belongs to user ${CONSUMER}`);
    // Passwords would go to its state folder.
    const doctor = await runProgram(["doctor", "--config", site.config], { env: root });
    expect(doctor.stdout).not.toContain(env.STATE_DIRECTORY);
  });
});

describe("a console token of fewer than 16 characters is refused at the start", () => {
  test.each([
    ["text", () => "short"],
    ["a file", (file: string) => ({ file })],
    ["a variable", () => ({ env: "SHORT" })],
    ["a command", (file: string) => ({ command: ["cat", file] })],
  ])("from %s", async (_, source) => {
    const file = join(await makeFolder(), "token");
    await writeFile(file, "fifteen-letters", { mode: 0o600 });
    const http = { listen: "127.0.0.1:0", actions: true, token: source(file) };
    const { config } = await openSite({}, { http });
    const { exitCode, stdout } = await runProgram(["run", "--config", config], {
      env: { SHORT: "fifteen-letters" },
    });
    expect([exitCode, stdout]).toEqual([2, expect.stringContaining("too short: a token needs at least 16")]);
  });
});
