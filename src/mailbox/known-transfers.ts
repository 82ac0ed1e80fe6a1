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
  /** For a settled transfer, only the number of the listing that had it last: there may be hundreds of thousands. */
  readonly #transfers = new Map<string, number | OpenTransfer>();
  #openCount = 0;
  #listing = 0;
  #hasListing = false;

  get openCount(): number {
    return this.#openCount;
  }

  get settledCount(): number {
    return this.#transfers.size - this.#openCount;
  }

  /** The list was read to its end, at least once. */
  get hasListing(): boolean {
    return this.#hasListing;
  }

  /** Open and settled transfers. */
  trackingIds(): Iterable<string> {
    return this.#transfers.keys();
  }

  isOpen(trackingId: string): boolean {
    return this.#findOpen(trackingId) !== undefined;
  }

  isSettled(trackingId: string): boolean {
    return typeof this.#transfers.get(trackingId) === "number";
  }

  /** Whether the last listing had it. */
  isListed(trackingId: string): boolean {
    const known = this.#transfers.get(trackingId);
    return (typeof known === "object" ? known.listing : known) === this.#listing;
  }

  /** `undefined` for a transfer that is not open. */
  expiryOf(trackingId: string): number | undefined {
    return this.#findOpen(trackingId)?.expiresMs;
  }

  /** May be changed during the iteration. */
  *open(): Iterable<{ readonly trackingId: string; readonly expiresMs: number }> {
    for (const [trackingId, known] of this.#transfers) {
      if (typeof known === "object") yield { trackingId, expiresMs: known.expiresMs };
    }
  }

  noteOpen(trackingId: string, expiresMs: number): void {
    const known = this.#transfers.get(trackingId);
    if (typeof known === "object") known.expiresMs = expiresMs;
    else {
      const listing = known ?? 0;
      const open = { expiresMs, listing, link: undefined, isWarned: false, tried: undefined };
      this.#transfers.set(trackingId, open);
      this.#openCount++;
    }
  }

  /** This listing has it, and nothing is left to do. */
  settle(trackingId: string): void {
    this.forget(trackingId);
    this.#transfers.set(trackingId, this.#listing);
  }

  /** Drops an open transfer, such as one that has ended and is not listed. Does nothing for any other. */
  forget(trackingId: string): void {
    if (!this.isOpen(trackingId)) return;
    this.#transfers.delete(trackingId);
    this.#openCount--;
  }

  startListing(): void {
    this.#listing++;
  }

  /** This listing has the transfer. */
  noteListed(trackingId: string): void {
    const known = this.#transfers.get(trackingId);
    if (typeof known === "object") known.listing = this.#listing;
    else if (known !== undefined) this.#transfers.set(trackingId, this.#listing);
  }

  /** This listing does not have the open transfer, or not as an active one. */
  noteMissing(trackingId: string): void {
    const open = this.#findOpen(trackingId);
    if (open !== undefined) open.listing = 0;
  }

  /** The listing is complete: settled transfers that it does not have are forgotten. */
  finishListing(): void {
    for (const [trackingId, known] of this.#transfers) {
      if (typeof known === "number" && known !== this.#listing) this.#transfers.delete(trackingId);
    }
    this.#hasListing = true;
  }

  /** Keeps the link of an open transfer if it carries a password. */
  keepLink(trackingId: string, link: Secret | undefined): void {
    const open = this.#findOpen(trackingId);
    if (open !== undefined) open.link = withPassword(link);
  }

  linkOf(trackingId: string): Secret | undefined {
    return this.#findOpen(trackingId)?.link;
  }

  /** True once for each open transfer. */
  warnOnce(trackingId: string): boolean {
    const open = this.#findOpen(trackingId);
    if (open === undefined || open.isWarned) return false;
    open.isWarned = true;
    return true;
  }

  /** Whether to look for the password now: once for these settings, and again for each further `mark`. */
  claimPasswordSearch(trackingId: string, settings: Mailbox, mark: string | undefined): boolean {
    const open = this.#findOpen(trackingId);
    const isTried = open?.tried?.settings === settings && (mark === undefined || mark === open.tried.mark);
    if (open !== undefined) open.tried = { settings, mark };
    return !isTried;
  }

  #findOpen(trackingId: string): OpenTransfer | undefined {
    const known = this.#transfers.get(trackingId);
    return typeof known === "object" ? known : undefined;
  }
}

/** `undefined` if the link carries no password. */
export function withPassword(link: Secret | undefined): Secret | undefined {
  return link !== undefined && passwordOfLink(link) !== undefined ? link : undefined;
}
