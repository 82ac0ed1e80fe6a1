/** The tools and the source of a download, the run of one attempt, and the outcomes of its steps. */
import type { Clock } from "../base/clock.ts";
import type { Fault } from "../base/faults.ts";
import type { Outage } from "../base/outage.ts";
import type { Secret } from "../base/secret.ts";
import type { Checker, Handoffs } from "../handoff/port.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Ledger, Stage } from "../ledger/port.ts";
import type { Emit } from "../model/events.ts";
import type { Next } from "../model/job.ts";
import type { Check, Handoff, Limits, Mailbox } from "../model/mailbox.ts";
import type { Contents } from "../model/manifest.ts";
import { type Routed, type State, type TransferRecord, withoutMissing, withState } from "../model/record.ts";
import type { RemovedFile, TransferState } from "../model/transfer.ts";
import type { Passwords } from "../passwords/port.ts";
import type { ServicePort } from "../service/port.ts";
import { type LargeTransfers, Pace } from "./turns.ts";

export interface TransferTools {
  readonly inbox: Inbox;
  readonly ledger: Ledger;
  readonly passwords: Passwords;
  readonly limits: Limits;
  /** The hand-off of a transfer, by its mailbox and route, as configured now. */
  handoffOf(transfer: Routed): Handoff;
  readonly handoffs: Pick<Handoffs, "prepare" | "placed">;
  readonly checker: Checker;
  /** The check of the mailbox, as configured now. */
  check(): Check | undefined;
  /** Gives the slot of this download to another one, if there is room for more work. */
  freeSlot(): void;
  readonly clock: Clock;
  /** Between 0 and 1, for jitter. */
  readonly random: () => number;
  readonly patience: Patience;
  /** Lasts while a disk cannot be used. Its keys are ledger names of transfers, mailboxes, and paths of folders. */
  readonly diskTrouble: Outage;
  readonly large: LargeTransfers;
  /** The keys of transfers whose last run met a disk that refused. */
  readonly stuck: Set<string>;
  /** Whether other transfers wait for a slot. */
  othersWait(): Promise<boolean>;
  readonly emit: Emit;
}

/** How long to wait before asking again. */
export interface Patience {
  /** After the first failure; longer after each further one. */
  readonly retryMs: number;
  /** For room on the disk. */
  readonly diskMs: number;
  /** For a locked transfer, if the service does not say. */
  readonly lockedMs: number;
  /** How long a download may be slow while others wait, and how long it then waits itself. */
  readonly slowMs: number;
}

/** A mailbox and how its service is reached. */
export interface Source {
  readonly mailbox: Mailbox;
  readonly service: ServicePort;
  /** Makes requests without a password, until the service has answered one in its own format. Throws faults. */
  probe(signal: AbortSignal): Promise<void>;
  /** The listed link, if it carries a password: the service puts one there if the sender chose none. */
  linkOf(trackingId: string, signal: AbortSignal): Promise<Secret | undefined>;
  /** The transfer's state at the service; `undefined` if the service does not list it. */
  stateOf(
    record: Pick<TransferRecord, "trackingId" | "vanished">,
    signal: AbortSignal,
  ): Promise<TransferState | undefined>;
  /** The files of a transfer that the service has removed. Throws faults. */
  removedFiles(trackingId: string, signal: AbortSignal): Promise<readonly RemovedFile[]>;
}

/** The attempt ends here. One switch in `download.ts` says what follows. */
export type Outcome =
  /** The transfer waits, and `next` says when its job runs again. `facts`: missing if it waits as before. */
  | {
      readonly kind: "wait";
      readonly facts?: Partial<TransferRecord>;
      readonly fault?: Fault | undefined;
      readonly next: Next;
    }
  | { readonly kind: "quarantine"; readonly fault: Fault }
  /** The round ends without content. */
  | {
      readonly kind: "gone";
      readonly reason: string;
      readonly message: string;
    }
  | { readonly kind: "delivered" }
  /** Another attempt, or an operator, has ended the round. */
  | { readonly kind: "lost" }
  /** The disk refuses the record, or the move after it. */
  | { readonly kind: "stuck"; readonly fault: Fault }
  /** The process stops. The content stays on the disk, and the next start continues with it. */
  | { readonly kind: "stopped" };

export type Step<Value> = { readonly kind: "continue"; readonly value: Value } | Outcome;

export function goOn<Value>(value: Value): Step<Value> {
  return { kind: "continue", value };
}

/** One run of a download. */
export class Run {
  readonly tools: TransferTools;
  readonly source: Source;
  /** The process stops. */
  readonly stop: AbortSignal;
  /** The process stops, or `end` was called. */
  readonly signal: AbortSignal;
  record: TransferRecord;
  readonly #ending = new AbortController();
  /** Why `end` was called; `undefined` if it was not. */
  endedBy: "ROUND_LOST" | "GAVE_WAY" | undefined;
  /** Missing until content is needed, and after `dropStage` and `closeStage`. */
  stage: Stage | undefined;
  /** Accepted by the service. */
  password: Secret | undefined;
  /** The content of the stage, once it is complete. */
  contents: Contents | undefined;
  readonly pace = new Pace();
  /** The round has ended with this stage, whose content may still have to be moved. */
  isDecided = false;

  constructor(tools: TransferTools, source: Source, record: TransferRecord, stop: AbortSignal) {
    this.tools = tools;
    this.source = source;
    this.record = record;
    this.stop = stop;
    this.signal = AbortSignal.any([stop, this.#ending.signal]);
  }

  /** The transfer's name in the ledger. */
  get key(): string {
    return this.tools.ledger.nameOf(this.record);
  }

  /** The stage of this run, opened if there is none. */
  async openStage(): Promise<Stage> {
    this.stage ??= await this.tools.ledger.stages.openStage(this.record);
    return this.stage;
  }

  /** Its content stays for the next attempt of this process. */
  async closeStage(): Promise<void> {
    const stage = this.stage;
    this.stage = undefined;
    if (stage !== undefined) await this.tools.ledger.stages.closeStage(stage);
  }

  /** Removes its content, unless the round has ended with it. */
  async dropStage(): Promise<void> {
    const stage = this.stage;
    this.stage = undefined;
    if (stage !== undefined) await this.tools.ledger.stages.dropStage(stage);
  }

  /** Aborts the signal. */
  end(why: "ROUND_LOST" | "GAVE_WAY"): void {
    this.endedBy ??= why;
    this.#ending.abort();
  }

  /** Enters a state while the round stays open. `fault`: why. */
  enter(state: State, facts: Partial<TransferRecord> = {}, fault?: Fault): void {
    this.record = this.recordIn(state, facts);
    this.tools.ledger.noteChange(this.record);
    this.tools.emit({ type: "transfer-changed", record: this.record, fault });
  }

  /** Adds facts that the next state is recorded with. */
  learn(facts: Pick<TransferRecord, "subject" | "files" | "bytes">): void {
    this.record = { ...this.record, ...withoutMissing(facts) };
  }

  /** The route that it matches now, in place of an earlier one. */
  takeRoute(facts: Pick<TransferRecord, "route" | "routedBecause" | "rule">): void {
    const { route, routedBecause, rule, ...others } = this.record;
    this.record = { ...others, ...withoutMissing(facts) };
  }

  /** The hand-off of its route or mailbox, as configured now. */
  get handoff(): Handoff {
    return this.tools.handoffOf(this.record);
  }

  /** Counts one more failure of an operation. Returns how often it has failed in this round. */
  countFailure(operation: string): number {
    const { failures = {} } = this.record;
    const times = (failures[operation] ?? 0) + 1;
    this.record = { ...this.record, failures: { ...failures, [operation]: times } };
    return times;
  }

  /** The record in this state. */
  recordIn(state: State, facts: Partial<TransferRecord> = {}): TransferRecord {
    return withState(this.record, state, this.tools.clock.now(), facts);
  }

  /** The round has ended with this record. */
  noteEnd(record: TransferRecord, fault?: Fault): void {
    this.record = record;
    this.tools.emit({ type: "transfer-changed", record, fault });
  }
}
