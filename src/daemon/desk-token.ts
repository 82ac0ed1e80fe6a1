/** The token of the page, read again and again from where it comes from: a changed one counts without a restart. */
import type { Clock } from "../base/clock.ts";
import type { Secret, SecretSource } from "../base/secret.ts";

/** However often somebody tries: a source may be a command. */
const READ_EVERY_MS = 2_000;

interface Reading {
  readonly source: SecretSource;
  readonly atMs: number;
  readonly isRead: Promise<boolean>;
}

/**
 * Returns what reads it, unless that was done a moment ago; `source` says where it comes from now. False where it cannot
 * be read: nobody is let in by one that may not count any more.
 */
export function createTokenReader(
  source: () => SecretSource | undefined,
  onRead: (token: Secret) => void,
  clock: Clock,
  stop: AbortSignal,
): () => Promise<boolean> {
  let last: Reading | undefined;
  return async () => {
    const now = source();
    if (now === undefined) return true;
    const atMs = clock.now();
    if (last?.source !== now || Math.abs(atMs - last.atMs) >= READ_EVERY_MS) {
      const isRead = now.read(stop).then(
        (token) => {
          onRead(token);
          return true;
        },
        () => false,
      );
      last = { source: now, atMs, isRead };
    }
    return last.isRead;
  };
}
