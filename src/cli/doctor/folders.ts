/** Checks the folders, the file system below the work folder, and the groups that shall reach deliveries. */
import { constants, type Stats } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { INBOX_TREE_ENTRIES } from "../../base/bounds.ts";
import { FAULT_CODES } from "../../base/fault-codes.ts";
import { systemCode } from "../../base/faults.ts";
import { lookAt } from "../../base/files.ts";
import { entriesOf } from "../../base/foreign-files.ts";
import { formatBytes, formatCount } from "../../base/phrases.ts";
import { asOwnerOf } from "../../base/process.ts";
import { describeReaders } from "../../config/credentials.ts";
import { handoffsOf, type Settings, type Target, targetsOf } from "../../config/settings.ts";
import { findGroup } from "../../host/groups.ts";
import { findExposures, isExposed } from "../../inbox/exposure.ts";
import { describeWeakness, findMountOf } from "../../inbox/mounts.ts";
import { type ProbeFacts, probeFolder, type Trial, tryMaking } from "../../inbox/probe.ts";
import { canReach, demandGroup } from "../../inbox/reach.ts";
import { demandOurs } from "../../inbox/work-folder.ts";
import { MAX_NAME_BYTES, safeSegment } from "../../model/names.ts";
import { quote } from "../../model/order.ts";
import { findRefusal } from "../../operate/records.ts";
import type { Examination, Findings } from "./findings.ts";

const INBOX = "inbox";

/** The name of a check → the folder, or its nearest existing parent. */
export type CheckedFolders = ReadonlyMap<string, string>;

/** `undefined` if a folder is not usable. */
export async function checkFolders(
  findings: Findings,
  settings: Settings,
): Promise<CheckedFolders | undefined> {
  const { inbox, work, state } = settings;
  await checkOwner(findings, settings);
  const wanted = new Map([[INBOX, inbox]]);
  const own = Map.groupBy(targetsOf(settings), (target) => target.inbox);
  own.delete(inbox);
  for (const [path, [first]] of own) {
    const check = `${INBOX} of ${first?.mailbox}`;
    // Routes of one mailbox may have several inboxes.
    wanted.set(wanted.has(check) ? `${check}: ${path}` : check, path);
  }
  wanted.set("work", work).set("state", state);
  const checked = new Map<string, string>();
  for (const [check, folder] of wanted) {
    const existing = await checkFolder(findings, check, folder);
    if (existing !== undefined) checked.set(check, existing);
  }
  await checkTrust(findings, settings);
  const isSound = await checkWork(findings, settings);
  return isSound && checked.size === wanted.size ? checked : undefined;
}

/** What the daemon would refuse to trust, and what only might be changed by others. */
async function checkTrust(findings: Findings, settings: Settings): Promise<void> {
  const daemon = (await ownerOf(settings)) ?? process.getuid?.();
  for (const { what, remedy, isRefused } of await findExposures(settings, daemon)) {
    if (isRefused) findings.fail("trust", "denied", `${what}: the daemon does not start`, remedy);
    else findings.warn("trust", what, remedy);
  }
  const readers = await describeReaders(settings.state);
  if (readers !== undefined) findings.warn("state", readers);
}

/** The user of the daemon, as far as its folders tell. */
async function ownerOf({ state, work }: Settings): Promise<number | undefined> {
  return ((await lookAt(state)) ?? (await lookAt(work)))?.uid;
}

/** Whether the daemon would start with this work folder. */
async function checkWork(findings: Findings, settings: Settings): Promise<boolean> {
  const { work } = settings;
  const isSound = await findings.attempt("work", async () => {
    await asOwnerOf(work, () => demandOurs(work));
    const refusal = await findRefusal(settings);
    if (refusal !== undefined) throw refusal;
    return true;
  });
  return isSound === true;
}

/** Root may write everywhere: that proves little about a daemon of another user. */
async function checkOwner(findings: Findings, settings: Settings): Promise<void> {
  const uid = process.getuid?.();
  const owner = await ownerOf(settings);
  if (uid === undefined || owner === undefined || owner === uid) return;
  findings.warn(
    "user",
    `this runs as user ${uid}, but user ${owner} owns the daemon's folders and may have other permissions`,
    `Run the doctor as that user: sudo -u '#${owner}' inlet doctor`,
  );
}

/** Returns the folder, or its nearest existing parent; `undefined` if it is not usable. */
async function checkFolder(findings: Findings, check: string, folder: string): Promise<string | undefined> {
  const existing = await nearestExisting(folder);
  const isThere = existing === folder;
  try {
    if (!(await stat(existing)).isDirectory()) {
      findings.fail(check, "usage", `${existing} is not a folder`, "Choose another path, or move it away.");
      return undefined;
    }
    await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    // Nothing is created in an inbox: consumers watch it.
    const isInbox = isThere && check.startsWith(INBOX);
    if (!isInbox) await asOwnerOf(existing, () => tryMaking(existing));
    const absent = `${folder} does not exist yet: the first start creates it`;
    findings.ok(check, isThere ? `${folder} exists and is writable` : absent);
    return existing;
  } catch (error) {
    const absent = `${folder} does not exist, and cannot be created in ${existing}`;
    const why = isThere ? `${folder} is not writable` : absent;
    const advice =
      systemCode(error) === "EROFS"
        ? "Mount its file system writable; under systemd, add the folder to ReadWritePaths=."
        : `Let user ${process.getuid?.()} write there (chown), or choose another path.`;
    findings.fail(check, "usage", `${why} (${systemCode(error)})`, advice);
    return undefined;
  }
}

/** The folder itself, or its nearest existing parent. */
export async function nearestExisting(folder: string): Promise<string> {
  for (let path = folder; ; path = dirname(path)) {
    const code = await stat(path).then(() => undefined, systemCode);
    if ((code !== "ENOENT" && code !== "ENOTDIR") || path === dirname(path)) return path;
  }
}

/** A single transfer may have this many files. */
const FEW_FILES = 10_000;

const ANOTHER =
  "Choose another file system for inbox and work: a local one such as ext4 or xfs, or NFS version 4.";
const SAME_MOUNT =
  "Put work on the inbox's file system and mount, or remove the key: the default is .inlet inside the inbox.";

export async function checkFileSystem(
  { findings, settings, signal }: Examination,
  folders: CheckedFolders,
): Promise<void> {
  const [inbox = "", work = "", state = ""] = [INBOX, "work", "state"].map((check) => folders.get(check));
  await checkKind(findings, "kind", work);
  const [mountOfWork, mountOfState] = await Promise.all([findMountOf(work), findMountOf(state)]);
  if (mountOfWork.point !== mountOfState.point) await checkKind(findings, "kind of state", state);
  await checkRoom(findings, work, settings.limits.minFreeBytes);
  if (await isExposed(work)) {
    findings.skip("trial", `other users may write to ${work}: no trial among their files`);
    return;
  }
  await findings.attempt("trial", async () => {
    // As the daemon's user: root passes checks that the daemon fails, and must not follow links of other users.
    const facts = await asOwnerOf(work, () => probeFolder(work, inbox, Date.now(), signal));
    reportReach(findings, "same mount", facts.reachesInbox, SAME_MOUNT);
    reportBehaviour(findings, facts);
    for (const [check, own] of folders) {
      if (!check.startsWith(`${INBOX} of`)) continue;
      const isNear = await asOwnerOf(work, () => canReach(work, own, Date.now()));
      reportReach(findings, `same mount, ${check}`, isNear, FAULT_CODES.INBOX_APART.advice);
    }
  });
}

async function checkKind(findings: Findings, check: string, folder: string): Promise<void> {
  const mount = await findMountOf(folder);
  const described = mount.point === undefined ? mount.kind : `${mount.kind}, mounted at ${mount.point}`;
  const weakness = describeWeakness(mount);
  if (weakness === undefined) findings.ok(check, described);
  else findings.warn(check, `${described}: ${weakness}`);
}

async function checkRoom(findings: Findings, folder: string, minFreeBytes: number): Promise<void> {
  const { bavail, bsize, files, ffree } = await statfs(folder);
  const free = bavail * bsize;
  const reserved = `limits.minFreeSpace reserves ${formatBytes(minFreeBytes)}`;
  if (free <= minFreeBytes) {
    findings.fail(
      "space",
      "attention",
      `only ${formatBytes(free)} free, and ${reserved}: nothing is downloaded`,
      "Free some space, or lower limits.minFreeSpace.",
    );
  } else findings.ok("space", `${formatBytes(free)} free; ${reserved}`);
  // File systems without a fixed number of files report zero.
  if (files === 0) return;
  if (ffree < FEW_FILES) {
    findings.warn("inodes", `room for only ${ffree} more files`, "Use a file system with more inodes.");
  } else findings.ok("inodes", `room for ${ffree} more files`);
}

function reportReach(findings: Findings, check: string, isNear: boolean, advice: string): void {
  const apart =
    "inbox and work are on different file systems or mounts: a finished folder cannot be renamed into the inbox";
  if (isNear) findings.ok(check, "a finished folder can be renamed into the inbox");
  else findings.fail(check, "usage", apart, advice);
}

function reportBehaviour(findings: Findings, facts: ProbeFacts): void {
  const renamed = "a folder is renamed atomically, and never replaces a folder with content";
  const report = (check: string, trial: Trial, fine: string) => {
    if (trial === undefined) findings.ok(check, fine);
    else findings.fail(check, "usage", `unsafe for deliveries: ${trial}`, ANOTHER);
  };
  report("rename", facts.rename, renamed);
  report("fsync", facts.sync, "files and folders can be synced to disk");
  report("new names", facts.exclusiveCreate, "a name can be created only once");
  if (facts.hardLink !== undefined) {
    findings.warn(
      "hard links",
      `not supported (${facts.hardLink}): only one daemon may use this inbox, with queue: embedded`,
      "Choose another file system to share the inbox between several daemons.",
    );
  }
  report("locks", facts.lock, "kernel locks exclude a second process");
  const names = `up to ${MAX_NAME_BYTES} bytes`;
  const tooLong = `names of ${MAX_NAME_BYTES} bytes are refused (${facts.longName}): a transfer with a long name cannot be delivered`;
  if (facts.longName === undefined) findings.ok("names", names);
  else findings.warn("names", tooLong, ANOTHER);
}

/** `work`: the work folder, or its nearest existing parent. */
export async function checkGroups({ findings, settings, signal }: Examination, work: string): Promise<void> {
  const groups = handoffsOf(settings).flatMap(({ group }) => group ?? []);
  const gids = new Map<string, number>();
  for (const group of new Set(groups)) {
    const check = `group ${group}`;
    await findings.attempt(check, async () => {
      const gid = await findGroup(group, signal);
      gids.set(group, gid);
      const why = await whyNotTried(work);
      if (why !== undefined) return findings.skip(check, `its number is ${gid}; ${why}`);
      await demandGroup(gid, work);
      findings.ok(check, `its number is ${gid}, and files can be given to it`);
    });
  }
  await checkAccess(findings, settings, gids);
}

/** Only the daemon's own user, with the daemon's groups, can tell whether the daemon may use a group. */
async function whyNotTried(work: string): Promise<string | undefined> {
  if (await isExposed(work)) return `other users may write to ${work}: no trial among their files`;
  const { uid } = await stat(work);
  if (process.geteuid?.() === uid) return undefined;
  return `user ${uid} runs the daemon: run the doctor as that user, or with --unit, to try it`;
}

const [WRITE, ENTER, ALL] = [2, 1, 7];

/** Deliveries for a group. `granted`: what the mode of delivered folders grants it. */
type Shared = Target & { readonly group: string; readonly gid: number; readonly granted: number };

/** `gids`: the numbers of the groups that exist. Access control lists are not seen, so findings are warnings. */
async function checkAccess(
  findings: Findings,
  settings: Settings,
  gids: ReadonlyMap<string, number>,
): Promise<void> {
  const all = targetsOf(settings).flatMap((target): Shared[] => {
    const { group = "", folderMode } = target.handoff;
    const gid = gids.get(group);
    const granted = (folderMode >> 3) & ALL;
    return gid === undefined || (granted & ENTER) === 0 ? [] : [{ ...target, group, gid, granted }];
  });
  for (const [inbox, targets] of Map.groupBy(all, (target) => target.inbox)) {
    const byGroup = new Map(targets.map((it) => [it.gid, it]));
    for (const target of byGroup.values()) await checkWay(findings, target);
    const closed = await findClosed(targets, settings.work);
    for (const [group, paths] of closed) {
      const granted = targets.reduce((bits, it) => (it.group === group ? bits | it.granted : bits), 0);
      const [first, ...others] = paths;
      const where =
        others.length === 0 || byGroup.size > 1 ? paths.map(quote).join(" ") : `${quote(inbox)}/*`;
      const more = others.length === 0 ? "" : `, nor ${formatCount(others.length, "other", "others")}`;
      findings.warn(
        `group ${group}`,
        `its members cannot ${granted & WRITE ? "move deliveries out of" : "read"} ${first}${more}: older folders keep their group and mode`,
        `chgrp --recursive ${quote(group)} ${where} && find ${where} -type d -exec chmod g+${letters(granted)} {} +`,
      );
    }
  }
}

/** The inbox, and the folders above it. */
async function checkWay(findings: Findings, { inbox, group, gid, granted }: Shared): Promise<void> {
  for (let path = inbox; path !== dirname(path); path = dirname(path)) {
    const facts = await lookAt(path);
    const bits = path === inbox ? granted & ~WRITE : ENTER;
    if (facts === undefined || grants(facts, gid, bits)) continue;
    const mode = (facts.mode & 0o7777).toString(8).padStart(4, "0");
    const detail = `its members cannot enter ${path} (mode ${mode}, group ${facts.gid})`;
    const advice =
      path === inbox
        ? `chgrp ${quote(group)} ${quote(path)} && chmod g+${letters(bits)} ${quote(path)}`
        : `chmod ${facts.gid === gid ? "g" : "o"}+x ${quote(path)}`;
    findings.warn(`group ${group}`, detail, advice);
  }
}

/**
 * By group, the older folders in which no group that shares them may do what the mode of delivered folders grants it.
 */
async function findClosed(targets: readonly Shared[], work: string): Promise<ReadonlyMap<string, string[]>> {
  const closed = new Map<string, string>();
  const open = new Set<string>();
  for (const target of targets) {
    for (const path of await foldersOf(target, work)) {
      const facts = await lookAt(path);
      if (facts === undefined || grants(facts, target.gid, target.granted)) open.add(path);
      else closed.set(path, target.group);
    }
  }
  const paths = [...closed.keys()].filter((path) => !open.has(path));
  return Map.groupBy(paths, (path) => closed.get(path) ?? "");
}

/** The existing folders above deliveries, inside the inbox. */
function foldersOf({ mailbox, inbox, layout, handoff }: Shared, work: string): Promise<string[]> {
  const segments = layout.split("/").map((segment) => segment.replaceAll("{mailbox}", mailbox));
  return foldersBelow(inbox, handoff.deliver === "files" ? segments : segments.slice(0, -1), work);
}

async function foldersBelow(
  folder: string,
  [segment, ...rest]: readonly string[],
  work: string,
): Promise<string[]> {
  if (segment === undefined || folder === work) return [];
  const isFitting = (name: string) =>
    segment.includes("{") ? !name.startsWith(".") : name === safeSegment(segment);
  // A folder that this user cannot list is not checked.
  const entries = await Array.fromAsync(entriesOf(folder, INBOX_TREE_ENTRIES)).catch(() => []);
  const paths = entries.flatMap((it) =>
    it.isDirectory() && isFitting(it.name) ? join(folder, it.name) : [],
  );
  const all = paths.map(async (path) => [path, ...(await foldersBelow(path, rest, work))]);
  return (await Promise.all(all)).flat().filter((path) => path !== work);
}

function grants({ mode, gid }: Pick<Stats, "mode" | "gid">, group: number, bits: number): boolean {
  return ((gid === group ? mode >> 3 : mode) & bits) === bits;
}

function letters(bits: number): string {
  return [..."rwx"].filter((_, at) => bits & (4 >> at)).join("");
}
