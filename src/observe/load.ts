/** The last day in quarters of an hour: how much came, and how much waited. */
import type { LoadSlot } from "../model/status.ts";

const SLOT_MS = 15 * 60_000;
const SLOTS = 96;

interface Slot {
  bytes: number;
  delivered: number;
  mostQueued: number;
}

export class Load {
  /** By number of the quarter since 1970; at most a day's worth. */
  readonly #slots = new Map<number, Slot>();

  received(bytes: number, nowMs: number): void {
    this.#slotAt(nowMs).bytes += bytes;
  }

  delivered(nowMs: number): void {
    this.#slotAt(nowMs).delivered++;
  }

  queued(count: number, nowMs: number): void {
    const slot = this.#slotAt(nowMs);
    slot.mostQueued = Math.max(slot.mostQueued, count);
  }

  /** Oldest first, without gaps. */
  read(nowMs: number): LoadSlot[] {
    const last = Math.floor(nowMs / SLOT_MS);
    return Array.from({ length: SLOTS }, (_, at) => {
      const number = last - SLOTS + 1 + at;
      const { bytes, delivered, mostQueued } = this.#slots.get(number) ?? EMPTY;
      return { from: new Date(number * SLOT_MS).toISOString(), bytes, delivered, mostQueued };
    });
  }

  #slotAt(nowMs: number): Slot {
    const number = Math.floor(nowMs / SLOT_MS);
    const known = this.#slots.get(number);
    if (known !== undefined) return known;
    for (const old of this.#slots.keys()) if (old <= number - SLOTS) this.#slots.delete(old);
    const slot = { ...EMPTY };
    this.#slots.set(number, slot);
    return slot;
  }
}

const EMPTY: Slot = { bytes: 0, delivered: 0, mostQueued: 0 };
