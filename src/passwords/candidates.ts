/** Finds candidates for a password: accepted before, dropped by a person, carried by the link, or named by a rule. */
import { makeFolderDurably } from "../base/durable.ts";
import { addressForm, makeMatcher } from "../base/normal-form.ts";
import type { Secret } from "../base/secret.ts";
import { NO_PASSWORD, type SpentAttempts } from "../model/attempts.ts";
import type { Mailbox, PasswordRule } from "../model/mailbox.ts";
import { expiryOf } from "../model/record.ts";
import { passwordOfLink, takesAnyPassword } from "../model/transfer.ts";
import {
  clearDrop,
  type Drop,
  DropFolder,
  type HandDrop,
  markOf,
  readDrop,
  readPassword,
  takeAway,
} from "./dropped.ts";
import { KeptPasswords } from "./kept.ts";
import type { CoRecipients, PasswordRequest } from "./port.ts";

export interface Candidate {
  readonly password: Secret;
  /**
   * `kept`: accepted before, for this transfer. `drop`: supplied by a person. `link`: the sender chose none, and the
   * link carries one. `none`: the sender chose none, and the link carries none. `rule`: configured.
   */
  readonly source: "kept" | "drop" | "link" | "none" | "rule";
  /** The file of a dropped password. */
  readonly path?: string;
  /** Missing if a command has dropped it. */
  readonly byHand?: HandDrop | undefined;
}

export class Candidates {
  readonly #drops: DropFolder;
  readonly #kept: KeptPasswords;
  readonly #coRecipients: CoRecipients;
  readonly #keepMs: number;

  private constructor(drops: DropFolder, kept: KeptPasswords, coRecipients: CoRecipients, keepMs: number) {
    this.#drops = drops;
    this.#kept = kept;
    this.#coRecipients = coRecipients;
    this.#keepMs = keepMs;
  }

  /** `keepMs`: how long a supplied password is kept that was accepted. */
  static async open(
    state: string,
    nowMs: number,
    coRecipients: CoRecipients,
    keepMs: number,
  ): Promise<Candidates> {
    const drops = new DropFolder(state);
    await makeFolderDurably(drops.folder, 0o700);
    return new Candidates(drops, await KeptPasswords.open(state, nowMs), coRecipients, keepMs);
  }

  /** Best first, each read when it is asked for. Throws `SECRET_UNREADABLE` if a rule's secret cannot be read. */
  async *find(request: PasswordRequest, signal: AbortSignal): AsyncIterable<Candidate> {
    const { mailbox, query, record } = request;
    const kept = await this.#kept.read(keyOf(request));
    if (kept !== undefined) yield { password: kept, source: "kept" };
    for (const path of await this.#dropsFor(request)) {
      const dropped = await readDrop(path);
      if (dropped !== undefined) yield { ...dropped, source: "drop", path };
    }
    if (!takesAnyPassword(record.securityMode)) return;
    const link = await query.link();
    const carried = link === undefined ? undefined : passwordOfLink(link);
    if (carried !== undefined) yield { password: carried, source: "link" };
    else if (query.hasNone) yield { password: NO_PASSWORD, source: "none" };
    for (const rule of mailbox.passwords) {
      const password = fits(rule, query) ? await readRule(rule, request, signal) : undefined;
      if (password !== undefined) yield { password, source: "rule" };
    }
  }

  /** Keeps a supplied password for a while, and takes it out of the drop folder. The service chooses the expiry. */
  async accepted(
    request: PasswordRequest,
    { source, password, path }: Candidate,
    nowMs: number,
  ): Promise<void> {
    if (source !== "drop" || path === undefined) return;
    const untilMs = Math.min(expiryOf(request.record), nowMs + this.#keepMs);
    await this.#kept.keep(keyOf(request), password, untilMs);
    await takeAway(path, password);
  }

  /** Forgets a supplied password for good. */
  async refused(request: PasswordRequest, { source, password, path }: Candidate): Promise<void> {
    if (source === "kept") await this.#kept.forget(keyOf(request));
    if (path !== undefined) await takeAway(path, password);
  }

  /**
   * Removes a dropped password if no mailbox that it is meant for has an attempt left. Returns whether it did. If
   * answers were lost the password stays: it may be right, and is sent once an operator allows another attempt.
   */
  async removeUnsent(
    { mailbox, query }: PasswordRequest,
    { password, path }: Candidate,
    { spent, unanswered }: SpentAttempts,
  ): Promise<boolean> {
    if (path === undefined || unanswered > 0) return false;
    const others = await this.#coRecipients.open(mailbox.name, query.trackingId);
    if (others.some(({ passwordAttempts }) => spent < passwordAttempts)) return false;
    await takeAway(path, password);
    return true;
  }

  /** A dropped file holds no password, or it is not clear which service it is for. */
  async isUnusable(request: PasswordRequest): Promise<boolean> {
    if (await this.isAmbiguous(request)) return true;
    for (const path of await this.#dropsFor(request)) {
      if ((await markOf(path)) !== undefined && (await readPassword(path)) === undefined) return true;
    }
    return false;
  }

  /** Several services list this tracking-id, and a dropped password names none of their mailboxes. */
  async isAmbiguous({ mailbox, query: { trackingId } }: PasswordRequest): Promise<boolean> {
    if ((await markOf(this.#drops.pathOf(trackingId))) === undefined) return false;
    return this.#coRecipients.isElsewhere(mailbox.name, trackingId);
  }

  async forgetDropped(isSettled: (drop: Drop) => Promise<boolean>): Promise<void> {
    for (const drop of await this.#drops.list()) {
      if (await isSettled(drop)) await clearDrop(drop.path);
    }
  }

  forgetExpired(nowMs: number): Promise<void> {
    return this.#kept.forgetExpired(nowMs);
  }

  async supplied({ name }: Mailbox, trackingId: string): Promise<string | undefined> {
    const marks = await Promise.all(this.#drops.pathsFor(name, trackingId).map(markOf));
    const serviceId = this.#coRecipients.serviceOf(name);
    const isKept = await this.#kept.has({ serviceId, trackingId });
    return marks.every((mark) => mark === undefined) && !isKept ? undefined : [...marks, isKept].join();
  }

  async #dropsFor({ mailbox: { name }, query: { trackingId } }: PasswordRequest): Promise<string[]> {
    const found = [];
    for (const path of this.#drops.pathsFor(name, trackingId)) {
      if ((await markOf(path)) !== undefined) found.push(path);
    }
    const common = this.#drops.pathOf(trackingId);
    const mayBeAmbiguous = common !== undefined && found.includes(common);
    const isAmbiguous = mayBeAmbiguous && (await this.#coRecipients.isElsewhere(name, trackingId));
    return isAmbiguous ? found.filter((path) => path !== common) : found;
  }
}

async function readRule(
  { password }: PasswordRule,
  { mailbox, query: { sender, trackingId }, record }: PasswordRequest,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  if ("read" in password) return password.read(signal);
  return password.ask({ mailbox: mailbox.name, sender, trackingId, subject: record.subject ?? "" }, signal);
}

/** Every condition that the rule names must hold. A sender without a normal form fits no rule for senders. */
export function fits(
  { sender, trackingId }: PasswordRule,
  transfer: { readonly trackingId: string; readonly sender: string },
): boolean {
  return (
    (trackingId === undefined || trackingId === transfer.trackingId) &&
    makeMatcher(sender, addressForm)(transfer.sender)
  );
}

function keyOf({ serviceId, query }: PasswordRequest) {
  return { serviceId, trackingId: query.trackingId };
}
