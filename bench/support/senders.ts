/** Sends one text on many connections, one after the other, as a thread of its own: its CPU time is not that of the console. */
import { connect } from "node:net";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

export interface Sent {
  /** Such as a request. */
  readonly text: string;
  readonly times: number;
  /** The client leaves at the first byte of the answer, or if it waits for one in vain. */
  readonly leaves?: boolean;
}

const AT_ONCE = 40;
const PATIENCE_MS = 20;

/** Resolves when each connection is closed. */
export function sendTo(port: number, sent: Sent): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const worker = new Worker(new URL(import.meta.url), { workerData: { port, ...sent } });
  worker.once("message", () => resolve());
  worker.once("error", reject);
  return promise.finally(() => worker.terminate());
}

async function sendAll({ port, times, ...sent }: Sent & { readonly port: number }): Promise<void> {
  let left = times;
  const sendSome = async () => {
    while (left-- > 0) await sendOnce(port, sent);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, sendSome));
}

function sendOnce(port: number, { text, leaves = false }: Omit<Sent, "times">): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect(port, "127.0.0.1");
  const leave = () => {
    if (leaves) socket.destroy();
  };
  socket.once("connect", () => socket.write(text, () => setTimeout(leave, PATIENCE_MS)));
  socket.on("data", leave);
  // The console may close the connection.
  socket.on("error", () => {});
  socket.once("close", () => resolve());
  return promise;
}

if (!isMainThread) void sendAll(workerData).then(() => parentPort?.postMessage("done"));
