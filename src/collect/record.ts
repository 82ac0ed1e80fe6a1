/** The receipt of the transfer in hand: every change is durable before the next step. */
import type { Fault } from "../base/faults.ts";
import type { Receipt, ReceiptState } from "../model/receipt.ts";
import type { CollectTools } from "./tools.ts";

export class Record {
  readonly #tools: CollectTools;
  #current: Receipt;

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
    const now = new Date(this.#tools.clock.now()).toISOString();
    const plain = { reason: undefined, message: undefined, until: undefined };
    const at = { ...this.#current.at, [state]: now };
    await this.save({ ...this.#current, ...plain, ...facts, state, at }, fault);
  }

  /** What was downloaded of it stands here. */
  get key(): string {
    return this.#tools.receipts.folderName(this.#current);
  }
}
