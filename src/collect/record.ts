/** The receipt of the transfer in hand: every change is durable before the next step. */
import type { Fault } from "../base/faults.ts";
import type { Receipt, ReceiptState } from "../model/receipt.ts";
import type { CollectTools } from "./tools.ts";

export class Record {
  readonly #tools: CollectTools;
  #current: Receipt;

  /** `receipt`: as it was claimed. */
  constructor(tools: CollectTools, receipt: Receipt) {
    this.#tools = tools;
    this.#current = receipt;
  }

  get receipt(): Receipt {
    return this.#current;
  }

  /** Replaces the receipt without a change of state. */
  async save(receipt: Receipt, fault?: Fault): Promise<void> {
    await this.#tools.receipts.put(receipt, this.#current);
    const changed = receipt.state !== this.#current.state;
    this.#current = receipt;
    if (changed) this.#tools.watch.stateChanged(receipt, fault);
  }

  /** `fault`: why. */
  async enter(state: ReceiptState, facts: Partial<Receipt> = {}, fault?: Fault): Promise<void> {
    await this.save(entered(this.#current, state, this.#tools.clock.now(), facts), fault);
  }

  /** Names what belongs to this transfer. */
  get key(): string {
    return this.#tools.receipts.folderName(this.#current);
  }
}

/** A receipt in another state: what was said of the one before is no longer true. */
export function entered(
  receipt: Receipt,
  state: ReceiptState,
  nowMs: number,
  facts: Partial<Receipt> = {},
): Receipt {
  const at = { ...receipt.at, [state]: new Date(nowMs).toISOString() };
  const unsaid = { reason: undefined, message: undefined, until: undefined, noAttemptsLeft: undefined };
  return { ...receipt, ...unsaid, ...facts, state, at };
}
