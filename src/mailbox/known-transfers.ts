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
  expiresMs: number;
  /** The listing that had it last; 0 for none. */
  listing: number;
  /** Kept only if it carries a password. */
  link: Secret | undefined;
  isWarned: boolean;
  /** The arguments of the last `claimPasswordSearch`. */
  tried: { readonly settings: Mailbox; readonly mark: string | undefined } | undefined;
}

export class KnownTransfers {
  readonly #open = new Map<string, OpenTransfer>();
  /** The number of the listing that had each settled transfer last: there may be hundreds of thousands. */
  readonly #settled = new Map<string, number>();
  #listing = 0;
  /** The list was read to its end, at least once. */
  hasListing = false;
  /** By tracking-id. */
  readonly open: ReadonlyMap<string, Readonly<Pick<OpenTransfer, "expiresMs" | "link">>> = this.#open;

  get settledCount(): number {
    return this.#settled.size;
  }

  isSettled(trackingId: string): boolean {
    return this.#settled.has(trackingId);
  }

  /** Whether the last listing had it. */
  isListed(trackingId: string): boolean {
    const listing = this.#open.get(trackingId)?.listing ?? this.#settled.get(trackingId);
    return listing === this.#listing;
  }

  noteOpen(trackingId: string, expiresMs: number): void {
    const listing = this.#settled.get(trackingId) ?? 0;
    const known = this.#open.get(trackingId);
    const open = known ?? { listing, link: undefined, isWarned: false, tried: undefined };
    this.#open.set(trackingId, Object.assign(open, { expiresMs }));
    this.#settled.delete(trackingId);
  }

  /** This listing has it, and nothing is left to do. */
  settle(trackingId: string): void {
    this.#open.delete(trackingId);
    this.#settled.set(trackingId, this.#listing);
  }

  /** Drops an open transfer, such as one that has ended and is not listed. Does nothing for any other. */
  forget(trackingId: string): void {
    this.#open.delete(trackingId);
  }

  startListing(): void {
    this.#listing++;
  }

  /** This listing has the transfer. */
  noteListed(trackingId: string): void {
    const open = this.#open.get(trackingId);
    if (open !== undefined) open.listing = this.#listing;
    else if (this.#settled.has(trackingId)) this.#settled.set(trackingId, this.#listing);
  }

  /** This listing does not have the open transfer, or not as an active one. */
  noteMissing(trackingId: string): void {
    const open = this.#open.get(trackingId);
    if (open !== undefined) open.listing = 0;
  }

  /** The listing is complete: settled transfers that it does not have are forgotten. */
  finishListing(): void {
    for (const [trackingId, listing] of this.#settled) {
      if (listing !== this.#listing) this.#settled.delete(trackingId);
    }
    this.hasListing = true;
  }

  /** Keeps the link of an open transfer if it carries a password. */
  keepLink(trackingId: string, link: Secret | undefined): void {
    const open = this.#open.get(trackingId);
    if (open !== undefined) open.link = withPassword(link);
  }

  /** True once for each open transfer. */
  warnOnce(trackingId: string): boolean {
    const open = this.#open.get(trackingId);
    if (open === undefined || open.isWarned) return false;
    open.isWarned = true;
    return true;
  }

  /** Whether to look for the password now: once for these settings, and again for each further `mark`. */
  claimPasswordSearch(trackingId: string, settings: Mailbox, mark: string | undefined): boolean {
    const open = this.#open.get(trackingId);
    const isTried = open?.tried?.settings === settings && (mark === undefined || mark === open.tried.mark);
    if (open !== undefined) open.tried = { settings, mark };
    return !isTried;
  }
}

/** `undefined` if the link carries no password. */
export function withPassword(link: Secret | undefined): Secret | undefined {
  return link !== undefined && passwordOfLink(link) !== undefined ? link : undefined;
}
