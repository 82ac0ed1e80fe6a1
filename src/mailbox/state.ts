/** A mailbox as a daemon works on it: its settings, its service, and its facts between two polls. */
import type { Clock } from "../base/clock.ts";
import type { DeadlineLimits } from "../base/deadline.ts";
import { asFault, type Fault, tolerate } from "../base/faults.ts";
import type { Outage } from "../base/outage.ts";
import type { Secret } from "../base/secret.ts";
import { setTimeout } from "../base/timers.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Emit } from "../model/events.ts";
import type { TransferJob } from "../model/job.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { expiryOf, type TransferRecord } from "../model/record.ts";
import {
  findRecipient,
  type MailboxId,
  mailboxIdOf,
  type RemovedFile,
  type TransferState,
} from "../model/transfer.ts";
import type { Passwords } from "../passwords/port.ts";
import type { JobQueue } from "../queue/port.ts";
import type { Rejected, ServicePort } from "../service/port.ts";
import { KnownTransfers, linkWithPassword } from "./known-transfers.ts";
import { ListFields } from "./list-fields.ts";
import type { Tokens } from "./tokens.ts";

/** The tools of a poll. */
export interface PollTools {
  readonly ledger: Ledger;
  readonly passwords: Passwords;
  readonly queue: JobQueue;
  readonly clock: Clock;
  /** Lasts while a disk cannot be used. Its keys are ledger names of transfers, mailboxes, and paths of folders. */
  readonly diskTrouble: Outage;
  readonly emit: Emit;
  readonly inbox: Pick<Inbox, "hasDelivery">;
  readonly mailboxes: { readonly states: ReadonlyMap<MailboxId, unknown> };
  /** How many transfers are taken up at once, as configured now. */
  atOnce(): number;
  /** A poll that takes longer fails. */
  readonly deadline: DeadlineLimits;
}

/** The list with one entry. */
export const LIGHT = { pageSize: 1, fields: "trackingId" };

/** Of the files of transfers. A service that does not know the first may know the second. */
const REMOVALS = "trackingId,status(files(id,removed,removalCause))";
const FILE_STATES = "trackingId,transfer(files(id,state))";
const MAX_PAGES = 10;

/** How long one reading of the whole list is used. */
const KEPT_MS = 60_000;

/** The state of a transfer at the service; `undefined` if the service does not list it. */
type StateOf = (trackingId: string) => TransferState | undefined;

export class MailboxState {
  readonly mailbox: Mailbox;
  readonly service: ServicePort;
  readonly tokens: Tokens;
  readonly transfers: KnownTransfers;
  readonly fields: ListFields;
  readonly health: PollHealth;
  /** The service names no security modes. */
  hasNoModes: boolean;
  /** The last reading of the whole list, which may still run. */
  #states: Promise<StateOf> | undefined;

  /** `before`: the same mailbox of the same service under earlier settings. Its facts stay. */
  constructor(mailbox: Mailbox, service: ServicePort, tokens: Tokens, before?: MailboxState) {
    this.mailbox = mailbox;
    this.service = service;
    this.tokens = tokens;
    this.transfers = before?.transfers ?? new KnownTransfers();
    this.fields = before?.fields ?? new ListFields();
    this.health = before?.health ?? new PollHealth();
    this.hasNoModes = before?.hasNoModes ?? false;
  }

  /** Whether the service may still list an ended transfer. True before the first poll, and while polls fail. */
  mayList(trackingId: string): boolean {
    return !this.isListKnown || this.transfers.isSettled(trackingId);
  }

  /** Whether `transfers` is up to date: the last poll succeeded, and a list was read to its end. */
  get isListKnown(): boolean {
    return this.transfers.hasListing && !this.health.isFailing;
  }

  /**
   * Makes requests without a password, until the service itself has answered one. Some services, or firewalls before them,
   * refuse the server status: then a list with one entry is requested.
   */
  async probe(signal: AbortSignal): Promise<void> {
    const { service } = this;
    const before = service.ownAnswers();
    // A refusal by the service itself is an answer too.
    await service.apiVersions(signal).catch(() => {});
    if (service.ownAnswers() !== before) return;
    await this.tokens.use((address) => service.pollReceived(address, LIGHT, signal), signal);
  }

  /**
   * The link of a transfer; `undefined` if it carries no password. If this process does not know the link, it reads the
   * list, and then knows the links of all open transfers.
   */
  async linkOf(trackingId: string, signal: AbortSignal): Promise<Secret | undefined> {
    const known = this.transfers.open.get(trackingId)?.link;
    if (known !== undefined) return known;
    let found: Secret | undefined;
    await this.tokens.use(async (address) => {
      const query = { active: true, fields: "trackingId,status(recipients)" };
      // Polls report entries that cannot be read.
      for await (const page of this.service.listReceived(address, query, () => {}, signal)) {
        for (const { trackingId: listed, recipients } of page) {
          const link = findRecipient(recipients, this.mailbox.email)?.downloadUrl;
          this.transfers.keepLink(listed, link);
          if (listed === trackingId) found = linkWithPassword(link);
        }
      }
    }, signal);
    return found;
  }

  /**
   * The state of one transfer; `undefined` if the service does not list it. One reading of the list answers for all
   * transfers that vanished. For any other transfer a missing entry says nothing: it may be newer than the reading.
   */
  async stateOf(
    record: Pick<TransferRecord, "trackingId" | "vanished">,
    signal: AbortSignal,
  ): Promise<TransferState | undefined> {
    const { trackingId, vanished } = record;
    const shared = this.#states;
    try {
      const found = shared && (await shared)(trackingId);
      if (found !== undefined || (shared && vanished)) return found;
    } catch (error) {
      // The job that read the list was stopped: this one was not.
      if (signal.aborted || asFault(error).code !== "STOPPED") throw error;
      return this.stateOf(record, signal);
    }
    return (await this.#readStates(signal))(trackingId);
  }

  /**
   * The files of an active transfer that the service has removed: of one among the newest, because each page is a request. None,
   * if it does not say.
   */
  removedFiles(trackingId: string, signal: AbortSignal): Promise<readonly RemovedFile[]> {
    return this.tokens.use(async (address) => {
      const find = async (fields: string) => {
        for (let page = 1; page <= MAX_PAGES; page++) {
          const query = { active: true, page, pageSize: 100, fields };
          const { entries, rejected } = await this.service.pollReceived(address, query, signal);
          const found = entries.find((entry) => entry.trackingId === trackingId);
          if (found !== undefined) return found.removed;
          if (entries.length + rejected.length === 0) break;
        }
        return [];
      };
      return (await find(REMOVALS).catch(tolerate("BAD_REQUEST"))) ?? find(FILE_STATES);
    }, signal);
  }

  /** Later calls share a successful reading for `KEPT_MS`. A failed one is not kept. */
  #readStates(signal: AbortSignal): Promise<StateOf> {
    const states = this.#listStates(signal);
    const forget = () => {
      if (this.#states === states) this.#states = undefined;
    };
    this.#states = states;
    states.then(() => setTimeout(forget, KEPT_MS).unref(), forget);
    return states;
  }

  /**
   * An entry that cannot be read counts as `unknown`. If it has no tracking-id, every missing transfer counts as `unknown`.
   */
  #listStates(signal: AbortSignal): Promise<StateOf> {
    return this.tokens.use(async (address) => {
      const states = new Map<string, TransferState>();
      let stateOfMissing: "unknown" | undefined;
      const reject = ({ trackingId }: Rejected) => {
        if (trackingId === undefined) stateOfMissing = "unknown";
        else states.set(trackingId, "unknown");
      };
      const query = { fields: "trackingId,status(state)" };
      // Polls report entries that cannot be read.
      for await (const page of this.service.listReceived(address, query, reject, signal)) {
        for (const entry of page) states.set(entry.trackingId, entry.state);
      }
      return (trackingId) => states.get(trackingId) ?? stateOfMissing;
    }, signal);
  }
}

export function jobOf(ledger: Ledger, record: TransferRecord): TransferJob {
  const { mailbox, trackingId } = record;
  return {
    key: ledger.nameOf(record),
    mailbox: mailboxIdOf(mailbox),
    trackingId,
    expiresMs: expiryOf(record),
  };
}

export interface PollFailure {
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
  /** How many entries of the list the last poll could not use. */
  unusable = 0;
  /** The unusable entries that were reported last, in short. */
  #reported = "";

  get isFailing(): boolean {
    return this.#failure !== undefined;
  }

  /** Returns the failure that this success ends. */
  succeed(found: { readonly listed: number; readonly discovered: number }): PollFailure | undefined {
    this.last = found;
    return this.recover();
  }

  /** The same for the success of another process. */
  recover(): PollFailure | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    return failure;
  }

  /** `isFirst`: the poll before succeeded. */
  fail(fault: Fault, nowMs: number): { readonly isFirst: boolean; readonly failedForMs: number } {
    const isFirst = this.#failure === undefined;
    const sinceMs = this.#failure?.sinceMs ?? nowMs;
    this.#failure = { sinceMs, fault };
    this.last = { fault };
    return { isFirst, failedForMs: nowMs - sinceMs };
  }

  /** Returns whether to report them: not again while polls find the same. */
  noteUnusable(entries: number, reasons: readonly Fault[]): boolean {
    const summary = entries === 0 ? "" : [entries, ...reasons.map(({ message }) => message)].join("\n");
    const isNews = entries > 0 && summary !== this.#reported;
    this.unusable = entries;
    this.#reported = summary;
    return isNews;
  }
}
