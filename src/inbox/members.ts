/**
 * The processes that work on an inbox: one alone with the embedded engine, or several that share a queue.
 *
 * A lock on the inbox keeps the two kinds apart. In addition, each process locks a file of its own in `members/` for as
 * long as it lives: a file that can be locked belongs to a process that has ended. Commands find running processes by
 * these files.
 */

import { hostname } from "node:os";
import { basename, join } from "node:path";
import * as v from "valibot";
import { exists, makeFolderDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { readdir, readFile, rm, tryReadFile, writeFile } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import { isHeldAlone, type KernelLock, tryLock } from "../base/kernel-lock.ts";
import { randomHex } from "../base/random.ts";

/** Describes the process that locked the inbox last. */
const HOLDER = "holder.json";
const MEMBERS = "members";
const MEMBER = /^[0-9a-f]{16}$/;

/** Throws `INBOX_HELD`, naming the holder. The work folder must exist. `state`: the state folder of this process. */
export async function lockInbox(
  work: string,
  kind: "alone" | "shared",
  nowMs: number,
  state: string,
): Promise<KernelLock> {
  const lock = await tryLock(join(work, "lock"), kind);
  if (lock === undefined) throw new Fault("INBOX_HELD", { detail: await describeHolder(work) });
  const path = join(work, HOLDER);
  const holder = { pid: process.pid, host: hostname(), since: new Date(nowMs).toISOString(), kind, state };
  try {
    await writeFile(path, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  } catch (error) {
    lock.release();
    throw error;
  }
  return lock;
}

/** The process that locked the inbox last, whether or not it still holds the lock. */
export async function describeHolder(work: string): Promise<string> {
  const facts = await readFacts(join(work, HOLDER));
  if (facts === undefined) return "an unknown process";
  const { pid, host, since, kind } = facts;
  const holder = `process ${Number(pid)} on ${String(host)}, since ${String(since)}`;
  return kind === "shared" ? `${holder}, and perhaps others that share a queue` : holder;
}

export interface Membership {
  /** Tells the other processes that this one works. */
  report(report: MemberReport): Promise<void>;
  leave(): Promise<void>;
}

const ReportShape = v.object({
  role: v.picklist(["all", "worker", "scheduler"]),
  /** Grows with each report. */
  beat: v.number(),
  /** How long ago it polled each mailbox successfully. */
  polledAgoMs: v.record(v.string(), v.number()),
});

export type MemberReport = Readonly<v.InferOutput<typeof ReportShape>>;

/** The last report of each process, by its id. Throws the errors of the disk. */
export async function readReports(work: string): Promise<ReadonlyMap<string, MemberReport>> {
  const found = new Map<string, MemberReport>();
  for (const path of await listMembers(work)) {
    const report = parseAs(ReportShape, await tryReadFile(factsOf(path)));
    if (report !== undefined) found.set(basename(path), report);
  }
  return found;
}

/**
 * `state`: the state folder of this process, for commands on the same machine. `format`: of what it records in the work folder.
 * `id`: names this process. `sockets`: where it may listen for commands.
 */
export async function joinMembers(
  work: string,
  state: string,
  format: number,
  id = memberId(),
  sockets: readonly string[] = [],
): Promise<Membership> {
  const folder = join(work, MEMBERS);
  await makeFolderDurably(folder, 0o700);
  for (const path of await listMembers(work)) await removeIfEnded(path);
  const path = join(folder, id);
  const lock = await lockNewMember(path);
  const facts = { host: hostname(), state, format, sockets };
  const write = (more: object) =>
    writeFile(factsOf(path), `${JSON.stringify({ ...facts, ...more })}\n`, { mode: 0o600 });
  // Without the file, commands rely on the configuration alone.
  await write({}).catch(() => {});
  return {
    report: write,
    leave: () => removeMember(path, lock),
  };
}

export function memberId(): string {
  return randomHex(8);
}

/** Throws `MEMBER_OLDER` if a process that works on this inbox would not find what is recorded in this format. */
export async function demandNoOlder(work: string, format: number): Promise<void> {
  for (const path of await listMembers(work)) {
    // Without its file, nothing is known of a member. Earlier versions name no format.
    const { host, format: its = 0 } = (await readFacts(factsOf(path))) ?? { format };
    const isOlder = Number(its) < format && !(await hasEnded(work, basename(path)));
    if (isOlder) throw new Fault("MEMBER_OLDER", { detail: `on ${String(host)}` });
  }
}

/** Whether the process with this id has ended. Throws `DISK_FULL` or `DISK_REFUSED`. */
export async function hasEnded(work: string, id: string): Promise<boolean> {
  const path = join(work, MEMBERS, id);
  if (!MEMBER.test(id) || !(await exists(path))) return true;
  const lock = await tryLock(path, "alone");
  lock?.release();
  return lock !== undefined;
}

/** How many processes work on this inbox now. Changes nothing, and takes no lock. Throws `DISK_UNREADABLE`. */
export async function countMembers(work: string): Promise<number> {
  const folder = join(work, MEMBERS);
  if (!(await exists(folder))) return 0;
  const paths = await listMembers(work).catch((cause: unknown) => {
    throw new Fault("DISK_UNREADABLE", { detail: folder, cause });
  });
  return (await filterRunning(paths)).length;
}

/**
 * The state folder of a daemon that runs on this machine, or of the one that ran last; `undefined` if it is not
 * known. Commands look for passwords and tokens where that daemon does.
 */
export async function findDaemonState(work: string): Promise<string | undefined> {
  // Then the state folder of the configuration is used.
  const running = await filterRunning(await listMembers(work).catch(() => []));
  for (const path of [...running.map(factsOf), join(work, HOLDER)]) {
    const { host, state } = (await readFacts(path)) ?? {};
    if (host === hostname() && typeof state === "string") return state;
  }
  return undefined;
}

/** Where the daemons of this inbox that run on this machine listen for commands. */
export async function findDaemonSockets(work: string): Promise<string[]> {
  // Without the folder, or rights to it, the usual places are left.
  const running = await listMembers(work).then(filterRunning, () => []);
  const all = await Promise.all(running.map((path) => readFacts(factsOf(path))));
  const here = all.filter((facts) => facts?.["host"] === hostname());
  return here.flatMap((facts) => facts?.["sockets"] ?? []).filter((path) => typeof path === "string");
}

async function listMembers(work: string): Promise<string[]> {
  const names = await readdir(join(work, MEMBERS));
  return names.filter((name) => MEMBER.test(name)).map((name) => join(work, MEMBERS, name));
}

/** Of these lock files, those of processes that have not ended. */
async function filterRunning(paths: readonly string[]): Promise<string[]> {
  const running: string[] = [];
  for (const path of paths) if (await isHeldAlone(path)) running.push(path);
  return running;
}

/** The file with the facts of a member, beside its lock file. */
function factsOf(path: string): string {
  return `${path}.json`;
}

/** `undefined` for a file that cannot be read, or is damaged. */
async function readFacts(path: string): Promise<Record<string, unknown> | undefined> {
  // Then nothing is known of the process.
  return parseAs(v.record(v.string(), v.unknown()), await readFile(path, "utf8").catch(() => undefined));
}

/** Creates the file and locks it. Until it is locked, another process may take it for an ended one's, and remove it. */
async function lockNewMember(path: string): Promise<KernelLock> {
  for (;;) {
    const lock = await tryLock(path, "alone");
    if (lock === undefined) continue;
    const isThere = await exists(path).catch((error: unknown) => {
      lock.release();
      throw error;
    });
    if (isThere) return lock;
    lock.release();
  }
}

async function removeIfEnded(path: string): Promise<void> {
  const lock = (await exists(path)) ? await tryLock(path, "alone") : undefined;
  if (lock !== undefined) await removeMember(path, lock);
}

/** Removes the files of a process that has ended, or ends now. `lock`: on its file; is released. */
async function removeMember(path: string, lock: KernelLock): Promise<void> {
  try {
    await rm(factsOf(path), { force: true });
    await rm(path, { force: true });
  } finally {
    lock.release();
  }
}
