/** Ends downloads that are too slow, because each holds a slot. */
import { Fault } from "../base/faults.ts";

const WINDOW_MS = 120_000;
const MIN_BYTES_PER_SECOND = 1024;

/**
 * Passes the bytes on, and throws `SERVICE_TIMEOUT` if too few arrive within a window. Only time spent waiting for the
 * service counts, not the reader's time for the bandwidth limit or the disk.
 */
export async function* guardPace(
  body: AsyncIterable<Uint8Array>,
  nowMs: () => number = () => performance.now(),
): AsyncGenerator<Uint8Array, void, undefined> {
  let waitedMs = 0;
  let bytes = 0;
  let sinceMs = nowMs();
  for await (const chunk of body) {
    waitedMs += nowMs() - sinceMs;
    bytes += chunk.byteLength;
    if (waitedMs >= WINDOW_MS) {
      if (bytes < (waitedMs / 1000) * MIN_BYTES_PER_SECOND) {
        const detail = `less than ${MIN_BYTES_PER_SECOND} bytes a second`;
        throw new Fault("SERVICE_TIMEOUT", { detail, answeredBy: "none" });
      }
      waitedMs = 0;
      bytes = 0;
    }
    yield chunk;
    sinceMs = nowMs();
  }
}
