// @module-tag system
/**
 * I1 whole or nothing, I2 once: two daemons work on one inbox at the same time, because its file system's locks do not
 * reach other hosts. Each has its own state folder, as on its own host.
 *
 * A preloaded C library disables the locks, so that the real program runs unchanged.
 */
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, test } from "vitest";
import type { FilePlan } from "../../simulator/scenario.ts";
import { observeInbox } from "../support/inbox-observer.ts";
import { type Installation, install } from "../support/installation.ts";
import { readRecords } from "../support/ledger.ts";
import { compilePreload } from "../support/preload.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const SENDER = "anna@supplier.example";
const NAMES = Array.from({ length: 48 }, (_, at) => `t${String(at).padStart(2, "0")}`);
const LARGE_BYTES = 300_000;
/** A large file takes 0.6 s, so that a daemon that starts late on a busy machine still overlaps with the other one. */
const SLOWLY = { kind: "drip", bytes: 32_768, pauseMs: 60 } as const;
/** The number of transfers of which both daemons must have content at the same time. */
const MIN_CONTESTED = 12;
const OURS = ["SHA256SUMS", "transfer.json"];

/** The files of one transfer, by name. */
type Files = Readonly<Record<string, Buffer>>;

test("without locks, two daemons deliver each transfer once and complete", async () => {
  const { sent, inbox, installation, env } = await setUp();
  const observer = observeInbox(inbox, 5);
  const contested = await runBoth(installation, env, () => listNames(join(inbox, MAILBOX, SENDER)).length);
  observer.close();

  expect(observer.problems).toEqual([]);
  expect(listNames(join(inbox, MAILBOX, SENDER))).toEqual(NAMES);
  expect(readDeliveries(join(inbox, MAILBOX, SENDER))).toEqual(sent);
  expect(contested).toBeGreaterThanOrEqual(MIN_CONTESTED);
  await expectNothingLeft(installation);
  expect(listNames(join(inbox, MAILBOX, SENDER))).toEqual(NAMES);
});

test("without locks, a consumer that takes single files at once gets each file once and complete", async () => {
  const keys = {
    handoff: { deliver: "files", manifest: "beside", done: true },
    defaults: { layout: "flat" },
  };
  const { sent, inbox, installation, env } = await setUp(keys);
  const taken = join(installation.folder, "taken");
  const consumer = startConsumer(join(inbox, "flat"), taken, (name, count) => `${count}~${name}`);
  const countDelivered = () => listNames(taken).filter((name) => name.endsWith("_transfer.json")).length;
  const contested = await runBoth(installation, env, countDelivered, keys);
  await expectNothingLeft(installation);
  await consumer.stop();

  const files = Object.entries(sent).flatMap(([trackingId, all]) =>
    Object.entries(all).map(([name, bytes]) => [`${trackingId}_${name}`, bytes] as const),
  );
  const expected = files.flatMap(([name]) => [name, `${name}.done`]);
  for (const trackingId of NAMES) expected.push(`${trackingId}_SHA256SUMS`, `${trackingId}_transfer.json`);
  const found = new Map(
    listNames(taken).map((name) => [name.slice(name.indexOf("~") + 1), join(taken, name)]),
  );
  expect(listNames(taken)).toHaveLength(expected.length);
  expect([...found.keys()].toSorted()).toEqual(expected.toSorted());
  for (const [name, bytes] of files)
    expect(readFileSync(found.get(name) ?? "").equals(bytes), name).toBe(true);
  expect(listNames(join(inbox, ".inlet/names"))).toEqual([]);
  expect(contested).toBeGreaterThanOrEqual(MIN_CONTESTED);
});

async function setUp(keys: Record<string, unknown> = {}) {
  const sent = Object.fromEntries(NAMES.map((name) => [name, makeFiles(name)]));
  const transfers = NAMES.map((trackingId) => transferPlan({ trackingId, files: planOf(sent[trackingId]) }));
  const faults = [{ on: "file", times: "always", does: SLOWLY } as const];
  const installation = await install({ transfers, faults }, keys);
  // A daemon that starts late finds transfers on which the other one still works.
  const env = { ...(await compilePreload("grant-locks")), INLET_LIMITS__TRANSFERS: "4" };
  return { sent, inbox: installation.inbox, installation, env };
}

function makeFiles(trackingId: string): Files {
  return {
    "scan.bin": randomBytes(LARGE_BYTES),
    "table.csv": Buffer.from(`${trackingId};1;2\n`),
    "thumbnail.bin": randomBytes(20_000),
  };
}

function planOf(files: Files = {}): FilePlan[] {
  return Object.entries(files).map(([name, bytes]) => ({ name, base64: bytes.toString("base64") }));
}

/** Runs two daemons until everything is delivered. Returns the number of transfers that both had content of at once. */
async function runBoth(
  { folder, inbox, config, text }: Installation,
  env: Record<string, string>,
  countDelivered: () => number,
  otherKeys: Readonly<Record<string, unknown>> = {},
): Promise<number> {
  const other = join(folder, "other.yaml");
  await writeFile(other, text({ ...otherKeys, state: join(folder, "other-state") }), { mode: 0o600 });
  const staging = join(inbox, ".inlet/staging");
  const first = startDaemon(config, env);
  // The other one starts during downloads, so that its recovery finds their stages.
  await expect.poll(() => listNames(staging).length, { interval: 5 }).toBeGreaterThan(0);
  const daemons = [first, startDaemon(other, env)];
  const contested = new Set<string>();
  const look = () => {
    const rounds = listNames(staging)
      .filter((name) => /~[0-9a-f]{16}$/.test(name))
      .map((name) => name.replace(/~[0-9a-f]+$/, ""));
    for (const round of rounds) if (rounds.indexOf(round) !== rounds.lastIndexOf(round)) contested.add(round);
    return countDelivered();
  };
  await expect.poll(look, { timeout: 240_000, interval: 5 }).toBeGreaterThanOrEqual(NAMES.length);
  for (const daemon of daemons) expect(await end(daemon)).toBe(0);
  return contested.size;
}

/** After one more run, every round has ended with a delivery, and nothing is left over. */
async function expectNothingLeft({ inbox, config }: Installation): Promise<void> {
  const { exitCode, stdout, stderr } = await runProgram(["once", "--json", "--config", config]);
  expect([exitCode, JSON.parse(stdout), stderr]).toEqual([0, [], ""]);
  const work = join(inbox, ".inlet");
  for (const place of ["staging", "notes", "new", "attempts", "quarantine"]) {
    expect([place, listNames(join(work, place))]).toEqual([place, []]);
  }
  const ends = readRecords(work).map(({ trackingId, state, round }) => `${trackingId} ${state} ${round}`);
  expect(ends.toSorted()).toEqual(NAMES.map((name) => `${name} delivered 1`));
}

/** The senders' files of all deliveries by tracking-id, checked against manifest and sums. */
function readDeliveries(parent: string): Record<string, Files> {
  const found: Record<string, Files> = {};
  for (const name of listNames(parent)) {
    const folder = join(parent, name);
    const { trackingId, files } = JSON.parse(readFileSync(join(folder, "transfer.json"), "utf8"));
    expect(found, `${trackingId} is delivered once`).not.toHaveProperty(trackingId);
    const names = listNames(folder).filter((it) => !OURS.includes(it));
    found[trackingId] = Object.fromEntries(names.map((it) => [it, readFileSync(join(folder, it))]));
    const sums = (files as { name: string; sha256: string }[]).map((it) => `${it.sha256}  ${it.name}\n`);
    expect(readFileSync(join(folder, "SHA256SUMS"), "utf8")).toBe(sums.join(""));
  }
  return found;
}

/** Moves every new folder or file to `taken`, each under a new name. */
function startConsumer(
  parent: string,
  taken: string,
  nameFor: (name: string, count: number) => string = (_, count) => String(count),
): { stop(): Promise<void> } {
  mkdirSync(taken);
  let isOpen = true;
  let count = 0;
  const take = () => {
    for (const name of listNames(parent)) renameSync(join(parent, name), join(taken, nameFor(name, count++)));
  };
  const work = (async () => {
    while (isOpen) {
      take();
      await setTimeout(1);
    }
    take();
  })();
  return {
    async stop() {
      isOpen = false;
      await work;
    },
  };
}

function startDaemon(config: string, env: Record<string, string>): ChildProcess {
  const daemon = startProgram(["run", "--config", config], { env });
  // A process whose log is not read could not end.
  daemon.stdout?.resume();
  daemon.stderr?.resume();
  return daemon;
}

async function end(daemon: ChildProcess): Promise<number | null> {
  if (daemon.exitCode !== null || daemon.signalCode !== null) return daemon.exitCode;
  const gone = new Promise<number | null>((resolve) => daemon.once("exit", (code) => resolve(code)));
  daemon.kill("SIGTERM");
  return gone;
}

function listNames(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}
