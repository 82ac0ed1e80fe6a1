/** The state of one channel: notices, failing services, and the message that is being sent. All processes share it. */
import * as v from "valibot";
import { type Batch, Pending, PendingShape } from "./pending.ts";
import { NEVER_SENT, type SentTimes } from "./schedule.ts";
import { ServiceTroubles } from "./service-troubles.ts";

const { notices, counted } = PendingShape.entries;

export const StateSnapshotShape = v.object({
  lastSentMs: v.number(),
  lastUrgentMs: v.number(),
  /** Mailbox, trouble, service. */
  failing: v.array(v.tuple([v.string(), v.string(), v.string()])),
  /** The notices that a process is sending. */
  claim: v.exactOptional(v.object({ by: v.string(), atMs: v.number(), notices, counted })),
  pending: PendingShape,
});

export type StateSnapshot = v.InferOutput<typeof StateSnapshotShape>;

/** The process that claims notices. */
interface Claimant {
  readonly by: string;
  readonly nowMs: number;
  readonly leaseMs: number;
}

/** A process that was not seen for this long has ended. */
const ABANDONED_MS = 10 * 60_000;

export class ChannelState {
  readonly pending = new Pending();
  readonly services: ServiceTroubles;
  #sent: SentTimes = NEVER_SENT;
  #claim: StateSnapshot["claim"];
  #revision = 0;

  /** `blipMs`: see `ServiceTroubles`. */
  constructor(blipMs: number, snapshot?: StateSnapshot, nowMs = 0) {
    this.services = new ServiceTroubles(blipMs);
    if (snapshot === undefined) return;
    const { pending, failing, claim, lastSentMs, lastUrgentMs } = snapshot;
    this.pending.restore(pending);
    this.services.restore(failing, nowMs);
    this.#claim = claim;
    this.#sent = { lastSentMs, lastUrgentMs };
  }

  get sent(): SentTimes {
    return this.#sent;
  }

  /** Increases with each change that `snapshot` would contain. */
  get revision(): number {
    return this.#revision + this.pending.revision + this.services.revision;
  }

  /**
   * Takes the selected notices for a message that this process sends now; call `succeeded` or `failed` afterwards.
   * One process at a time sends. A claim older than `leaseMs` is put back: the process that made it has ended.
   */
  claim(
    { by, nowMs, leaseMs }: Claimant,
    select: (state: ChannelState) => Batch | undefined,
  ): Batch | "by another" | undefined {
    this.#putBackAfter(leaseMs, nowMs);
    if (this.#claim !== undefined && this.#claim.by !== by) return "by another";
    this.#putBack();
    const batch = select(this);
    if (batch === undefined) return undefined;
    this.pending.take(batch);
    this.#claim = { by, atMs: nowMs, ...batch.taken };
    this.#revision++;
    return batch;
  }

  /** The claim is missing if it could not be saved, or another process has put it back. */
  succeeded(by: string, batch: Batch, sent: SentTimes): void {
    if (this.#claim?.by === by) this.#claim = undefined;
    else this.pending.take(batch);
    this.#sent = sent;
    this.#revision++;
  }

  failed(by: string): void {
    if (this.#claim?.by === by) this.#putBack();
  }

  /** Every other process has ended. */
  takeOver(by: string): void {
    this.#putBack();
    this.pending.release((process) => process !== by);
  }

  /** Shows that this process is alive, and takes over from processes that are not. Call it every few minutes. */
  refresh({ by, nowMs, leaseMs }: Claimant): void {
    this.#putBackAfter(leaseMs, nowMs);
    this.pending.refresh(by, nowMs, ABANDONED_MS);
  }

  snapshot(): StateSnapshot {
    const claim = this.#claim === undefined ? {} : { claim: this.#claim };
    return { ...this.#sent, ...claim, failing: this.services.snapshot(), pending: this.pending.snapshot() };
  }

  /** Clocks may differ, or go back. */
  #putBackAfter(leaseMs: number, nowMs: number): void {
    if (Math.abs(nowMs - (this.#claim?.atMs ?? nowMs)) >= leaseMs) this.#putBack();
  }

  #putBack(): void {
    if (this.#claim === undefined) return;
    this.pending.putBack(this.#claim);
    this.#claim = undefined;
    this.#revision++;
  }
}
