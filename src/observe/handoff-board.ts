/** Problems after a delivery: a command or webhook fails, or no consumer picks the folder up. */

import type { Delivered, FailedStep, HandoffStep, HandoffSummary, HandoffTrouble } from "../model/handoff.ts";
import { commandFor } from "../model/order.ts";
import { shownFolder } from "../model/record.ts";
import type { TransferStatus } from "../model/status.ts";
import { mailboxIdOf } from "../model/transfer.ts";

/** More are only counted. */
const MAX_KEPT = 1_000;

export class HandoffBoard {
  #troubles = new Map<string, HandoffTrouble>();
  /** How many more there are. */
  #others = 0;

  /** Replaces all troubles. Later events change them until the next check. */
  checked({ troubles, troubled }: HandoffSummary): void {
    if (troubled + this.#troubles.size === 0) return;
    this.#others = troubled - troubles.length;
    this.#troubles = new Map(troubles.map((trouble) => [keyOf(trouble), trouble]));
  }

  /** `failure`: missing after a success. */
  tried(delivered: Delivered, step: HandoffStep, failure?: Omit<FailedStep, "step">): void {
    const { failed, isOverdue } = this.#troubleOf(delivered);
    const others = failed.filter((it) => it.step !== step);
    this.#keep({ ...delivered, isOverdue, failed: failure ? [...others, { step, ...failure }] : others });
  }

  setOverdue(delivered: Delivered, isOverdue: boolean): void {
    this.#keep({ ...delivered, isOverdue, failed: this.#troubleOf(delivered).failed });
  }

  list(): TransferStatus[] {
    return [...this.#troubles.values()].map(describe);
  }

  get total(): number {
    return this.#troubles.size + this.#others;
  }

  #troubleOf(delivered: Delivered): Pick<HandoffTrouble, "failed" | "isOverdue"> {
    return this.#troubles.get(keyOf(delivered)) ?? { failed: [], isOverdue: false };
  }

  #keep(trouble: HandoffTrouble): void {
    const key = keyOf(trouble);
    const isTrouble = trouble.isOverdue || trouble.failed.length > 0;
    if (!isTrouble) this.#troubles.delete(key);
    else if (this.#troubles.has(key) || this.#troubles.size < MAX_KEPT) this.#troubles.set(key, trouble);
  }
}

function describe(trouble: HandoffTrouble): TransferStatus {
  const { mailbox, trackingId, sender, deliveredAt, failed, isOverdue, subject, files, bytes } = trouble;
  const retry = commandFor("retry", trackingId);
  const failures = failed.map(({ message, willRetry }) =>
    willRetry
      ? `${message}. Inlet will try it again; ${retry} tries it at once.`
      : `${message}. It was given up; ${retry} tries it again.`,
  );
  const waits = isOverdue ? [`${shownFolder(trouble)} was not picked up yet.`] : [];
  const reason = failures.length > 0 ? "handoff" : "not-picked-up";
  const message = [...failures, ...waits].join(" ");
  const facts = { mailbox, trackingId, sender, subject, files, bytes, since: deliveredAt, reason, message };
  return { ...facts, state: "delivered", group: "attention" };
}

function keyOf({ mailbox, trackingId, round }: Delivered): string {
  return `${mailboxIdOf(mailbox)}\0${trackingId}\0${round}`;
}
