/**
 * Slows down the guessing of tokens. After some wrong tokens in a minute, tokens from that address are checked one at a
 * time, with a pause before each. Beyond a short queue they are refused unchecked, even right ones.
 */
import { isIPv6 } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import { KeyedMutex } from "../base/concurrency.ts";

const MAX_WRONG_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
const PAUSE_MS = 1_000;
const MAX_WAITING = 3;
const MAX_PEERS = 1_000;

export class Guesses {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  /** Times of the latest wrong tokens by peer, at most as many as are allowed. */
  readonly #wrongMs = new Map<string, number[]>();
  readonly #waiting = new Map<string, number>();
  readonly #turns = new KeyedMutex();

  constructor(clock: Clock, pauseMs = PAUSE_MS) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
  }

  /** `check` returns `undefined` for a wrong token. */
  async attempt<Found>(
    address: string,
    check: () => Found | undefined,
  ): Promise<Found | undefined | "throttled"> {
    const peer = peerOf(address);
    if (this.#recent(peer).length < MAX_WRONG_PER_MINUTE) return this.#note(peer, check());
    const waiting = this.#waiting.get(peer) ?? 0;
    if (waiting >= MAX_WAITING) return "throttled";
    this.#waiting.set(peer, waiting + 1);
    try {
      return await this.#turns.run(peer, async () => {
        await pause(this.#pauseMs);
        return this.#note(peer, check()) ?? "throttled";
      });
    } finally {
      const left = (this.#waiting.get(peer) ?? 1) - 1;
      if (left === 0) this.#waiting.delete(peer);
      else this.#waiting.set(peer, left);
    }
  }

  #note<Found>(peer: string, found: Found | undefined): Found | undefined {
    if (found !== undefined) return found;
    const times = [...this.#recent(peer), this.#clock.now()].slice(-MAX_WRONG_PER_MINUTE);
    const [oldest] = this.#wrongMs.keys();
    this.#wrongMs.delete(peer);
    if (this.#wrongMs.size >= MAX_PEERS && oldest !== undefined) this.#wrongMs.delete(oldest);
    this.#wrongMs.set(peer, times);
    return undefined;
  }

  #recent(peer: string): number[] {
    const nowMs = this.#clock.now();
    return (this.#wrongMs.get(peer) ?? []).filter((ms) => nowMs - ms < MINUTE_MS);
  }
}

/** One client may own a whole /64 network of IPv6. */
function peerOf(given: string): string {
  const address = given.replace(/^::ffff:(?=\d+\.)/i, "");
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("::");
  const before = head.split(":").filter(Boolean);
  const after = (tail ?? "").split(":").filter(Boolean);
  const zeros = tail === undefined ? 0 : 8 - before.length - after.length;
  return [...before, ...Array.from({ length: Math.max(0, zeros) }, () => "0"), ...after]
    .slice(0, 4)
    .join(":");
}
