/** Writes an answer to the connection, no faster than the client takes it. */
import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Outgoing } from "./body.ts";
import type { Chunks } from "./chunks.ts";

/** How much is written before other connections get their turn, even if this client takes everything at once. */
const BYTES_PER_TURN = 8 * 1024 * 1024;

/** Resolves when everything is written or the client is gone; `onBytes` hears of each chunk. */
export async function send(
  outgoing: Outgoing,
  response: ServerResponse,
  onBytes: (bytes: number) => void,
): Promise<void> {
  if (response.destroyed) return;
  const { status, headers, announcedBytes } = outgoing;
  response.writeHead(status, {
    ...headers,
    ...(announcedBytes === undefined ? {} : { "Content-Length": announcedBytes }),
    ...(outgoing.isCutOff ? { Connection: "close" } : {}),
  });
  response.flushHeaders();
  await writeAll(outgoing.chunks, response, onBytes);
  if (response.destroyed) return;
  if (outgoing.isCutOff) response.socket?.destroySoon();
  else response.end();
}

async function writeAll(
  chunks: Chunks,
  response: ServerResponse,
  onBytes: (bytes: number) => void,
): Promise<void> {
  let sinceTurn = 0;
  for await (const chunk of chunks) {
    if (response.destroyed) return;
    onBytes(chunk.length);
    if (!response.write(chunk)) await drained(response);
    sinceTurn += chunk.length;
    if (sinceTurn < BYTES_PER_TURN) continue;
    sinceTurn = 0;
    await setImmediate();
  }
}

/** Waits until the client has taken what was written, or has gone. */
function drained(response: ServerResponse): Promise<void> {
  if (response.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off("drain", settle).off("close", settle);
      resolve();
    };
    response.on("drain", settle).on("close", settle);
  });
}
