/** Random bytes that can be repeated: they depend on the worker that asks for them, and on nothing else. */
import { AsyncLocalStorage } from "node:async_hooks";

export interface RandomSource {
  /** A hexadecimal digit. */
  readonly letter: string;
  /** How often bytes were asked for. */
  randoms: number;
}

/** The worker that runs. */
export const worker = new AsyncLocalStorage<RandomSource>();

/** Code outside of workers. */
export const outsider: RandomSource = { letter: "0", randoms: 0 };

/** Tests put it in the place of `randomBytes`. */
export function predictableBytes(size: number): Buffer {
  const source = worker.getStore() ?? outsider;
  source.randoms++;
  return Buffer.from(
    source.letter.repeat(2 * size - 3) + source.randoms.toString(16).padStart(3, "0"),
    "hex",
  );
}
