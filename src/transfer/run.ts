/** One run of a download: its tools and source, the transfer's current record, and the stage that it works in. */
import type { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { Stage } from "../ledger/port.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { Contents } from "../model/manifest.ts";
import { type State, type TransferRecord, withoutMissing, withState } from "../model/record.ts";
import { Pace } from "./give-way.ts";
import type { Source, TransferTools } from "./tools.ts";

/** Why a run ends early. */
type EndedBy = "ROUND_LOST" | "GAVE_WAY";

export class Run {
  readonly tools: TransferTools;
  readonly source: Source;
  /** The process stops. */
  readonly stop: AbortSignal;
  /** The process stops, or `end` was called. */
  readonly signal: AbortSignal;
  #record: TransferRecord;
  readonly #ending = new AbortController();
  #endedBy: EndedBy | undefined;
  /** Missing until content is needed. */
  #stage: Stage | undefined;
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
    this.#record = record;
    this.stop = stop;
    this.signal = AbortSignal.any([stop, this.#ending.signal]);
  }

  get record(): TransferRecord {
    return this.#record;
  }

  /** The transfer's name in the ledger. */
  get key(): string {
    return this.tools.ledger.nameOf(this.#record);
  }

  /** Missing until `openStage`, and after `dropStage` and `closeStage`. */
  get stage(): Stage | undefined {
    return this.#stage;
  }

  /** The stage of this run, opened if there is none. */
  async openStage(): Promise<Stage> {
    this.#stage ??= await this.tools.ledger.stages.openStage(this.#record);
    return this.#stage;
  }

  /** Its content stays for the next attempt of this process. */
  async closeStage(): Promise<void> {
    const stage = this.#stage;
    this.#stage = undefined;
    if (stage !== undefined) await this.tools.ledger.stages.closeStage(stage);
  }

  /** Removes its content, unless the round has ended with it. */
  async dropStage(): Promise<void> {
    const stage = this.#stage;
    this.#stage = undefined;
    if (stage !== undefined) await this.tools.ledger.stages.dropStage(stage);
  }

  /** Aborts the signal. */
  end(why: EndedBy): void {
    this.#endedBy ??= why;
    this.#ending.abort();
  }

  /** Why `end` was called; `undefined` if it was not. */
  get endedBy(): EndedBy | undefined {
    return this.#endedBy;
  }

  /** Enters a state while the round stays open. `fault`: why. */
  enter(state: State, facts: Partial<TransferRecord> = {}, fault?: Fault): void {
    this.#record = withState(this.#record, state, this.tools.clock.now(), facts);
    this.tools.ledger.noteChange(this.#record);
    this.tools.emit({ type: "transfer-changed", record: this.#record, fault });
  }

  /** Adds facts that the next state is recorded with. */
  learn(facts: Pick<TransferRecord, "subject" | "files" | "bytes">): void {
    this.#record = { ...this.#record, ...withoutMissing(facts) };
  }

  /** The route that it matches now, in place of an earlier one. */
  takeRoute(facts: Pick<TransferRecord, "route" | "routedBecause" | "rule">): void {
    const { route, routedBecause, rule, ...others } = this.#record;
    this.#record = { ...others, ...withoutMissing(facts) };
  }

  /** The hand-off of its route or mailbox, as configured now. */
  get handoff(): Handoff {
    return this.tools.handoffOf(this.#record);
  }

  /** Counts one more failure of an operation. Returns how often it has failed in this round. */
  countFailure(operation: string): number {
    const { failures = {} } = this.#record;
    const times = (failures[operation] ?? 0) + 1;
    this.#record = { ...this.#record, failures: { ...failures, [operation]: times } };
    return times;
  }

  /** The record that ends the round in this state. */
  endRecord(state: State, facts: Partial<TransferRecord> = {}): TransferRecord {
    return withState(this.#record, state, this.tools.clock.now(), facts);
  }

  /** The round has ended with this record. */
  noteEnd(record: TransferRecord, fault?: Fault): void {
    this.#record = record;
    this.tools.emit({ type: "transfer-changed", record, fault });
  }
}
