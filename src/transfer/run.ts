/** One run at one transfer: what is known of it now, and the stage that it works in. */
import type { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { Stage } from "../ledger/port.ts";
import type { Contents } from "../model/manifest.ts";
import { type State, type TransferRecord, withState } from "../model/record.ts";
import { Pace } from "./give-way.ts";
import type { TransferTools } from "./tools.ts";

export class Run {
  readonly #tools: TransferTools;
  #record: TransferRecord;
  /** Missing until there is something to download. */
  stage: Stage | undefined;
  /** The one that the service has accepted. */
  password: Secret | undefined;
  /** What is in the stage, once it is complete. */
  contents: Contents | undefined;
  readonly pace = new Pace();
  /** The round has ended with this stage, which may still have to be placed. */
  isDecided = false;

  constructor(tools: TransferTools, record: TransferRecord) {
    this.#tools = tools;
    this.#record = record;
  }

  get record(): TransferRecord {
    return this.#record;
  }

  /** Names everything that belongs to this transfer. */
  get key(): string {
    return this.#tools.ledger.nameOf(this.#record);
  }

  /** Enters a state in which the round stays open. `fault`: why. */
  enter(state: State, facts: Partial<TransferRecord> = {}, fault?: Fault): void {
    this.#record = withState(this.#record, state, this.#tools.clock.now(), facts);
    this.#tools.ledger.noteChange(this.#record);
    this.#tools.emit({ type: "transfer-changed", record: this.#record, fault });
  }

  /** Returns how often the operation has failed in this round, this time included. */
  countFailure(operation: string): number {
    const { failures = {} } = this.#record;
    const times = (failures[operation] ?? 0) + 1;
    this.#record = { ...this.#record, failures: { ...failures, [operation]: times } };
    return times;
  }

  /** The record as it would be when the round ends now. */
  ending(state: State, facts: Partial<TransferRecord> = {}): TransferRecord {
    return withState(this.#record, state, this.#tools.clock.now(), facts);
  }

  /** The round has ended like that. */
  ended(record: TransferRecord, fault?: Fault): void {
    this.#record = record;
    this.#tools.emit({ type: "transfer-changed", record, fault });
  }
}
