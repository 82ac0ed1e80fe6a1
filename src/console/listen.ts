/** Makes the HTTP server listen. */
import { once } from "node:events";
import { chmod, link, mkdtemp, rm } from "node:fs/promises";
import type { Server } from "node:http";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { lookAtLink } from "../base/files.ts";
import { pauseOrAbort } from "../base/timers.ts";
import type { Emit } from "../model/events.ts";
import { describeListen, type ListenAddress } from "../operate/client.ts";

const RETRY_MS = 30_000;
/** Owner and group may open the console. */
const SOCKET_MODE = 0o660;

/**
 * Retries if the address is taken, because downloads do not depend on the console, and reports only the first failure.
 * Returns a function that closes the server.
 */
export function startListening(server: Server, at: ListenAddress, emit: Emit): () => Promise<void> {
  const closing = new AbortController();
  const keepTrying = async () => {
    for (let isFirst = true; !closing.signal.aborted; isFirst = false) {
      try {
        await listen(server, at);
        return emit({ type: "console-opened", address: describeAddress(server, at) });
      } catch (error) {
        const address = describeAddress(server, at);
        if (isFirst) emit({ type: "console-failed", address, reason: reasonOf(error) });
      }
      await pauseOrAbort(RETRY_MS, closing.signal);
    }
  };
  const trying = keepTrying();
  return async () => {
    closing.abort();
    await trying;
    if (!server.listening) return void server.emit("close");
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
    if ("path" in at) await rm(at.path, { force: true });
  };
}

async function listen(server: Server, at: ListenAddress): Promise<void> {
  if (!("path" in at)) return void (await once(server.listen(at), "listening"));
  await removeIfStale(at.path);
  // The umask decides the mode of a new socket, so its mode is set in a folder that only we can enter.
  const folder = await mkdtemp(join(dirname(at.path), ".inlet-"));
  const temporary = join(folder, "s");
  try {
    await once(server.listen(temporary), "listening");
    await chmod(temporary, SOCKET_MODE);
    // Not a rename, which would replace a file that is not ours.
    await link(temporary, at.path);
  } catch (error) {
    server.close();
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Removes a socket that does not answer, left by a crash. Leaves everything else alone. */
async function removeIfStale(path: string): Promise<void> {
  const found = await lookAtLink(path);
  if (found === undefined || !found.isSocket()) return;
  const socket = connect(path);
  const isAnswered = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  if (!isAnswered) await rm(path, { force: true });
}

function describeAddress(server: Server, at: ListenAddress): string {
  if ("path" in at) return describeListen(at);
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : at.port;
  return `http://${describeListen({ host: at.host, port })}/`;
}

function reasonOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
