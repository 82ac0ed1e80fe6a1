/** Writes an answer to the connection, no faster than the client reads it. */
import type { ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Outgoing } from "./body.ts";
import type { Chunks } from "./chunks.ts";

/** The bytes to write before the event loop continues, for the sake of other connections. */
const BYTES_PER_SLICE = 8 * 1024 * 1024;

/** Resolves when everything is written or the client has disconnected. Calls `onBytes` for each chunk. */
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
  let sinceYield = 0;
  for await (const chunk of chunks) {
    if (response.destroyed) return;
    onBytes(chunk.length);
    if (!response.write(chunk)) await drained(response);
    sinceYield += chunk.length;
    if (sinceYield < BYTES_PER_SLICE) continue;
    sinceYield = 0;
    await setImmediate();
  }
}

/** Waits until the client has read the written bytes, or has disconnected. */
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
