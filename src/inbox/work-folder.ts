/**
 * Checks that the work folder is the one that Inlet made for this inbox, that this program knows its format, and that the
 * folders of a running daemon are still there and writable: a disk can be unmounted, replaced or mounted read-only at any time.
 *
 * The work folder holds the ledger. With another folder in its place, everything that the service still lists would be
 * delivered again; through a link, Inlet would write elsewhere. So the folder carries an id that no other user can
 * read, and the state folder remembers in which work folder each inbox and each mailbox was served last. Numbers of devices
 * are used again, and identify nothing.
 */
import { hash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { createDurably, exists, makeFolderDurably, replaceDurably, temporaryName } from "../base/durable.ts";
import { Fault, tolerate, unreadable } from "../base/faults.ts";
import {
  lookAt,
  lookAtLink,
  lstat,
  readdir,
  rename,
  rm,
  stat,
  statfs,
  tryLstat,
  tryReadFile,
  writeFile,
} from "../base/files.ts";
import { randomHex } from "../base/random.ts";
import { readVersion } from "../base/version.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { type Actor, actorOf, type Decision, isDecision } from "../model/order.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { ownerOfNew } from "./exposure.ts";

/** Raised if an older program could not read, or would damage, files of a newer one. */
export const FORMAT = 5;
/** What this one wrote is read as it is: it knows no keys of mailboxes, and no owners of steps. */
const FORMAT_BEFORE = 4;

export interface Folders {
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
}

/** What identifies a mailbox, whatever its name is. */
interface ServedMailbox {
  readonly name: string;
  readonly email: string;
  readonly service: { readonly baseUrl: URL };
}

/** The folders, and the mailboxes that are served in them. */
export interface Served extends Folders {
  readonly mailboxes: readonly ServedMailbox[];
}

/**
 * A question about records that are gone or older. Nothing is changed until an operator has answered it for each of these
 * mailboxes.
 */
export interface Question {
  readonly code: "WORK_LOST" | "WORK_RESTORED";
  readonly detail: string;
  /** What is gone. An answer to one question answers no other. */
  readonly about: string;
  readonly mailboxes: readonly ServedMailbox[];
  /** The inbox of the first of them before. */
  readonly before?: string;
}

/** `id`: the same whoever reads it. */
interface Answer extends Actor {
  readonly decision: Decision;
  readonly id: string;
}

/** By the name of the mailbox. */
export type Answers = ReadonlyMap<string, Answer>;

/** Whether the work folder is missing, or is not the one in which the inbox, or one of its mailboxes, was served last. */
export async function findLost(served: Served): Promise<Question | undefined> {
  const { work, inbox, mailboxes } = served;
  const id = await readWorkId(work);
  const ofInbox = await readWord(memoryOf(served));
  const isLost = ofInbox !== undefined && ofInbox !== id;
  const lost = isLost ? [...mailboxes] : [];
  const remembered = new Set(isLost ? [ofInbox] : []);
  let before = inbox;
  for (const mailbox of isLost ? [] : mailboxes) {
    const [known, ...place] = ((await tryReadText(memoryOfMailbox(served, mailbox))) ?? "").trim().split(" ");
    if (!known || known === id) continue;
    if (lost.length === 0) before = place.join(" ");
    lost.push(mailbox);
    remembered.add(known);
  }
  if (remembered.size === 0) return undefined;
  const what =
    before === inbox ? "this inbox" : `the mailbox ${lost[0]?.email}, which was delivered to ${before},`;
  const isThere = await exists(work);
  const detail = isThere ? `${work} is not the one that ${what} had before` : `${work} is missing`;
  return { code: "WORK_LOST", detail, about: [...remembered].toSorted().join(" "), mailboxes: lost, before };
}

/** Throws the question as a fault unless it is answered for every mailbox. */
export async function demandAnswers(served: Served, question: Question): Promise<Answers> {
  const answers = await readAnswers(served, question);
  const isAnswered = answers.size > 0 && answers.size === question.mailboxes.length;
  if (!isAnswered) throw new Fault(question.code, { detail: question.detail });
  return answers;
}

export async function readAnswers(served: Served, question: Question): Promise<Answers> {
  const answers = new Map<string, Answer>();
  for (const mailbox of question.mailboxes) {
    const path = answerPath(served, question, mailbox);
    const [, decision = "", who = "", from = ""] = ANSWER_TEXT.exec((await tryReadText(path)) ?? "") ?? [];
    const id = digestOf(basename(path));
    if (isDecision(decision)) answers.set(mailbox.name, { decision, id, ...actorOf(who, from) });
  }
  return answers;
}

/** For each mailbox of the question. Durable, and never changed: the first answer counts. */
export async function giveAnswer(
  served: Served,
  question: Question,
  decision: Decision,
  { who, from }: Actor,
): Promise<void> {
  for (const mailbox of question.mailboxes)
    await writeOnce(answerPath(served, question, mailbox), `${decision} ${who} ${from}`, served.state);
}

/** `undefined` before the first start with this work folder. */
export function readWorkId(work: string): Promise<string | undefined> {
  return readWord(idOf(work));
}

/** Throws `WORK_NEWER` or `WORK_OLDER`. Called before anything in the work folder is changed. */
export async function demandKnownFormat(work: string): Promise<void> {
  const { format, program } = await readFormat(work);
  if (format === FORMAT || format === FORMAT_BEFORE) return;
  // A new work folder gets its format before anything else that lasts.
  if (format === 0 && !(await exists(join(work, "ledger")))) return;
  if (format < FORMAT) throw new Fault("WORK_OLDER", { detail: `${work} was used by ${program}` });
  throw new Fault("WORK_NEWER", { detail: `${work} was used by ${program}, and this is ${readVersion()}` });
}

/** The folders as they were opened. */
export interface KnownFolders extends Folders {
  /** Of the work folder, and remembered by the state folder. */
  readonly id: string;
  /** In the work folder, for temporary files. */
  readonly temporary: string;
  /** The file systems of the two folders. */
  readonly devices: { readonly work: number; readonly state: number };
}

/**
 * Gives the work folder an id, and notes the format. May be called twice. `temporary`: a folder in the work folder whose
 * files are removed after a crash.
 */
export async function identifyWork(folders: Folders, temporary: string): Promise<KnownFolders> {
  const { work, state, inbox } = folders;
  await makeFolderDurably(dirname(memoryOf(folders)), 0o700);
  await writeOnce(idOf(work), randomHex(16), temporary);
  // Of several processes that share the work folder, the first one has chosen the id.
  const id = (await readWorkId(work)) ?? "";
  if ((await readFormat(work)).format < FORMAT) {
    await replaceDurably(formatOf(work), `${FORMAT} ${readVersion()}\n`, 0o600, temporary);
  }
  // An earlier version named it after the inbox.
  const watermark = watermarkOf({ state, id });
  if (!(await exists(watermark))) {
    await rename(`${memoryOf(folders)}.last`, watermark).catch(tolerate("ENOENT"));
  }
  const devices = { work: (await stat(work)).dev, state: (await stat(state)).dev };
  return { inbox, work, state, id, temporary, devices };
}

/**
 * From now on the state folder expects the mailboxes in this work folder, and answers about an earlier one are forgotten: they
 * must not count if it is lost again. May be called twice.
 */
export async function rememberWork(served: Served): Promise<void> {
  const { inbox, state, work, mailboxes } = served;
  const memory = memoryOf(served);
  const text = `${await readWorkId(work)} ${inbox}`;
  for (const path of [memory, ...mailboxes.map((mailbox) => memoryOfMailbox(served, mailbox))]) {
    if ((await tryReadText(path))?.trim() !== text) await replaceDurably(path, `${text}\n`, 0o600, state);
  }
  for (const name of await readdir(dirname(memory))) {
    const isAnswer = name.startsWith(`${basename(memory)}.`) && name.endsWith(ANSWER);
    if (isAnswer) await rm(join(dirname(memory), name), { force: true });
  }
}

/**
 * The users whose socket a command takes for the daemon's. Who owns the inbox may replace the work folder, so its owner counts
 * only where no state folder is known that remembers this inbox. Throws the errors of the disk.
 */
export async function findDaemonUsers({ inbox, work, state }: Folders): Promise<readonly number[]> {
  const memory = await lookAtLink(memoryOf({ inbox, state }));
  const found = memory === undefined ? [await tryLstat(work)] : [memory, await lookAt(state)];
  return found.flatMap((facts) => facts?.uid ?? []);
}

/** The file in the state folder that names the last record of a work folder. */
export function watermarkOf({ state, id }: Pick<KnownFolders, "state" | "id">): string {
  return join(state, "inboxes", `${id}.last`);
}

/** The file in the state folder that remembers the work folder of an inbox. */
function memoryOf({ inbox, state }: Pick<Folders, "inbox" | "state">): string {
  return join(state, "inboxes", digestOf(inbox));
}

/** The same for a mailbox, whatever its name is. */
function memoryOfMailbox({ state }: Folders, { email, service }: ServedMailbox): string {
  return join(state, "inboxes", `${digestOf(serviceIdOf(service.baseUrl), canonicalAddress(email))}.mailbox`);
}

const ANSWER = ".answer";
const ANSWER_TEXT = /^(\S+)(?: (.*) (\S+))?\n$/;

function answerPath(served: Served, { about }: Question, { email, service }: ServedMailbox): string {
  const digest = digestOf(about, serviceIdOf(service.baseUrl), canonicalAddress(email));
  return `${memoryOf(served)}.${digest}${ANSWER}`;
}

function digestOf(...texts: readonly string[]): string {
  return hash("sha256", texts.join("\0")).slice(0, 32);
}

/** Throws `WORK_NOT_OURS` if the folder, or an entry in it, is a link or belongs to another user. */
export async function demandOurs(work: string): Promise<void> {
  if (!(await exists(work))) return;
  const { uid } = await lstat(work);
  await demandPlain(work, uid);
  if (uid !== process.geteuid?.() && uid !== (await ownerOfNew(work))) throw notOurs(work, uid);
  for (const name of await readdir(work)) await demandPlain(join(work, name), uid);
}

async function demandPlain(path: string, owner: number): Promise<void> {
  // Another process of ours may have removed it.
  const found = await lstat(path).catch(tolerate("ENOENT"));
  if (found?.isSymbolicLink()) throw new Fault("WORK_NOT_OURS", { detail: `${path} is a link` });
  if (found !== undefined && found.uid !== owner) throw notOurs(path, found.uid);
}

function notOurs(path: string, uid: number): Fault {
  const detail = `${path} belongs to user ${uid}, and Inlet runs as user ${process.geteuid?.()}`;
  return new Fault("WORK_NOT_OURS", { detail });
}

function idOf(work: string): string {
  return join(work, "id");
}

function formatOf(work: string): string {
  return join(work, "format");
}

/** 0 if no format is noted yet. */
async function readFormat(work: string): Promise<{ readonly format: number; readonly program: string }> {
  const [, format, version] = /^(\d+)(?: (\S+))?/.exec((await tryReadText(formatOf(work))) ?? "") ?? [];
  return { format: Number(format ?? 0), program: `Inlet ${version ?? "of an unknown version"}` };
}

/** The first word of a file; `undefined` if the file is missing. */
async function readWord(path: string): Promise<string | undefined> {
  return (await tryReadText(path))?.split(/\s/)[0];
}

async function tryReadText(path: string): Promise<string | undefined> {
  return tryReadFile(path).catch((error: unknown) => {
    throw unreadable(path, error);
  });
}

async function writeOnce(path: string, text: string, temporary: string): Promise<void> {
  await createDurably(path, `${text}\n`, temporary).catch(tolerate("TARGET_EXISTS"));
}

/** Throws if these are no longer the known folders. Changes nothing. */
export async function demandSame(known: KnownFolders): Promise<void> {
  const { inbox, work, state, devices } = known;
  await demandId(idOf(work), known, async () => {
    const isInboxHere = (await tryStat(inbox))?.dev === devices.work;
    return explainLoss(isInboxHere ? work : inbox, devices.work);
  });
  await demandId(memoryOf(known), known, () => explainLoss(state, devices.state));
  await demandInbox(known, inbox);
}

async function demandId(path: string, { id }: KnownFolders, explain: () => Promise<Fault>): Promise<void> {
  if ((await readWord(path)) === id) return;
  const fault = await explain();
  // The disk may have been mounted meanwhile, and the explanation is wrong then.
  if ((await readWord(path)) !== id) throw fault;
}

/** Room for the records of a delivery. A disk with less is full: some of them would be written, and others not. */
export const NEEDED_BYTES = 32 * 1024;

/** A disk that was full needs more room, or files that come and go would begin and end the trouble again and again. */
export const NEEDED_AFTER_TROUBLE = { bytes: 4 * NEEDED_BYTES, files: 32 };

const ZEROS = Buffer.alloc(NEEDED_AFTER_TROUBLE.bytes);

/** Throws if no file of a few blocks can be written in the work folder or the state folder. */
export async function demandWritable(
  { temporary, state }: KnownFolders,
  wasInTrouble = false,
): Promise<void> {
  const bytes = wasInTrouble ? NEEDED_AFTER_TROUBLE.bytes : NEEDED_BYTES;
  for (const folder of [temporary, state]) {
    const path = join(folder, temporaryName());
    try {
      await writeFile(path, ZEROS.subarray(0, bytes), { flag: "wx", mode: 0o600 });
      if (wasInTrouble) await demandFiles(folder);
      await rm(path, { force: true });
    } catch (error) {
      // A full disk leaves a part of the file. If the disk refuses the removal too, the next start removes it.
      await rm(path, { force: true }).catch(() => {});
      throw error;
    }
  }
}

async function demandFiles(folder: string): Promise<void> {
  const { files, ffree } = await statfs(folder);
  // Some file systems have no fixed number of files and report zero.
  if (files > 0 && ffree < NEEDED_AFTER_TROUBLE.files) {
    throw new Fault("DISK_FULL", { detail: `${folder}: only ${ffree} more files fit (inodes)` });
  }
}

/** Throws if a delivery cannot be renamed into an inbox. */
export async function demandInbox({ work, devices }: KnownFolders, inbox: string): Promise<void> {
  const isThere = async () => {
    const found = await tryStat(inbox);
    // After a remount, the device of the work folder may be another one.
    return found !== undefined && (found.dev === devices.work || found.dev === (await tryStat(work))?.dev);
  };
  if (await isThere()) return;
  const loss = await explainLoss(inbox, devices.work);
  // It may have come back between the two looks.
  if (!(await isThere())) throw loss;
}

/** `device`: of the file system that the folder was on. */
async function explainLoss(folder: string, device: number): Promise<Fault> {
  let nearest = folder;
  let found = await tryStat(nearest);
  while (found === undefined) {
    nearest = dirname(nearest);
    found = await tryStat(nearest);
  }
  if (found.dev === device) {
    return new Fault(nearest === folder ? "DISK_REPLACED" : "FOLDER_MISSING", { detail: folder });
  }
  // Without a mount, a folder is on the file system of the folder above it.
  const isMountPoint = found.dev !== (await tryStat(dirname(nearest)))?.dev;
  return new Fault(isMountPoint ? "DISK_REPLACED" : "DISK_UNMOUNTED", { detail: folder });
}

function tryStat(path: string): Promise<{ readonly dev: number } | undefined> {
  return stat(path).catch(tolerate("ENOENT", "ENOTDIR"));
}
