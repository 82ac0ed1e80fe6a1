/** A mailbox as a daemon works on it: its settings, its service, and its facts between two polls. */
import type { Fault } from "../base/faults.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { ServicePort } from "../service/port.ts";
import { KnownTransfers } from "./known-transfers.ts";
import { ListFields } from "./list-fields.ts";
import { Lookup } from "./lookup.ts";
import type { Tokens } from "./tokens.ts";

export class MailboxState {
  readonly mailbox: Mailbox;
  readonly service: ServicePort;
  readonly tokens: Tokens;
  readonly transfers: KnownTransfers;
  readonly fields: ListFields;
  readonly health: PollHealth;
  readonly lookup: Lookup;

  /** `before`: the same mailbox of the same service under earlier settings. Its facts stay. */
  constructor(mailbox: Mailbox, service: ServicePort, tokens: Tokens, before?: MailboxState) {
    this.mailbox = mailbox;
    this.service = service;
    this.tokens = tokens;
    this.transfers = before?.transfers ?? new KnownTransfers();
    this.fields = before?.fields ?? new ListFields();
    this.health = before?.health ?? new PollHealth();
    this.lookup = new Lookup(mailbox, service, tokens, this.transfers);
  }

  /** Whether the service may still list an ended transfer. True before the first poll, and while polls fail. */
  mayList(trackingId: string): boolean {
    return !this.isListKnown || this.transfers.isSettled(trackingId);
  }

  /** Whether `transfers` is up to date: the last poll succeeded, and a list was read to its end. */
  get isListKnown(): boolean {
    return this.transfers.hasListing && !this.health.isFailing;
  }
}

interface PollFailure {
  readonly sinceMs: number;
  /** Why the last poll failed. */
  readonly fault: Fault;
}

/** What a poll has found, or why it failed. */
type PollResult =
  | { readonly listed: number; readonly discovered: number; readonly fault?: undefined }
  | { readonly fault: Fault };

/** How the last polls of a mailbox went. */
export class PollHealth {
  /** Another object after each poll. */
  last: PollResult | undefined;
  #failure: PollFailure | undefined;
  #unusable = 0;
  /** The unusable entries that were reported last, in short. */
  #reported = "";

  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** How many entries of the list the last poll could not use. */
  get unusable(): number {
    return this.#unusable;
  }

  /** Returns the failure that this success ends. */
  succeed(): PollFailure | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    return failure;
  }

  /** `isFirst`: the poll before succeeded. */
  fail(fault: Fault, nowMs: number): { readonly isFirst: boolean; readonly failedForMs: number } {
    const isFirst = this.#failure === undefined;
    const sinceMs = this.#failure?.sinceMs ?? nowMs;
    this.#failure = { sinceMs, fault };
    return { isFirst, failedForMs: nowMs - sinceMs };
  }

  /** Returns whether to report them: not again while polls find the same. */
  noteUnusable(entries: number, reasons: readonly Fault[]): boolean {
    const summary = entries === 0 ? "" : [entries, ...reasons.map(({ message }) => message)].join("\n");
    const isNews = entries > 0 && summary !== this.#reported;
    this.#unusable = entries;
    this.#reported = summary;
    return isNews;
  }
}
