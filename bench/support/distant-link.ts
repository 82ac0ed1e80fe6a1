/**
 * A link to a distant service: a TCP proxy that delays every byte, and passes at most so many bytes per second to the client.
 * A program of its own, so that its work does not count. Arguments: the port of the service, the milliseconds there and back,
 * the bytes per second. Prints its port.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** What the link buffers, as a time: a sender that is ahead waits. */
const MAX_BUFFERED_MS = 50;

const [targetPort = 0, roundTripMs = 0, bytesPerSecond = 0] = process.argv.slice(2).map(Number);
let freeAtMs = 0;

const server = createServer({ allowHalfOpen: true, noDelay: true }, (near) => {
  const far = connect({ port: targetPort, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  // The handshake of TCP costs a round trip before the first byte.
  const openAtMs = performance.now() + roundTripMs;
  pass(near, far, () => Math.max(performance.now(), openAtMs) + roundTripMs / 2);
  pass(far, near, (bytes) => {
    freeAtMs = Math.max(freeAtMs, performance.now()) + (bytes / bytesPerSecond) * 1_000;
    return freeAtMs + roundTripMs / 2;
  });
  for (const [one, other] of [
    [near, far],
    [far, near],
  ] as const) {
    one.on("error", () => {}).on("close", () => other.destroy());
  }
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const address = server.address();
if (address === null || typeof address === "string") throw new Error("no port");
process.stdout.write(`${address.port}\n`);

/** `arrival`: when a chunk of this size arrives. */
function pass(from: Socket, to: Socket, arrival: (bytes: number) => number): void {
  const waiting: { readonly atMs: number; readonly chunk: Buffer | undefined }[] = [];
  const flush = () => {
    for (let [next] = waiting; next !== undefined && next.atMs <= performance.now(); [next] = waiting) {
      waiting.shift();
      if (next.chunk === undefined) to.end();
      else to.write(next.chunk);
    }
    const [next] = waiting;
    if (next !== undefined) setTimeout(flush, Math.max(0, next.atMs - performance.now()));
  };
  const add = (chunk: Buffer | undefined) => {
    waiting.push({ atMs: arrival(chunk?.byteLength ?? 0), chunk });
    if (waiting.length === 1) setTimeout(flush, Math.max(0, (waiting[0]?.atMs ?? 0) - performance.now()));
  };
  from.on("data", (chunk) => {
    add(chunk);
    const aheadMs = freeAtMs - performance.now();
    if (aheadMs > MAX_BUFFERED_MS) {
      from.pause();
      setTimeout(() => from.resume(), aheadMs - MAX_BUFFERED_MS);
    }
  });
  from.on("end", () => add(undefined));
}
