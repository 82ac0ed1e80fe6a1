/** The folders: whether they are there or can be made, and whether this user may write them. */
import { constants } from "node:fs";
import { access, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { asFault } from "../../base/faults.ts";
import { asOwnerOf } from "../../base/ownership.ts";
import { systemCode } from "../../base/system-code.ts";
import { describeReaders } from "../../config/credentials.ts";
import type { Settings } from "../../config/settings.ts";
import { tryMaking } from "../../inbox/probe.ts";
import { demandWork, findExposed } from "../../inbox/work-folder.ts";
import type { Findings } from "./findings.ts";

const AREA = "folders";

/** For each folder the one to look at in its place: itself, or the nearest above it that is there. */
export interface Places {
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
}

/** `undefined` where a folder cannot be used, so that there is nothing to try out. */
export async function checkFolders(findings: Findings, settings: Settings): Promise<Places | undefined> {
  await checkOwner(findings, settings);
  const inbox = await checkFolder(findings, "inbox", settings.inbox);
  const work = await checkFolder(findings, "work", settings.work);
  const state = await checkFolder(findings, "state", settings.state);
  if (state === settings.state) {
    const readers = await describeReaders(state);
    if (readers !== undefined) findings.warn(AREA, "state", readers);
  }
  const isSound = await checkWork(findings, settings);
  if (!isSound || inbox === undefined || work === undefined || state === undefined) return undefined;
  return { inbox, work, state };
}

/** Whether the daemon would start on it; where it is exposed, that is a warning. */
async function checkWork(findings: Findings, settings: Settings): Promise<boolean> {
  const { work } = settings;
  try {
    await asOwnerOf(work, () => demandWork(settings));
    for (const folder of await findExposed(work)) {
      findings.warn(
        AREA,
        "work",
        `others may write ${folder}: they can put something else in the place of the work folder, or of what is in it`,
        `Put work elsewhere on the same file system, or let everybody rename only what is their own: chmod +t ${folder}`,
      );
    }
    return true;
  } catch (error) {
    findings.failWith(AREA, "work", asFault(error));
    return false;
  }
}

/** Root may write everywhere: that says little about a daemon that is somebody else. */
async function checkOwner(findings: Findings, { state, work }: Settings): Promise<void> {
  const uid = process.getuid?.();
  const owner = (
    await stat(state)
      .catch(() => stat(work))
      .catch(() => undefined)
  )?.uid;
  if (uid === undefined || owner === undefined || owner === uid) return;
  findings.warn(
    AREA,
    "user",
    `this runs as user ${uid}, but the daemon's folders belong to user ${owner}: what the two may read and write can differ`,
    `Run it as that user: sudo -u '#${owner}' inlet doctor`,
  );
}

/** The folder to look at in its place; `undefined` where it cannot be used. */
export async function checkFolder(
  findings: Findings,
  check: string,
  folder: string,
): Promise<string | undefined> {
  const place = await nearestExisting(folder);
  const isThere = place === folder;
  try {
    if (!(await stat(place)).isDirectory()) {
      findings.fail(
        AREA,
        check,
        "usage",
        `${place} is not a folder`,
        "Choose another path, or move it away.",
      );
      return undefined;
    }
    await access(place, constants.R_OK | constants.W_OK | constants.X_OK);
    // Consumers watch the inbox: nothing is tried out in it.
    if (!isThere || check !== "inbox") await asOwnerOf(place, () => tryMaking(place));
    findings.ok(
      AREA,
      check,
      isThere
        ? `${folder} is there and can be written`
        : `${folder} is not there yet: the first start makes it, in ${place}`,
    );
    return place;
  } catch (error) {
    const why = isThere
      ? `${folder} cannot be written`
      : `${folder} is not there, and cannot be made in ${place}`;
    const user = process.getuid?.() ?? "of the daemon";
    findings.fail(
      AREA,
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

/** The folder itself, or the nearest one above it that is there. */
export async function nearestExisting(folder: string): Promise<string> {
  for (let place = folder; ; place = dirname(place)) {
    const code = await stat(place).then(() => undefined, systemCode);
    if ((code !== "ENOENT" && code !== "ENOTDIR") || place === dirname(place)) return place;
  }
}
