/** The file system below the work folder: what it is, what room it has, and what it was seen to do. */
import { statfs } from "node:fs/promises";
import { asFault } from "../../base/faults.ts";
import { asOwnerOf } from "../../base/ownership.ts";
import { formatBytes } from "../../base/phrases.ts";
import type { Settings } from "../../config/settings.ts";
import { isExposed } from "../../inbox/exposure.ts";
import { describeWeakness, findMountOf } from "../../inbox/mounts.ts";
import { MAX_NAME_BYTES } from "../../inbox/portable.ts";
import { type ProbeFacts, probeFolder, type Trial } from "../../inbox/probe.ts";
import type { Findings } from "./findings.ts";
import type { Places } from "./folders.ts";

const AREA = "file system";

/** Fewer are soon used up by a transfer of many files. */
const FEW_FILES = 10_000;

const ANOTHER =
  "Choose another file system for inbox and work: a local one such as ext4 or xfs, or NFS version 4.";

export async function checkFileSystem(
  findings: Findings,
  settings: Settings,
  places: Places,
  signal: AbortSignal,
): Promise<void> {
  await checkKind(findings, "kind", places.work);
  const [work, state] = await Promise.all([findMountOf(places.work), findMountOf(places.state)]);
  if (work.point !== state.point) await checkKind(findings, "kind of state", places.state);
  await checkRoom(findings, places.work, settings.limits.minFreeBytes);
  if (await isExposed(places.work)) {
    findings.skip(AREA, "trial", `others may write ${places.work}: nothing is tried out among their files`);
    return;
  }
  try {
    // As the daemon will: root would see too little of it, and could be led astray by what others have put there.
    const facts = await asOwnerOf(places.work, () =>
      probeFolder(places.work, places.inbox, Date.now(), signal),
    );
    tellWhatItDoes(findings, facts);
    tellNames(findings, facts);
  } catch (error) {
    const fault = asFault(error);
    if (fault.code === "STOPPED") throw fault;
    findings.failWith(AREA, "trial", fault);
  }
}

async function checkKind(findings: Findings, check: string, place: string): Promise<void> {
  const mount = await findMountOf(place);
  const described = mount.point === undefined ? mount.kind : `${mount.kind}, mounted at ${mount.point}`;
  const weakness = describeWeakness(mount);
  if (weakness === undefined) findings.ok(AREA, check, described);
  else findings.warn(AREA, check, `${described}: ${weakness}`);
}

async function checkRoom(findings: Findings, place: string, minFreeBytes: number): Promise<void> {
  const { bavail, bsize, files, ffree } = await statfs(place);
  const free = bavail * bsize;
  const stays = `limits.minFreeSpace keeps ${formatBytes(minFreeBytes)} of it free`;
  if (free <= minFreeBytes) {
    findings.fail(
      AREA,
      "space",
      "attention",
      `only ${formatBytes(free)} are free, and ${stays}: nothing is collected`,
      "Free some space, or lower limits.minFreeSpace.",
    );
  } else findings.ok(AREA, "space", `${formatBytes(free)} are free, and ${stays}`);
  // Some file systems have no fixed number of files and say zero.
  if (files === 0) return;
  if (ffree < FEW_FILES) {
    findings.warn(AREA, "inodes", `only ${ffree} more files fit`, "Make a file system with more inodes.");
  } else findings.ok(AREA, "inodes", `${ffree} more files fit`);
}

function tellWhatItDoes(findings: Findings, facts: ProbeFacts): void {
  if (facts.reachesInbox) findings.ok(AREA, "one for both", "a finished folder can be moved into the inbox");
  else {
    findings.fail(
      AREA,
      "one for both",
      "usage",
      "inbox and work are on different file systems or mounts: a finished folder cannot be moved in one step",
      "Put work on the inbox's file system and mount, or leave it out: then it is .inlet inside the inbox.",
    );
  }
  const empty = facts.replacesEmpty ? "an empty one would give way" : "nor onto an empty one";
  tell(
    findings,
    "rename",
    facts.rename ?? facts.keepsFull,
    `a folder moves in one piece, and never onto one with content (${empty})`,
  );
  tell(findings, "fsync", facts.fileSync ?? facts.folderSync, "files and folders can be forced to the disk");
  tell(findings, "new names", facts.exclusiveCreate, "of two who make one name, one fails");
  if (facts.hardLink !== undefined) {
    findings.warn(
      AREA,
      "hard links",
      `there are none (${facts.hardLink}): only one daemon may use this inbox, with queue: embedded`,
      "Choose another file system where several daemons are to share the inbox.",
    );
  }
  tell(findings, "locks", facts.lock, "the kernel's locks keep a second process out");
}

function tell(findings: Findings, check: string, trial: Trial, fine: string): void {
  if (trial === undefined) findings.ok(AREA, check, fine);
  else findings.fail(AREA, check, "usage", `it does not do what a delivery rests on: ${trial}`, ANOTHER);
}

/** Names are made for every file system: these facts are for whoever consumes them. */
function tellNames(findings: Findings, { caseSensitive, unicode, longestName }: ProbeFacts): void {
  const cases = caseSensitive ? "A and a are two names" : "A and a are one name";
  const spellings = {
    distinct: "two spellings of é are two names",
    same: "two spellings of é are one name",
    changed: "é is stored in another spelling",
  }[unicode];
  const detail = `up to ${longestName} bytes; ${cases}; ${spellings}`;
  if (longestName >= MAX_NAME_BYTES) findings.ok(AREA, "names", detail);
  else {
    findings.warn(
      AREA,
      "names",
      `${detail}: Inlet gives names of up to ${MAX_NAME_BYTES} bytes, and a transfer with a longer one cannot be delivered`,
      ANOTHER,
    );
  }
}
