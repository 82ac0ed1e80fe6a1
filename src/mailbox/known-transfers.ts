/**
 * The memory of one process about the transfers of a mailbox, between two polls. All of it can be learnt again.
 *
 * A transfer is open, settled or unknown. It is open from its discovery, or from an operator's order, until a poll
 * finds it settled: ended, with nothing left to do. The records of settled transfers are not read again while the
 * service lists them.
 */
import type { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { passwordOfLink } from "../model/transfer.ts";

/** How many transfers of a mailbox are open at most: a service can list any number. */
export const MAX_OPEN = 10_000;

interface OpenTransfer {
  /** Kept only if it carries a password. */
  link: Secret | undefined;
  isWarned: boolean;
  /** The arguments of the last `claimPasswordSearch`. */
  tried: { readonly settings: Mailbox; readonly mark: string | undefined } | undefined;
}

export class KnownTransfers {
  readonly #open = new Map<string, OpenTransfer>();
  /** There may be hundreds of thousands. */
  readonly #settled = new Set<string>();
  /** The transfers that the last listing had. */
  #listed = new Set<string>();
  /** The list was read to its end, at least once. */
  hasListing = false;
  /** By tracking-id. */
  readonly open: ReadonlyMap<string, Readonly<Pick<OpenTransfer, "link">>> = this.#open;

  get settledCount(): number {
    return this.#settled.size;
  }

  isSettled(trackingId: string): boolean {
    return this.#settled.has(trackingId);
  }

  /** Whether the last listing had it. */
  isListed(trackingId: string): boolean {
    return this.#listed.has(trackingId);
  }

  noteOpen(trackingId: string): void {
    const fresh = { link: undefined, isWarned: false, tried: undefined };
    if (!this.#open.has(trackingId)) this.#open.set(trackingId, fresh);
    this.#settled.delete(trackingId);
  }

  /** This listing has it, and nothing is left to do. */
  settle(trackingId: string): void {
    this.#open.delete(trackingId);
    this.#settled.add(trackingId);
    this.noteListed(trackingId);
  }

  /** Drops an open transfer, such as one that has ended and is not listed. Does nothing for any other. */
  forget(trackingId: string): void {
    this.#open.delete(trackingId);
  }

  startListing(): void {
    this.#listed = new Set();
  }

  /** This listing has the transfer. Unknown ones are not noted: a service can list any number. */
  noteListed(trackingId: string): void {
    if (this.#open.has(trackingId) || this.#settled.has(trackingId)) this.#listed.add(trackingId);
  }

  /** The listing is complete: settled transfers that it does not have are forgotten. */
  finishListing(): void {
    for (const trackingId of this.#settled.difference(this.#listed)) this.#settled.delete(trackingId);
    this.hasListing = true;
  }

  /** Keeps the link of an open transfer if it carries a password. */
  keepLink(trackingId: string, link: Secret | undefined): void {
    const open = this.#open.get(trackingId);
    if (open !== undefined) open.link = linkWithPassword(link);
  }

  /** True once for each open transfer. */
  warnOnce(trackingId: string): boolean {
    const open = this.#open.get(trackingId);
    if (open === undefined || open.isWarned) return false;
    open.isWarned = true;
    return true;
  }

  /** True unless the password was looked for with these settings, and `mark` is the same or `undefined`. */
  claimPasswordSearch(trackingId: string, settings: Mailbox, mark: string | undefined): boolean {
    const open = this.#open.get(trackingId);
    const isTried = open?.tried?.settings === settings && (mark === undefined || mark === open.tried.mark);
    if (open !== undefined) open.tried = { settings, mark };
    return !isTried;
  }
}

/** `undefined` if the link carries no password. */
export function linkWithPassword(link: Secret | undefined): Secret | undefined {
  return link !== undefined && passwordOfLink(link) !== undefined ? link : undefined;
}
