/** Repeatable "random" bytes, which depend only on the worker. */
import { AsyncLocalStorage } from "node:async_hooks";

export interface RandomSource {
  /** A hexadecimal digit. */
  readonly letter: string;
  /** The number of calls. */
  randoms: number;
}

/** The current worker. */
export const worker = new AsyncLocalStorage<RandomSource>();

/** For code outside workers. */
export const outsider: RandomSource = { letter: "0", randoms: 0 };

/** Replaces `randomBytes` in tests. */
export function predictableBytes(size: number): Buffer {
  const source = worker.getStore() ?? outsider;
  source.randoms++;
  return Buffer.from(
    source.letter.repeat(2 * size - 3) + source.randoms.toString(16).padStart(3, "0"),
    "hex",
  );
}
