/** Checks the folders, and the file system below the work folder: its kind, its free space and its behaviour. */

import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { FAULT_CODES } from "../../base/fault-codes.ts";
import { asFault, systemCode } from "../../base/faults.ts";
import { lookAt } from "../../base/files.ts";
import { formatBytes } from "../../base/phrases.ts";
import { asOwnerOf } from "../../base/process.ts";
import { describeReaders } from "../../config/credentials.ts";
import { type Settings, targetsOf } from "../../config/settings.ts";
import { describeWeakness, findMountOf } from "../../inbox/mounts.ts";
import { MAX_NAME_BYTES } from "../../inbox/names.ts";
import { type ProbeFacts, probeFolder, type Trial, tryMaking } from "../../inbox/probe.ts";
import { canReach } from "../../inbox/reach.ts";
import {
  demandWork,
  findExposed,
  isExposed,
  isWrittenByAll,
  TRUSTED_FOLDERS,
} from "../../inbox/work-folder.ts";
import type { Findings } from "./findings.ts";

const FOLDERS = "folders";
const INBOX = "inbox";

/** Each folder, or its nearest existing parent. */
export interface CheckedFolders {
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
  /** Inboxes of mailboxes, by the name of their check. */
  readonly own: ReadonlyMap<string, string>;
}

/** `undefined` if a folder is not usable. */
export async function checkFolders(
  findings: Findings,
  settings: Settings,
): Promise<CheckedFolders | undefined> {
  await checkOwner(findings, settings);
  const inbox = await checkFolder(findings, INBOX, settings.inbox);
  const own = new Map<string, string>();
  let isUsable = true;
  for (const [path, name] of ownInboxes(settings)) {
    const check = `${INBOX} of ${name}`;
    const existing = await checkFolder(findings, check, path);
    if (existing === undefined) isUsable = false;
    else own.set(check, existing);
  }
  const work = await checkFolder(findings, "work", settings.work);
  const state = await checkFolder(findings, "state", settings.state);
  if (state === settings.state) await checkPrivate(findings, state);
  const isSound = await checkWork(findings, settings);
  if (!isSound || !isUsable || inbox === undefined || work === undefined || state === undefined) {
    return undefined;
  }
  return { inbox, work, state, own };
}

/** Each inbox other than the common one, with the first mailbox that has it. */
function ownInboxes(settings: Settings): ReadonlyMap<string, string> {
  const own = targetsOf(settings).filter(({ inbox }) => inbox !== settings.inbox);
  return new Map(own.toReversed().map(({ inbox, mailbox }) => [inbox, mailbox]));
}

/** A user who may write the folders for tokens and passwords could make Inlet send passwords of their choice, or replace the client id. */
async function checkPrivate(findings: Findings, state: string): Promise<void> {
  const { uid: owner } = await stat(state);
  const parent = dirname(state);
  if (await isExposed(parent)) {
    const detail = `other users may write to ${parent}: they can replace the state folder`;
    findings.warn(FOLDERS, "state", detail, `Choose another state folder, or: chmod +t ${parent}`);
  }
  for (const name of TRUSTED_FOLDERS) await checkPrivateFolder(findings, name, state, owner);
}

async function checkPrivateFolder(
  findings: Findings,
  name: string,
  state: string,
  owner: number,
): Promise<void> {
  const folder = join(state, name);
  const check = name || "state";
  const facts = await lookAt(folder);
  if (facts === undefined) return;
  const writers = describeWriters(facts.mode);
  if (facts.uid !== owner) {
    const detail = `${folder} belongs to user ${facts.uid}, and the state folder to user ${owner}`;
    findings.fail(FOLDERS, check, "usage", detail, `Give it to the daemon: chown -R ${owner} ${folder}`);
  } else if (writers !== undefined) {
    const detail = `${folder} can be changed by ${writers}, who could replace tokens and passwords in it`;
    findings.fail(FOLDERS, check, "usage", detail, `Restrict it to its owner: chmod go= ${folder}`);
  } else if (name === "") {
    const readers = await describeReaders(folder);
    if (readers !== undefined) findings.warn(FOLDERS, check, readers);
  }
}

function describeWriters(mode: number): string | undefined {
  if (isWrittenByAll(mode)) return "every user of this machine";
  return (mode & 0o020) === 0 ? undefined : "its group";
}

/** Whether the daemon would start with this work folder. Exposure is a warning. */
async function checkWork(findings: Findings, settings: Settings): Promise<boolean> {
  const { work } = settings;
  try {
    await asOwnerOf(work, () => demandWork(settings));
    for (const folder of await findExposed(work)) {
      findings.warn(
        FOLDERS,
        "work",
        `other users may write to ${folder}: they can replace the work folder or its content`,
        `Choose another work folder on the same file system, or let users rename only their own entries: chmod +t ${folder}`,
      );
    }
    return true;
  } catch (error) {
    findings.failWith(FOLDERS, "work", asFault(error));
    return false;
  }
}

/** Root may write everywhere: that proves little about a daemon of another user. */
async function checkOwner(findings: Findings, { state, work }: Settings): Promise<void> {
  const uid = process.getuid?.();
  const owner = ((await lookAt(state)) ?? (await lookAt(work)))?.uid;
  if (uid === undefined || owner === undefined || owner === uid) return;
  findings.warn(
    FOLDERS,
    "user",
    `this runs as user ${uid}, but user ${owner} owns the daemon's folders and may have other permissions`,
    `Run the doctor as that user: sudo -u '#${owner}' inlet doctor`,
  );
}

/** Returns the folder, or its nearest existing parent; `undefined` if it is not usable. */
export async function checkFolder(
  findings: Findings,
  check: string,
  folder: string,
): Promise<string | undefined> {
  const existing = await nearestExisting(folder);
  const isThere = existing === folder;
  try {
    if (!(await stat(existing)).isDirectory()) {
      findings.fail(
        FOLDERS,
        check,
        "usage",
        `${existing} is not a folder`,
        "Choose another path, or move it away.",
      );
      return undefined;
    }
    await access(existing, constants.R_OK | constants.W_OK | constants.X_OK);
    // Consumers watch the inbox, so nothing is created in it.
    if (!isThere || !check.startsWith(INBOX)) await asOwnerOf(existing, () => tryMaking(existing));
    findings.ok(
      FOLDERS,
      check,
      isThere
        ? `${folder} exists and is writable`
        : `${folder} does not exist yet: the first start creates it in ${existing}`,
    );
    return existing;
  } catch (error) {
    const why = isThere
      ? `${folder} is not writable`
      : `${folder} does not exist, and cannot be created in ${existing}`;
    const user = process.getuid?.() ?? "of the daemon";
    findings.fail(
      FOLDERS,
      check,
      "usage",
      `${why} (${systemCode(error)})`,
      systemCode(error) === "EROFS"
        ? "Mount its file system writable; under systemd, add the folder to ReadWritePaths=."
        : `Let user ${user} write there (chown), or choose another path.`,
    );
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

const FILE_SYSTEM = "file system";

/** A single transfer may have this many files. */
const FEW_FILES = 10_000;

const ANOTHER =
  "Choose another file system for inbox and work: a local one such as ext4 or xfs, or NFS version 4.";

export async function checkFileSystem(
  findings: Findings,
  settings: Settings,
  folders: CheckedFolders,
  signal: AbortSignal,
): Promise<void> {
  await checkKind(findings, "kind", folders.work);
  const [work, state] = await Promise.all([findMountOf(folders.work), findMountOf(folders.state)]);
  if (work.point !== state.point) await checkKind(findings, "kind of state", folders.state);
  await checkRoom(findings, folders.work, settings.limits.minFreeBytes);
  if (await isExposed(folders.work)) {
    findings.skip(
      FILE_SYSTEM,
      "trial",
      `other users may write to ${folders.work}: no trial among their files`,
    );
    return;
  }
  try {
    // As the daemon's user: root passes checks that the daemon fails, and must not follow links of other users.
    const facts = await asOwnerOf(folders.work, () =>
      probeFolder(folders.work, folders.inbox, Date.now(), signal),
    );
    reportBehaviour(findings, facts);
    reportNames(findings, facts);
    for (const [check, inbox] of folders.own) {
      const isNear = await asOwnerOf(folders.work, () => canReach(folders.work, inbox, Date.now()));
      reportReach(findings, `same mount, ${check}`, isNear);
    }
  } catch (error) {
    const fault = asFault(error);
    if (fault.code === "STOPPED") throw fault;
    findings.failWith(FILE_SYSTEM, "trial", fault);
  }
}

async function checkKind(findings: Findings, check: string, folder: string): Promise<void> {
  const mount = await findMountOf(folder);
  const described = mount.point === undefined ? mount.kind : `${mount.kind}, mounted at ${mount.point}`;
  const weakness = describeWeakness(mount);
  if (weakness === undefined) findings.ok(FILE_SYSTEM, check, described);
  else findings.warn(FILE_SYSTEM, check, `${described}: ${weakness}`);
}

async function checkRoom(findings: Findings, folder: string, minFreeBytes: number): Promise<void> {
  const { bavail, bsize, files, ffree } = await statfs(folder);
  const free = bavail * bsize;
  const reserved = `limits.minFreeSpace reserves ${formatBytes(minFreeBytes)}`;
  if (free <= minFreeBytes) {
    findings.fail(
      FILE_SYSTEM,
      "space",
      "attention",
      `only ${formatBytes(free)} free, and ${reserved}: nothing is downloaded`,
      "Free some space, or lower limits.minFreeSpace.",
    );
  } else findings.ok(FILE_SYSTEM, "space", `${formatBytes(free)} free; ${reserved}`);
  // File systems without a fixed number of files report zero.
  if (files === 0) return;
  if (ffree < FEW_FILES) {
    findings.warn(
      FILE_SYSTEM,
      "inodes",
      `room for only ${ffree} more files`,
      "Use a file system with more inodes.",
    );
  } else findings.ok(FILE_SYSTEM, "inodes", `room for ${ffree} more files`);
}

function reportBehaviour(findings: Findings, facts: ProbeFacts): void {
  reportReach(
    findings,
    "same mount",
    facts.reachesInbox,
    "Put work on the inbox's file system and mount, or remove the key: the default is .inlet inside the inbox.",
  );
  const empty = facts.replacesEmpty ? "it replaces an empty one" : "nor an empty one";
  reportTrial(
    findings,
    "rename",
    facts.rename ?? facts.keepsFull,
    `a folder is renamed atomically, and never replaces a folder with content (${empty})`,
  );
  reportTrial(
    findings,
    "fsync",
    facts.fileSync ?? facts.folderSync,
    "files and folders can be synced to disk",
  );
  reportTrial(findings, "new names", facts.exclusiveCreate, "a name can be created only once");
  if (facts.hardLink !== undefined) {
    findings.warn(
      FILE_SYSTEM,
      "hard links",
      `not supported (${facts.hardLink}): only one daemon may use this inbox, with queue: embedded`,
      "Choose another file system to share the inbox between several daemons.",
    );
  }
  reportTrial(findings, "locks", facts.lock, "kernel locks exclude a second process");
}

function reportReach(
  findings: Findings,
  check: string,
  isNear: boolean,
  advice: string = FAULT_CODES.INBOX_APART.advice,
): void {
  if (isNear) findings.ok(FILE_SYSTEM, check, "a finished folder can be renamed into the inbox");
  else {
    findings.fail(
      FILE_SYSTEM,
      check,
      "usage",
      "inbox and work are on different file systems or mounts: a finished folder cannot be renamed into the inbox",
      advice,
    );
  }
}

function reportTrial(findings: Findings, check: string, trial: Trial, fine: string): void {
  if (trial === undefined) findings.ok(FILE_SYSTEM, check, fine);
  else findings.fail(FILE_SYSTEM, check, "usage", `unsafe for deliveries: ${trial}`, ANOTHER);
}

/** Inlet's names suit every file system; these facts help consumers. */
function reportNames(findings: Findings, { caseSensitive, unicode, longestName }: ProbeFacts): void {
  const cases = caseSensitive ? "A and a differ" : "A and a are the same";
  const encodings = {
    distinct: "two encodings of é differ",
    same: "two encodings of é are the same",
    changed: "é is stored in another encoding",
  }[unicode];
  const detail = `up to ${longestName} bytes; ${cases}; ${encodings}`;
  if (longestName >= MAX_NAME_BYTES) findings.ok(FILE_SYSTEM, "names", detail);
  else {
    findings.warn(
      FILE_SYSTEM,
      "names",
      `${detail}: Inlet uses names of up to ${MAX_NAME_BYTES} bytes, and cannot deliver a transfer with a name that does not fit`,
      ANOTHER,
    );
  }
}
