/**
 * Slows down the guessing of tokens. After some wrong tokens in a minute, further ones from that address are refused after
 * a pause. A right token is always accepted at once: others at the same address, such as a proxy's, must not lock it out.
 */
import { isIPv6 } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";

const MAX_WRONG_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
const PAUSE_MS = 1_000;
const MAX_PEERS = 1_000;

export class Guesses {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  /** Times of the latest wrong tokens by peer, at most as many as are allowed. */
  readonly #wrongMs = new Map<string, number[]>();

  constructor(clock: Clock, pauseMs = PAUSE_MS) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
  }

  /** `check` returns `undefined` for a wrong token. */
  async attempt<Found>(
    address: string,
    check: () => Found | undefined,
  ): Promise<Found | undefined | "throttled"> {
    const found = check();
    if (found !== undefined) return found;
    const peer = peerOf(address);
    const nowMs = this.#clock.now();
    const recent = (this.#wrongMs.get(peer) ?? []).filter((ms) => nowMs - ms < MINUTE_MS);
    const [oldest] = this.#wrongMs.keys();
    this.#wrongMs.delete(peer);
    if (this.#wrongMs.size >= MAX_PEERS && oldest !== undefined) this.#wrongMs.delete(oldest);
    this.#wrongMs.set(peer, [...recent, nowMs].slice(-MAX_WRONG_PER_MINUTE));
    if (recent.length < MAX_WRONG_PER_MINUTE) return undefined;
    await pause(this.#pauseMs);
    return "throttled";
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
