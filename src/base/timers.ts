/** The timers of the machine, with the names and results of Node's own functions. */
import { type Machine, machine } from "./machine.ts";

export type { Timer } from "./machine.ts";

export const setTimeout: Machine["setTimeout"] = (work, ms) => machine().setTimeout(work, ms);
export const setInterval: Machine["setInterval"] = (work, ms) => machine().setInterval(work, ms);
export const clearTimeout: Machine["clearTimer"] = (timer) => machine().clearTimer(timer);
export const clearInterval: Machine["clearTimer"] = (timer) => machine().clearTimer(timer);
export const monotonicMs: Machine["monotonicMs"] = () => machine().monotonicMs();
export const nextTurn: Machine["nextTurn"] = () => machine().nextTurn();

/** How long one loop may keep the other work of this process waiting. */
const TURN_MS = 10;

/** For loops over items whose number a sender, the service or a client chooses: other work runs between turns. */
export async function* inTurns<Item>(items: Iterable<Item> | AsyncIterable<Item>): AsyncGenerator<Item> {
  let startedMs = monotonicMs();
  for await (const item of items) {
    yield item;
    if (monotonicMs() - startedMs < TURN_MS) continue;
    await nextTurn();
    startedMs = monotonicMs();
  }
}

/** Rejects with the signal's reason. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  signal?.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  const onAbort = () => reject(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    await promise;
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", onAbort);
  }
}

/** Ends early if the signal aborts. Never throws. */
export async function pauseOrAbort(ms: number, signal: AbortSignal): Promise<void> {
  // Only the signal rejects it.
  await pause(ms, signal).catch(() => {});
}

/** Aborts after this time, unless it is cleared. */
export function timeLimit(ms: number): { readonly signal: AbortSignal; clear(): void } {
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), ms);
  return { signal: over.signal, clear: () => clearTimeout(timer) };
}
