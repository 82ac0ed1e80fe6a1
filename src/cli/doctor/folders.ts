/** Checks the folders, and the file system below the work folder: its kind, its free space and its behaviour. */
import { constants } from "node:fs";
import { access, stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { asFault, systemCode } from "../../base/faults.ts";
import { formatBytes } from "../../base/phrases.ts";
import { asOwnerOf } from "../../base/process.ts";
import { describeReaders } from "../../config/credentials.ts";
import type { Settings } from "../../config/settings.ts";
import { describeWeakness, findMountOf } from "../../inbox/mounts.ts";
import { MAX_NAME_BYTES } from "../../inbox/names.ts";
import { type ProbeFacts, probeFolder, type Trial, tryMaking } from "../../inbox/probe.ts";
import { demandWork, findExposed, isExposed } from "../../inbox/work-folder.ts";
import type { Findings } from "./findings.ts";

const FOLDERS = "folders";

/** For each configured folder, the one that is checked: itself, or the nearest existing folder above it. */
export interface CheckedFolders {
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
}

/** `undefined` where a folder cannot be used. */
export async function checkFolders(
  findings: Findings,
  settings: Settings,
): Promise<CheckedFolders | undefined> {
  await checkOwner(findings, settings);
  const inbox = await checkFolder(findings, "inbox", settings.inbox);
  const work = await checkFolder(findings, "work", settings.work);
  const state = await checkFolder(findings, "state", settings.state);
  if (state === settings.state) {
    const readers = await describeReaders(state);
    if (readers !== undefined) findings.warn(FOLDERS, "state", readers);
  }
  const isSound = await checkWork(findings, settings);
  if (!isSound || inbox === undefined || work === undefined || state === undefined) return undefined;
  return { inbox, work, state };
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
        `others may write ${folder}: they can put something else in the place of the work folder, or of what is in it`,
        `Put work elsewhere on the same file system, or let each user rename only their own entries: chmod +t ${folder}`,
      );
    }
    return true;
  } catch (error) {
    findings.failWith(FOLDERS, "work", asFault(error));
    return false;
  }
}

/** Root may write everywhere, which says little about a daemon that runs as another user. */
async function checkOwner(findings: Findings, { state, work }: Settings): Promise<void> {
  const uid = process.getuid?.();
  const owner = (
    await stat(state)
      .catch(() => stat(work))
      .catch(() => undefined)
  )?.uid;
  if (uid === undefined || owner === undefined || owner === uid) return;
  findings.warn(
    FOLDERS,
    "user",
    `this runs as user ${uid}, but the daemon's folders belong to user ${owner}: what the two may read and write can differ`,
    `Run it as that user: sudo -u '#${owner}' inlet doctor`,
  );
}

/** Returns the folder that is checked instead; `undefined` where it cannot be used. */
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
    // Consumers watch the inbox, so the doctor makes nothing in it.
    if (!isThere || check !== "inbox") await asOwnerOf(existing, () => tryMaking(existing));
    findings.ok(
      FOLDERS,
      check,
      isThere
        ? `${folder} is there and can be written`
        : `${folder} is not there yet: the first start makes it, in ${existing}`,
    );
    return existing;
  } catch (error) {
    const why = isThere
      ? `${folder} cannot be written`
      : `${folder} is not there, and cannot be made in ${existing}`;
    const user = process.getuid?.() ?? "of the daemon";
    findings.fail(
      FOLDERS,
      check,
      "usage",
      `${why} (${systemCode(error)})`,
      systemCode(error) === "EROFS"
        ? "Mount its file system writable; below systemd, name the folder in ReadWritePaths=."
        : `Let user ${user} write there: chown, or another path.`,
    );
    return undefined;
  }
}

/** The folder itself, or the nearest existing one above it. */
export async function nearestExisting(folder: string): Promise<string> {
  for (let path = folder; ; path = dirname(path)) {
    const code = await stat(path).then(() => undefined, systemCode);
    if ((code !== "ENOENT" && code !== "ENOTDIR") || path === dirname(path)) return path;
  }
}

const FILE_SYSTEM = "file system";

/** One transfer of many files can use up fewer. */
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
      `others may write ${folders.work}: nothing is tried out among their files`,
    );
    return;
  }
  try {
    // As the daemon's user: root passes checks that the daemon fails, and must not follow what others have put there.
    const facts = await asOwnerOf(folders.work, () =>
      probeFolder(folders.work, folders.inbox, Date.now(), signal),
    );
    reportBehaviour(findings, facts);
    reportNames(findings, facts);
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
  const stays = `limits.minFreeSpace keeps ${formatBytes(minFreeBytes)} of it free`;
  if (free <= minFreeBytes) {
    findings.fail(
      FILE_SYSTEM,
      "space",
      "attention",
      `only ${formatBytes(free)} are free, and ${stays}: nothing is downloaded`,
      "Free some space, or lower limits.minFreeSpace.",
    );
  } else findings.ok(FILE_SYSTEM, "space", `${formatBytes(free)} are free, and ${stays}`);
  // Some file systems have no fixed number of files and say zero.
  if (files === 0) return;
  if (ffree < FEW_FILES) {
    findings.warn(
      FILE_SYSTEM,
      "inodes",
      `only ${ffree} more files fit`,
      "Make a file system with more inodes.",
    );
  } else findings.ok(FILE_SYSTEM, "inodes", `${ffree} more files fit`);
}

function reportBehaviour(findings: Findings, facts: ProbeFacts): void {
  if (facts.reachesInbox)
    findings.ok(FILE_SYSTEM, "one for both", "a finished folder can be moved into the inbox");
  else {
    findings.fail(
      FILE_SYSTEM,
      "one for both",
      "usage",
      "inbox and work are on different file systems or mounts: a finished folder cannot be moved in one step",
      "Put work on the inbox's file system and mount, or leave it out: then it is .inlet inside the inbox.",
    );
  }
  const empty = facts.replacesEmpty ? "an empty one would give way" : "nor onto an empty one";
  reportTrial(
    findings,
    "rename",
    facts.rename ?? facts.keepsFull,
    `a folder moves in one piece, and never onto one with content (${empty})`,
  );
  reportTrial(
    findings,
    "fsync",
    facts.fileSync ?? facts.folderSync,
    "files and folders can be forced to the disk",
  );
  reportTrial(findings, "new names", facts.exclusiveCreate, "of two who make one name, one fails");
  if (facts.hardLink !== undefined) {
    findings.warn(
      FILE_SYSTEM,
      "hard links",
      `there are none (${facts.hardLink}): only one daemon may use this inbox, with queue: embedded`,
      "Choose another file system where several daemons are to share the inbox.",
    );
  }
  reportTrial(findings, "locks", facts.lock, "the kernel's locks keep a second process out");
}

function reportTrial(findings: Findings, check: string, trial: Trial, fine: string): void {
  if (trial === undefined) findings.ok(FILE_SYSTEM, check, fine);
  else
    findings.fail(FILE_SYSTEM, check, "usage", `it does not do what a delivery rests on: ${trial}`, ANOTHER);
}

/** Inlet's names suit every file system: these facts are for consumers. */
function reportNames(findings: Findings, { caseSensitive, unicode, longestName }: ProbeFacts): void {
  const cases = caseSensitive ? "A and a are two names" : "A and a are one name";
  const spellings = {
    distinct: "two spellings of é are two names",
    same: "two spellings of é are one name",
    changed: "é is stored in another spelling",
  }[unicode];
  const detail = `up to ${longestName} bytes; ${cases}; ${spellings}`;
  if (longestName >= MAX_NAME_BYTES) findings.ok(FILE_SYSTEM, "names", detail);
  else {
    findings.warn(
      FILE_SYSTEM,
      "names",
      `${detail}: Inlet gives names of up to ${MAX_NAME_BYTES} bytes, and a transfer with a longer one cannot be delivered`,
      ANOTHER,
    );
  }
}
