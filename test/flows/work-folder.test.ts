/** I2 once, I5 no escape: changes to the work folder by other users who may write its parent. */
import { chmod, chown, cp, mkdir, readdir, rename, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { runDaemon } from "../../src/daemon.ts";
import { readTree, runOnce } from "../support/daemon.ts";
import { install } from "../support/installation.ts";
import { openMailbox } from "../support/one-mailbox.ts";
import { LAUNCHER, makeFolder, runCommand, runProgram } from "../support/program.ts";
import { SIGNAL } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const [DAEMON, CONSUMER] = [15_000, 16_000];

/** Puts something else where the work folder was. */
type Exchange = (work: string, away: string, state: string) => Promise<void>;

describe("a work folder made by another user", () => {
  const holdLink: Exchange = async (work, _away, state) => {
    await mkdir(work, { mode: 0o700 });
    await symlink(state, join(work, "staging"));
  };
  const beOthers: Exchange = async (work) => {
    await mkdir(work, { mode: 0o777 });
    await chown(work, CONSUMER, CONSUMER);
  };
  const holdOthers: Exchange = async (work) => {
    await mkdir(join(work, "staging"), { recursive: true, mode: 0o700 });
    await chown(join(work, "staging"), CONSUMER, CONSUMER);
  };
  const LINKS: [string, Exchange, string][] = [
    ["is a link", (work, away) => symlink(away, work), ""],
    ["holds a link", holdLink, "staging"],
  ];
  const OTHERS: [string, Exchange, string][] = [
    ["is another user's", beOthers, ""],
    ["holds another user's folder", holdOthers, "staging"],
  ];
  const REFUSED = "and that %s is refused by name, and nothing is changed";
  test.each(LINKS)(REFUSED, (_what, exchange, named) => expectRefusal(exchange, named));
  test.each(OTHERS)(REFUSED, { tags: ["system"] }, (_what, exchange, named) =>
    expectRefusal(exchange, named),
  );

  async function expectRefusal(exchange: Exchange, named: string): Promise<void> {
    const { config, inbox, state } = await install();
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
    const work = join(inbox, ".inlet");
    const away = join(inbox, ".gone");
    await rename(work, away);
    await exchange(work, away, state);
    const before = await readTree(state);
    const { exitCode, stderr } = await runProgram(["once", "--config", config]);
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining(join(work, named))]);
    expect(await readTree(state)).toEqual(before);
    expect(await readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
    const doctor = await runProgram(["doctor", "--config", config]);
    expect([doctor.exitCode, doctor.stdout]).toEqual([5, expect.stringContaining(join(work, named))]);
  }

  test("is also refused by a daemon that is not root", { tags: ["system"] }, async () => {
    const { config, folder, inbox } = await install();
    await chmod(folder, 0o755);
    await chmod(config, 0o644);
    await mkdir(join(inbox, ".inlet"), { recursive: true, mode: 0o777 });
    await chmod(join(inbox, ".inlet"), 0o777);
    await chown(join(inbox, ".inlet"), CONSUMER, CONSUMER);
    await chown(inbox, DAEMON, DAEMON);
    await chown(folder, DAEMON, DAEMON);
    const who = ["--reuid", String(DAEMON), "--regid", String(DAEMON), "--clear-groups"];
    const inlet = [process.execPath, LAUNCHER, "once"];
    const run = () => runCommand("setpriv", [...who, ...inlet, "--config", config]);
    const { exitCode, stderr } = await run();
    expect([exitCode, stderr]).toEqual([5, expect.stringContaining(`belongs to user ${CONSUMER}`)]);
    expect(await readdir(join(inbox, ".inlet"))).toEqual([]);
    await rm(join(inbox, ".inlet"), { recursive: true });
    expect((await run()).exitCode).toBe(0);
  });
});

describe("a missing work folder", () => {
  test("is not created again, so that nothing is delivered twice, until an operator decides", async () => {
    const { config, inbox, state } = await install();
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
    const [work, away] = [join(inbox, ".inlet"), join(state, "away")];
    await rename(work, away);
    const { exitCode, stderr } = await runProgram(["once", "--config", config]);
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining(`${work} is missing`)]);
    expect(await readdir(inbox)).toEqual([MAILBOX]);
    expect((await runProgram(["doctor", "--config", config])).stdout).toContain(`${work} is missing`);
    // An operator starts a new one.
    await mkdir(work, { mode: 0o700 });
    const other = await runProgram(["once", "--config", config]);
    expect([other.exitCode, other.stderr]).toEqual([3, expect.stringContaining(`${work} is not the one`)]);
    await rm(work, { recursive: true });
    // A copy is accepted too.
    await cp(away, work, { recursive: true });
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
    expect(await readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
    await rm(work, { recursive: true });
    expect((await runProgram(["anew", "--yes", "--config", config])).exitCode).toBe(0);
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
    expect(await readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1", "t1-2"]);
  });

  test("is noticed also if the whole inbox is missing, for example because its disk is not mounted", async () => {
    const { settings } = await openMailbox();
    await runOnce(settings);
    const away = join(await makeFolder(), "away");
    await rename(settings.inbox, away);
    const options = { mode: "once", stop: SIGNAL, graceMs: 0, onEvent: () => {} } as const;
    await expect(runDaemon(settings, options)).rejects.toMatchObject({ code: "WORK_LOST" });
    await expect(stat(settings.inbox)).rejects.toThrow("ENOENT");
    await rename(away, settings.inbox);
    expect((await runOnce(settings)).changes).toEqual([]);
  });

  test("may be moved as a whole, and the daemon continues", async () => {
    const { settings } = await openMailbox();
    await runOnce(settings);
    const work = join(await makeFolder(), "work");
    await rename(settings.work, work);
    expect((await runOnce({ ...settings, work })).changes).toEqual([]);
  });
});
