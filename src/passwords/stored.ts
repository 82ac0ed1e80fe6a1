/**
 * The passwords in the state folder: those that people drop, and those of them that the service has accepted.
 *
 * `passwords/TRACKING-ID` is meant for every mailbox that received the transfer, `passwords/MAILBOX/TRACKING-ID` for that
 * mailbox alone. Accepted passwords are in `accepted/` for a while, because `retry`, `release` and `redeliver` need them
 * again.
 */

import { hash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { basename, dirname, join } from "node:path";
import * as v from "valibot";
import { systemDisk, tryUnlink } from "../base/disk.ts";
import { clearTemporaries, makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { type Fault, tolerate } from "../base/faults.ts";
import {
  type FolderWatch,
  lstat,
  openFile,
  READ_PLAIN_FILE,
  readdir,
  tryReadFile,
  unlink,
  watchFolder,
} from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import { describeWrongPassword, Secret } from "../base/secret.ts";
import { mailboxIdOf } from "../model/transfer.ts";

/** Longer than any password that a service accepts. */
const MAX_BYTES = 64 * 1024;
/** The mode of a file that a command wrote, whose user is in the journal. A file of another mode was put there by hand. */
const COMMAND_MODE = 0o400;
/** A mailbox or tracking-id may hold any text. A password can be dropped only if both are plain file names. */
const PLAIN_NAME = /^(?!\.)[^/\0]{1,200}$/;

/** There is nothing, or nothing that can be read as a password. */
const NO_PASSWORD_THERE = ["ENOENT", "ENOTDIR", "EACCES", "EPERM", "ELOOP", "ENXIO", "ENAMETOOLONG"];

export interface Drop {
  readonly trackingId: string;
  /** Missing: for every mailbox that received the transfer. */
  readonly mailbox: string | undefined;
  readonly path: string;
}

function dropFolderIn(state: string): string {
  return join(state, "passwords");
}

/** Where a dropped password would be; `undefined` if a name cannot be that of a file. */
export function pathOfDrop(state: string, trackingId: string, mailbox?: string): string | undefined {
  const names = mailbox === undefined ? [trackingId] : [mailbox, trackingId];
  return names.every((name) => PLAIN_NAME.test(name)) ? join(dropFolderIn(state), ...names) : undefined;
}

/**
 * Where a password for a transfer of this mailbox may be; the first takes precedence. A person may spell the mailbox as the
 * configuration does.
 */
export function pathsOfDrops(state: string, mailbox: string, trackingId: string): string[] {
  const paths = [mailboxIdOf(mailbox), mailbox, undefined].map((each) => pathOfDrop(state, trackingId, each));
  return [...new Set(paths)].filter((path) => path !== undefined);
}

export async function listDrops(state: string): Promise<Drop[]> {
  const drops: Drop[] = [];
  for (const entry of await plainEntries(dropFolderIn(state))) {
    const path = join(dropFolderIn(state), entry.name);
    if (!entry.isDirectory()) {
      drops.push({ trackingId: entry.name, mailbox: undefined, path });
      continue;
    }
    for (const { name } of await plainEntries(path))
      drops.push({ trackingId: name, mailbox: entry.name, path: join(path, name) });
  }
  return drops;
}

async function plainEntries(folder: string) {
  const entries = await readdir(folder, { withFileTypes: true });
  return entries.filter(({ name }) => PLAIN_NAME.test(name));
}

/** Drops a password as a person would, and returns its path; `undefined` if a name cannot be that of a file. */
export async function dropPassword(
  state: string,
  transfer: { readonly trackingId: string; readonly mailbox?: string | undefined },
  password: Secret,
): Promise<string | undefined> {
  const mailbox = transfer.mailbox === undefined ? undefined : mailboxIdOf(transfer.mailbox);
  const path = pathOfDrop(state, transfer.trackingId, mailbox);
  if (path === undefined) return undefined;
  await makeFolderDurably(dirname(path), 0o700);
  await replaceDurably(path, password.reveal(), COMMAND_MODE, dirname(path));
  return path;
}

/** Removes the file of this password only: another one may have been dropped since. */
export async function clearDropOf(path: string, password: Secret): Promise<void> {
  if ((await readDrop(path))?.password.reveal() === password.reveal()) await clearDrop(path);
}

/** Removes the file. Anything but a file is no password, and stays. */
export async function clearDrop(path: string): Promise<void> {
  await unlink(path).catch(tolerate("ENOENT", "ENOTDIR", "EISDIR", "EPERM"));
}

/** Throws if the disk gives no answer, which must not count as missing. */
function unlessMissing<Value>(work: Promise<Value>): Promise<Value | undefined> {
  return work.catch(tolerate(...NO_PASSWORD_THERE));
}

/** Identifies a file and its content: each write changes the mark. `undefined` if there is no file. */
export async function markOf(path: string | undefined): Promise<string | undefined> {
  const facts = path && (await unlessMissing(lstat(path, { bigint: true })));
  return facts ? formatMark(facts) : undefined;
}

function formatMark({ ino, ctimeNs }: BigIntStats): string {
  return `${ino}-${ctimeNs}`;
}

/** A file that was put into the folder by hand. */
export interface HandDrop {
  /** As in `markOf`. */
  readonly mark: string;
  /** The user who owns the file. */
  readonly uid: number;
}

/** Reads a regular file, never the target of a link, without the line end that editors add. */
export async function readDrop(
  path: string,
): Promise<{ readonly password: Secret; readonly byHand: HandDrop | undefined } | undefined> {
  const file = await unlessMissing(openFile(path, READ_PLAIN_FILE));
  if (file === undefined) return undefined;
  try {
    const facts = await file.statExactly();
    if (!facts.isFile() || facts.size > MAX_BYTES) return undefined;
    const text = (await file.readText()).replace(/^\ufeff/, "").replace(/\r?\n$/, "");
    const password = new Secret(text);
    if (text === "" || describeWrongPassword(password) !== undefined) return undefined;
    const isByHand = Number(facts.mode & 0o777n) !== COMMAND_MODE;
    const byHand = isByHand ? { mark: formatMark(facts), uid: Number(facts.uid) } : undefined;
    return { password, byHand };
  } finally {
    await file.close();
  }
}

/** Watches for dropped passwords, so that a waiting transfer goes on at once. `onDropped` gets the name of the file. */
export function watchDropFolder(
  state: string,
  onDropped: (trackingId: string) => void,
  unwatchable: (fault: Fault) => void,
): Promise<FolderWatch> {
  const options = { ignoreInitial: true, depth: 1 };
  return watchFolder(dropFolderIn(state), options, {
    changed: (path, event) => void (event !== "other" && onDropped(basename(path))),
    unwatchable,
  });
}

/** An accepted password goes to no other service, nor to another spelling of its address. */
export type KeptKey = { readonly serviceId: string; readonly trackingId: string };

const KeptShape = v.object({ password: v.string(), until: v.string() });

/** Makes the folders of dropped and accepted passwords. */
export async function openStored(state: string, nowMs: number): Promise<void> {
  await makeFolderDurably(dropFolderIn(state), 0o700);
  await makeFolderDurably(keptIn(state), 0o700);
  await clearTemporaries(keptIn(state), nowMs);
}

/** The accepted password of a transfer. */
export async function readKept(state: string, of: KeptKey): Promise<Secret | undefined> {
  const kept = parseAs(KeptShape, await tryReadFile(pathOfKept(state, of)));
  return kept && new Secret(kept.password);
}

export async function keepPassword(
  state: string,
  of: KeptKey,
  password: Secret,
  untilMs: number,
): Promise<void> {
  const until = new Date(untilMs).toISOString();
  const text = JSON.stringify({ password: password.reveal(), until });
  await replaceDurably(pathOfKept(state, of), text, 0o600);
}

export async function forgetKept(state: string, of: KeptKey): Promise<void> {
  await tryUnlink(systemDisk, pathOfKept(state, of));
}

/** Removes accepted passwords whose time is over, and damaged ones. */
export async function forgetExpired(state: string, nowMs: number): Promise<void> {
  for (const name of await readdir(keptIn(state))) {
    if (!/^[0-9a-f]{64}$/.test(name)) continue;
    const path = join(keptIn(state), name);
    const kept = parseAs(KeptShape, await tryReadFile(path));
    const isNeeded = kept !== undefined && Date.parse(kept.until) >= nowMs;
    if (!isNeeded) await tryUnlink(systemDisk, path);
  }
}

function keptIn(state: string): string {
  return join(state, "accepted");
}

function pathOfKept(state: string, { serviceId, trackingId }: KeptKey): string {
  return join(keptIn(state), hash("sha256", `${serviceId}\0${trackingId}`, "hex"));
}
