/** The other side of `hash-thread.ts`: hashes what it is given, in the order in which it is given. */
import { createHash, type Hash } from "node:crypto";
import { parentPort } from "node:worker_threads";

/** With `algorithms` a hash begins; with `chunk` it goes on; with neither it ends. */
export interface HashRequest {
  readonly id: number;
  readonly algorithms?: readonly string[];
  readonly chunk?: Uint8Array;
}

/** One for each chunk, without `digests`; then one for the end. */
export interface HashAnswer {
  readonly id: number;
  readonly digests?: ReadonlyMap<string, Uint8Array>;
}

const begun = new Map<number, ReadonlyMap<string, Hash>>();

parentPort?.on("message", ({ id, algorithms, chunk }: HashRequest) => {
  if (algorithms !== undefined) {
    begun.set(id, new Map(algorithms.map((algorithm) => [algorithm, createHash(algorithm)])));
    return;
  }
  const hashes = begun.get(id) ?? new Map<string, Hash>();
  if (chunk !== undefined) {
    for (const hash of hashes.values()) hash.update(chunk);
    parentPort?.postMessage({ id } satisfies HashAnswer);
    return;
  }
  begun.delete(id);
  const digests = new Map([...hashes].map(([algorithm, hash]) => [algorithm, hash.digest()]));
  parentPort?.postMessage({ id, digests } satisfies HashAnswer);
});
