/** What earlier runs, or other processes, have begun and not finished. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { asFault, type Fault } from "../base/faults.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Receipt } from "../model/receipt.ts";
import type { Passwords } from "../passwords/port.ts";
import type { Receipts } from "../receipts/port.ts";
import type { MailboxState } from "./state.ts";

const MOST_QUARANTINED = 1_000;
/** Written beside what is kept. */
const REASON = "reason.json";

type OnDamaged = (path: string, reason: string) => void;

/** Hears what is wrong with what was left. Must not throw. */
export interface LeftOverWatch {
  receiptDamaged: OnDamaged;
  /** Something in the staging folder that nobody needs cannot be taken away. */
  leftOver(fault: Fault): void;
}

/** The same, for who looks again and again: of each file it hears once. */
export function tellOnce(onDamaged: OnDamaged): OnDamaged {
  const told = new Set<string>();
  return (path, reason) => {
    if (!told.has(path)) onDamaged(path, reason);
    told.add(path);
  };
}

/** Tells mailboxes of their unfinished transfers, and returns all there are, also of mailboxes that are not ours. */
async function learnUnfinished(
  receipts: Receipts,
  mailboxes: ReadonlyMap<string, MailboxState>,
  onDamaged: OnDamaged,
): Promise<Receipt[]> {
  const unfinished = await Array.fromAsync(receipts.open(onDamaged));
  noteUnfinished(unfinished, mailboxes);
  return unfinished;
}

/** Mailboxes that are not ours are passed over. */
export function noteUnfinished(
  unfinished: readonly Receipt[],
  mailboxes: ReadonlyMap<string, MailboxState>,
): void {
  for (const receipt of unfinished) {
    const expiresMs = receipt.expires === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(receipt.expires);
    const state = mailboxes.get(receipt.mailbox);
    state?.undelivered.set(receipt.trackingId, { expiresMs });
    // An operator may have sent it back to the start since a poll found it settled.
    state?.settled.delete(receipt.trackingId);
  }
}

/** The receipts of what is kept in quarantine, as far as they can be read; no more of them than a person would look at. */
export async function listQuarantined(
  inbox: Pick<Inbox, "quarantine">,
  receipts: Pick<Receipts, "find">,
  onDamaged: OnDamaged,
): Promise<Receipt[]> {
  const found: Receipt[] = [];
  const names = await readdir(inbox.quarantine).catch(() => []);
  for (const name of names.slice(0, MOST_QUARANTINED)) {
    const path = join(inbox.quarantine, name, REASON);
    const text = await readFile(path, "utf8").catch(() => undefined);
    // An operator may be about to take it away.
    if (text === undefined) continue;
    const key = parseReason(text);
    if (key === undefined) onDamaged(path, "this does not say which transfer is kept here");
    const receipt = key && (await receipts.find(key).catch(() => undefined));
    if (receipt?.state === "quarantined") found.push(receipt);
  }
  return found;
}

const Reason = v.object({ mailbox: v.string(), trackingId: v.string() });

/** `undefined` where the text is damaged. */
function parseReason(text: string): v.InferOutput<typeof Reason> | undefined {
  try {
    const result = v.safeParse(Reason, JSON.parse(text));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
}

/**
 * What a crash left of transfers that are settled: files put together, and passwords kept. What is staged is listed
 * first: it had a receipt before, so one that has none afterwards is settled, whoever did it. That something was
 * delivered is told by its staged content being gone: what belongs to a receipt that cannot be read is left alone.
 */
export async function clearLeftOvers(
  inbox: Inbox,
  passwords: Passwords,
  receipts: Receipts,
  mailboxes: ReadonlyMap<string, MailboxState>,
  watch: LeftOverWatch,
): Promise<void> {
  const staged = await inbox.listStaged();
  let areAllRead = true;
  const unfinished = await learnUnfinished(receipts, mailboxes, (path, reason) => {
    areAllRead = false;
    watch.receiptDamaged(path, reason);
  });
  if (areAllRead) {
    await passwords.forgetOthers(unfinished);
    await passwords.forgetDropped((trackingId) => isSettled(trackingId, unfinished, receipts, mailboxes));
  }
  const wanted = new Set(await receipts.openNames());
  for (const key of staged) {
    // It takes room and does no harm: no reason not to start.
    if (!wanted.has(key)) await inbox.dropStaged(key).catch((error) => watch.leftOver(asFault(error)));
  }
}

/** It is known here, and nobody has anything left to do with it. */
async function isSettled(
  trackingId: string,
  unfinished: readonly Receipt[],
  receipts: Receipts,
  mailboxes: ReadonlyMap<string, MailboxState>,
): Promise<boolean> {
  if (unfinished.some((receipt) => receipt.trackingId === trackingId)) return false;
  for (const mailbox of mailboxes.keys()) {
    if ((await receipts.find({ mailbox, trackingId })) !== undefined) return true;
  }
  return false;
}
