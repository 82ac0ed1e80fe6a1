/** Where passwords come from: earlier ones that were accepted, the drop folder, links that carry one, and rules. */
import { makeFolderDurably } from "../base/durable.ts";
import type { Secret } from "../base/secret.ts";
import { NO_PASSWORD, type SpentAttempts } from "../model/attempts.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { passwordOfLink } from "../model/transfer.ts";
import { clearDrop, type Drop, DropFolder, markOf, readPassword, takeAway } from "./dropped.ts";
import { KeptPasswords } from "./kept.ts";
import type { CoRecipients, WaitingRequest } from "./port.ts";
import { fits } from "./rules.ts";

export interface Candidate {
  readonly password: Secret;
  /**
   * `kept`: accepted before, for this very transfer. `drop`: a person supplied it. `link`: the sender chose none, and the
   * link carries one. `none`: the sender chose none, and the link carries none. `rule`: the configuration says so.
   */
  readonly origin: "kept" | "drop" | "link" | "none" | "rule";
  /** The file of a dropped one. */
  readonly path?: string;
}

export class Candidates {
  readonly #drops: DropFolder;
  readonly #kept: KeptPasswords;
  readonly #coRecipients: CoRecipients;

  private constructor(drops: DropFolder, kept: KeptPasswords, coRecipients: CoRecipients) {
    this.#drops = drops;
    this.#kept = kept;
    this.#coRecipients = coRecipients;
  }

  static async open(state: string, nowMs: number, coRecipients: CoRecipients): Promise<Candidates> {
    const drops = new DropFolder(state);
    await makeFolderDurably(drops.folder, 0o700);
    return new Candidates(drops, await KeptPasswords.open(state, nowMs), coRecipients);
  }

  /** Best first; each is read when it is its turn. Throws `SECRET_UNREADABLE` where a rule's secret cannot be read. */
  async *find(request: WaitingRequest, signal: AbortSignal): AsyncIterable<Candidate> {
    const { mailbox, query } = request;
    const kept = await this.#kept.read(keyOf(request));
    if (kept !== undefined) yield { password: kept, origin: "kept" };
    for (const path of await this.#dropsFor(request)) {
      const dropped = await readPassword(path);
      if (dropped !== undefined) yield { password: dropped, origin: "drop", path };
    }
    const link = await query.link();
    const carried = link === undefined ? undefined : passwordOfLink(link);
    if (carried !== undefined) yield { password: carried, origin: "link" };
    else if (query.hasNone) yield { password: NO_PASSWORD, origin: "none" };
    for (const rule of mailbox.passwords) {
      if (fits(rule, query)) yield { password: await rule.password.read(signal), origin: "rule" };
    }
  }

  /** Keeps a supplied password until the transfer expires, and takes it out of the drop folder. */
  async accepted(
    request: WaitingRequest,
    { origin, password, path }: Candidate,
    nowMs: number,
  ): Promise<void> {
    if (origin !== "drop" || path === undefined) return;
    await this.#kept.keep(keyOf(request), password, request.record.expires, nowMs);
    await takeAway(path, password);
  }

  /** Forgets a supplied password for good. */
  async refused(request: WaitingRequest, { origin, password, path }: Candidate): Promise<void> {
    if (origin === "kept") await this.#kept.forget(keyOf(request));
    if (path !== undefined) await takeAway(path, password);
  }

  /**
   * Removes a dropped password that no attempt is left for, by the budget of any mailbox that it is meant for. Returns
   * whether it did. Where answers were lost it stays: it may be the right one, and is sent when an operator allows that.
   */
  async removeUnsent(
    { mailbox, query }: WaitingRequest,
    { password, path }: Candidate,
    { spent, unanswered }: SpentAttempts,
  ): Promise<boolean> {
    if (path === undefined || unanswered > 0) return false;
    const others = await this.#coRecipients.open(mailbox.name, query.trackingId);
    if (others.some(({ passwordAttempts }) => spent < passwordAttempts)) return false;
    await takeAway(path, password);
    return true;
  }

  /** A file was dropped that holds no password, or does not say which service it is for. */
  async isUnusable(request: WaitingRequest): Promise<boolean> {
    if (await this.isAmbiguous(request)) return true;
    for (const path of await this.#dropsFor(request)) {
      if ((await markOf(path)) !== undefined && (await readPassword(path)) === undefined) return true;
    }
    return false;
  }

  /** Several services list this tracking-id, and a dropped password does not say which of them it is for. */
  async isAmbiguous({ mailbox, query: { trackingId } }: WaitingRequest): Promise<boolean> {
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
    const origin = this.#coRecipients.serviceOf(name);
    const isKept = await this.#kept.has({ origin, trackingId });
    return marks.every((mark) => mark === undefined) && !isKept ? undefined : [...marks, isKept].join();
  }

  async #dropsFor({ mailbox: { name }, query: { trackingId } }: WaitingRequest): Promise<string[]> {
    const paths = this.#drops.pathsFor(name, trackingId);
    const found = [];
    for (const path of paths) if ((await markOf(path)) !== undefined) found.push(path);
    const common = this.#drops.pathOf(trackingId);
    const isAmbiguous =
      common !== undefined &&
      found.includes(common) &&
      (await this.#coRecipients.isElsewhere(name, trackingId));
    return isAmbiguous ? found.filter((path) => path !== common) : found;
  }
}

function keyOf({ origin, query }: WaitingRequest) {
  return { origin, trackingId: query.trackingId };
}
