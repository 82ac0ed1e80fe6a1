/**
 * Operators' pauses, as files `pauses/NAME.json` below the work folder, one for each paused mailbox. Every process that
 * shares the folder honours them. Removing the file ends the pause.
 */

import { join } from "node:path";
import * as v from "valibot";
import { systemDisk } from "../base/disk.ts";
import { createDurably, makeFolderDurably } from "../base/durable.ts";
import { systemCode, tolerate, unreadable } from "../base/faults.ts";
import { lookAtLink, readdir, tryReadFile, unlink } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import type { Mailbox, Pause } from "../model/mailbox.ts";
import { type Actor, ActorShape, actorOf } from "../model/order.ts";
import { digestOfMailbox } from "../model/transfer.ts";
import { ledgerPaths } from "./paths.ts";

const Shape = v.object({ ...ActorShape.entries, at: v.pipe(v.string(), v.isoTimestamp()) });

const ENTRY = /^([0-9a-f]{32})\.json$/;
const UNKNOWN = actorOf("unknown", "a damaged file");

/** By the digest of the mailbox. */
export type Pauses = ReadonlyMap<string, Pause>;

/** A damaged file still pauses its mailbox. Other files are ignored. Throws `DISK_UNREADABLE`. */
export async function readPauses(work: string): Promise<Pauses> {
  const { pauses: folder } = ledgerPaths(work);
  const pauses = new Map<string, Pause>();
  const names = await readdir(folder).catch((error: unknown) => {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error))) return [];
    throw unreadable(folder, error);
  });
  for (const name of names.toSorted()) {
    const digest = ENTRY.exec(name)?.[1];
    const pause = digest && (await readPause(join(folder, name)));
    if (digest && pause) pauses.set(digest, pause);
  }
  return pauses;
}

/** The mailboxes as they are treated: those that an operator has paused are paused. */
export function withPauses<Given extends Pick<Mailbox, "name" | "paused" | "pause">>(
  mailboxes: readonly Given[],
  pauses: Pauses,
): readonly Given[] {
  if (pauses.size === 0) return mailboxes;
  return mailboxes.map((mailbox) => {
    const pause = pauses.get(digestOfMailbox(mailbox.name));
    return pause === undefined ? mailbox : { ...mailbox, paused: true, pause };
  });
}

/** On the disk when it resolves. An earlier pause stays as it is. */
export async function createPause(work: string, mailbox: string, by: Actor, at: string): Promise<void> {
  const { pauses, temporary } = ledgerPaths(work);
  for (const folder of [pauses, temporary]) await makeFolderDurably(folder, 0o700);
  const text = `${JSON.stringify({ mailbox, ...by, at })}\n`;
  await createDurably(pathOf(work, mailbox), text, temporary).catch(tolerate("TARGET_EXISTS"));
}

/** Gone from the disk when it resolves. May be called twice. */
export async function removePause(work: string, mailbox: string): Promise<void> {
  await unlink(pathOf(work, mailbox)).catch(tolerate("ENOENT"));
  await systemDisk.syncFolder(ledgerPaths(work).pauses);
}

async function readPause(path: string): Promise<Pause | undefined> {
  // A file that cannot be read is damaged.
  const text = await tryReadFile(path).catch(() => "");
  if (text === undefined) return undefined;
  const pause = parseAs(Shape, text);
  return pause ?? { ...UNKNOWN, at: new Date((await lookAtLink(path))?.mtimeMs ?? 0).toISOString() };
}

function pathOf(work: string, mailbox: string): string {
  return join(ledgerPaths(work).pauses, `${digestOfMailbox(mailbox)}.json`);
}
