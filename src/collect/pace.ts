/** A download that barely moves is as bad as one that stands still: it would hold its place for ever. */
import { Fault } from "../base/faults.ts";

const WINDOW_MS = 120_000;
const LEAST_BYTES_PER_SECOND = 1024;

/** Passes the bytes on, and throws `SERVICE_TIMEOUT` where too few come in a window of time. */
export async function* guardPace(
  body: AsyncIterable<Uint8Array>,
  nowMs: () => number = () => performance.now(),
): AsyncGenerator<Uint8Array, void, undefined> {
  let windowMs = nowMs();
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    const passedMs = nowMs() - windowMs;
    if (passedMs >= WINDOW_MS) {
      if (bytes < (passedMs / 1000) * LEAST_BYTES_PER_SECOND) {
        throw new Fault("SERVICE_TIMEOUT", { detail: `less than ${LEAST_BYTES_PER_SECOND} bytes a second` });
      }
      windowMs = nowMs();
      bytes = 0;
    }
    yield chunk;
  }
}
