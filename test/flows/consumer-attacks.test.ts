// @module-tag system
/**
 * I5 no escape, I2 once: a consumer that replaces the sender's folder with a link, again and again. The program runs as a
 * user of its own, and the consumer as another one, in the group that may move folders.
 */
import { lstatSync, readdirSync, renameSync } from "node:fs";
import { chmod, chown, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { installProgram } from "../support/debian.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { type Finished, LAUNCHER, makeFolder, runCommand, startCommand } from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const [DAEMON, CONSUMER, GROUP] = [15_000, 16_000, 17_001];
const SENDER = "anna@supplier.example";
const TRANSFERS = Array.from({ length: 40 }, (_, at) => `t${at}`);
/** How often the program runs while the consumer attacks. */
const RUNS = 2;

interface Kind {
  readonly handoff: Readonly<Record<string, unknown>>;
  readonly layout: string;
  /** The names of one delivery in the sender's folder. */
  names(trackingId: string): string[];
}

const FOLDER: Kind = { handoff: {}, layout: "{mailbox}/{sender}/{trackingId}", names: (id) => [id] };
const BESIDE: Kind = {
  ...FOLDER,
  handoff: { manifest: "beside", done: true },
  names: (id) => [id, `${id}.SHA256SUMS`, `${id}.done`, `${id}.transfer.json`],
};
const FILES: Kind = {
  handoff: { deliver: "files", manifest: "beside", done: true },
  layout: "{mailbox}/{sender}",
  names: (id) => ["SHA256SUMS", "a.txt", "a.txt.done", "transfer.json"].map((name) => `${id}_${name}`),
};
const KINDS = [
  ["folders", FOLDER],
  ["folders with files beside them", BESIDE],
  ["single files", FILES],
] as const;

describe("while a consumer exchanges the sender's folder for a link", () => {
  test.each(KINDS)("%s are delivered once, and nothing is delivered elsewhere", async (_, kind) => {
    const site = await setUp(kind);
    await site.underAttack(() => site.once());
    expect(readdirSync(site.outside)).toEqual([]);
    await site.finish();
    expect(site.delivered()).toEqual(TRANSFERS.flatMap(kind.names).toSorted());
    expect([readdirSync(site.outside), site.staged()]).toEqual([[], []]);
  });
});

/** The documented set-up: `installing.md` and `consuming.md` have consumers in a group that may move folders. */
async function setUp({ handoff, layout }: Kind) {
  const mailboxes = [mailboxKeys(MAILBOX)];
  const access = { group: GROUP, folderMode: "0770", fileMode: "0640" };
  const keys = { defaults: { layout }, handoff: { ...access, ...handoff }, mailboxes };
  const transfers = TRANSFERS.map((trackingId) =>
    transferPlan({ trackingId, files: [{ name: "a.txt", text: trackingId }] }),
  );
  const { folder, config, inbox } = await install({ transfers }, keys);
  const sender = join(inbox, MAILBOX, SENDER);
  const outside = join(folder, "outside");
  for (const path of [inbox, outside]) await mkdir(path, { mode: 0o700 });
  await chmod(folder, 0o755);
  for (const path of [folder, config, outside]) await chown(path, DAEMON, DAEMON);
  await mkdir(sender, { recursive: true });
  for (const path of [inbox, join(sender, ".."), sender]) {
    await chown(path, DAEMON, GROUP);
    await chmod(path, path === inbox ? 0o750 : 0o770);
  }
  const setpriv = await installProgram("setpriv", "util-linux");
  const open = async (): Promise<{ readonly trackingId: string; readonly state: string }[]> => {
    const { stdout } = await inlet("list", "--json");
    const records = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    // A folder that was behind the link counts as picked up.
    return records.filter(({ state }) => !["delivered", "picked-up"].includes(state));
  };
  const inlet = async (command: string, ...args: string[]): Promise<Finished> => {
    const who = ["--reuid", String(DAEMON), "--regid", String(DAEMON), "--groups", String(GROUP)];
    return runCommand(setpriv, [...who, process.execPath, LAUNCHER, command, "--config", config, ...args]);
  };
  const once = async () => {
    const { exitCode, stderr } = await inlet("once");
    expect([0, 3], stderr).toContain(exitCode);
  };
  const attack = async () => {
    const library = await compileSwap();
    await chmod(join(library, ".."), 0o755);
    const who = ["--reuid", String(CONSUMER), "--regid", String(GROUP), "--clear-groups"];
    const link = join(inbox, MAILBOX, "link");
    const made = await runCommand(setpriv, [...who, "ln", "-s", outside, link]);
    expect(made.exitCode, made.stderr).toBe(0);
    const refused = await runCommand(setpriv, [...who, "ls", outside]);
    expect(refused.exitCode).toBe(2);
    const swap = [`LD_PRELOAD=${library}`, `SWAP_ONE=${sender}`, `SWAP_OTHER=${link}`];
    const child = startCommand(setpriv, [...who, "env", ...swap, "true"]);
    onTestFinished(() => void child.kill("SIGKILL"));
    await expect.poll(() => lstatSync(sender).isSymbolicLink()).toBe(true);
    return async () => {
      const ended = new Promise((done) => child.once("exit", done));
      child.kill("SIGKILL");
      await ended;
      if (lstatSync(sender).isSymbolicLink()) {
        renameSync(sender, `${link}-2`);
        renameSync(link, sender);
        renameSync(`${link}-2`, link);
      }
      await runCommand("rm", [link]);
    };
  };
  return {
    outside,
    once,
    async underAttack(work: () => Promise<void>) {
      const stop = await attack();
      for (let run = 0; run < RUNS; run++) await work();
      await stop();
    },
    /** Without the consumer, everything that waits is delivered. */
    async finish() {
      const waiting = (await open()).filter(({ state }) => state === "waiting");
      if (waiting.length > 0) await inlet("retry", ...waiting.map(({ trackingId }) => trackingId));
      await once();
      expect(await open()).toEqual([]);
    },
    delivered: () => readdirSync(sender).toSorted(),
    staged: () => readdirSync(join(inbox, ".inlet/staging")),
  };
}

/** Returns the path of a library for `LD_PRELOAD`, which changes system calls. A missing compiler is installed from Debian, which needs root. */
async function compileSwap(): Promise<string> {
  const compiler = await installProgram("cc", "gcc");
  const source = join(ROOT, "test/support/preload/swap.c");
  const library = join(await makeFolder(), "swap.so");
  const options = ["-shared", "-fPIC", "-nostdlib", "-Wall", "-Werror", "-O1"];
  const { exitCode, stderr } = await runCommand(compiler, [...options, "-o", library, source, "-lgcc"]);
  if (exitCode !== 0) throw new Error(`${compiler} cannot compile ${source}: ${stderr}`);
  return library;
}
