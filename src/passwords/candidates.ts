/** Finds candidates for a password: accepted before, dropped by a person, carried by the link, or named by a rule. */
import { addressForm, makeMatcher } from "../base/normal-form.ts";
import type { Secret } from "../base/secret.ts";
import { NO_PASSWORD, type SpentAttempts } from "../model/attempts.ts";
import type { PasswordRule } from "../model/mailbox.ts";
import { expiryOf } from "../model/record.ts";
import { passwordOfLink, takesAnyPassword } from "../model/transfer.ts";
import type { CoRecipients, PasswordRequest } from "./port.ts";
import {
  forgetKept,
  type HandDrop,
  keepPassword,
  markOf,
  pathOfDrop,
  pathsOfDrops,
  readDrop,
  readKept,
  readPassword,
  takeAway,
} from "./stored.ts";

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
  readonly #state: string;
  readonly #coRecipients: CoRecipients;
  readonly #keepMs: number;

  /** `keepMs`: how long a supplied password is kept that was accepted. */
  constructor(state: string, coRecipients: CoRecipients, keepMs: number) {
    this.#state = state;
    this.#coRecipients = coRecipients;
    this.#keepMs = keepMs;
  }

  /** Best first, each read when it is asked for. Throws `SECRET_UNREADABLE` if a rule's secret cannot be read. */
  async *find(request: PasswordRequest, signal: AbortSignal): AsyncIterable<Candidate> {
    const { mailbox, record } = request;
    const kept = await readKept(this.#state, keyOf(request));
    if (kept !== undefined) yield { password: kept, source: "kept" };
    for (const path of await this.#dropsFor(request)) {
      const dropped = await readDrop(path);
      if (dropped !== undefined) yield { ...dropped, source: "drop", path };
    }
    if (!takesAnyPassword(record.securityMode)) return;
    const link = await request.link();
    const carried = link && passwordOfLink(link);
    if (carried !== undefined) yield { password: carried, source: "link" };
    else if (record.hasNoPassword) yield { password: NO_PASSWORD, source: "none" };
    for (const rule of mailbox.passwords) {
      const password = fits(rule, record) ? await readRule(rule, request, signal) : undefined;
      if (password !== undefined) yield { password, source: "rule" };
    }
  }

  /** Keeps a supplied password for a while, and takes it out of the drop folder. The service chooses the expiry. */
  async accepted(request: PasswordRequest, { password, path }: Candidate, nowMs: number): Promise<void> {
    if (path === undefined) return;
    const untilMs = Math.min(expiryOf(request.record), nowMs + this.#keepMs);
    await keepPassword(this.#state, keyOf(request), password, untilMs);
    await takeAway(path, password);
  }

  /** Forgets a supplied password for good. */
  async refused(request: PasswordRequest, { source, password, path }: Candidate): Promise<void> {
    if (source === "kept") await forgetKept(this.#state, keyOf(request));
    if (path !== undefined) await takeAway(path, password);
  }

  /**
   * Removes a dropped password if no mailbox that it is meant for has an attempt left. Returns whether it did. If
   * answers were lost the password stays: it may be right, and is sent once an operator allows another attempt.
   */
  async removeUnsent(
    { mailbox, record }: PasswordRequest,
    { password, path }: Candidate,
    { spent, unanswered }: SpentAttempts,
  ): Promise<boolean> {
    if (path === undefined || unanswered > 0) return false;
    const others = await this.#coRecipients.open(mailbox.name, record.trackingId);
    if (others.some(({ passwordAttempts }) => spent < passwordAttempts)) return false;
    await takeAway(path, password);
    return true;
  }

  /** Why a dropped password is not used: its file holds none, or it is not clear which service it is for. */
  async whyUnusable(request: PasswordRequest): Promise<"unusable" | "ambiguous" | undefined> {
    if (await this.#isAmbiguous(request)) return "ambiguous";
    for (const path of await this.#dropsFor(request)) {
      if ((await markOf(path)) !== undefined && (await readPassword(path)) === undefined) return "unusable";
    }
    return undefined;
  }

  async supplied(mailbox: string, trackingId: string): Promise<string | undefined> {
    const marks = await Promise.all(pathsOfDrops(this.#state, mailbox, trackingId).map(markOf));
    const serviceId = this.#coRecipients.serviceOf(mailbox);
    const isKept = (await readKept(this.#state, { serviceId, trackingId })) !== undefined;
    return marks.every((mark) => mark === undefined) && !isKept ? undefined : [...marks, isKept].join();
  }

  /** Several services list this tracking-id, and a dropped password names none of their mailboxes. */
  async #isAmbiguous({ mailbox, record: { trackingId } }: PasswordRequest): Promise<boolean> {
    if ((await markOf(pathOfDrop(this.#state, trackingId))) === undefined) return false;
    return this.#coRecipients.isElsewhere(mailbox.name, trackingId);
  }

  async #dropsFor(request: PasswordRequest): Promise<string[]> {
    const { trackingId } = request.record;
    const ambiguous = (await this.#isAmbiguous(request)) ? pathOfDrop(this.#state, trackingId) : undefined;
    return pathsOfDrops(this.#state, request.mailbox.name, trackingId).filter((path) => path !== ambiguous);
  }
}

async function readRule(
  { password }: PasswordRule,
  { mailbox, record: { sender, trackingId, subject = "" } }: PasswordRequest,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  if ("read" in password) return password.read(signal);
  return password.ask({ mailbox: mailbox.name, sender, trackingId, subject }, signal);
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

function keyOf({ service, record }: PasswordRequest) {
  return { serviceId: service.id, trackingId: record.trackingId };
}
