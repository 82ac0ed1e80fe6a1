/** Makes the HTTP server listen. */
import { once } from "node:events";
import { chmod, link, lstat, mkdtemp, rm } from "node:fs/promises";
import { connect, type Server } from "node:net";
import { dirname, join } from "node:path";
import { MAX_QUEUED_CONNECTIONS } from "../base/bounds.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { describeListen, type ListenAddress } from "../operate/client.ts";

const RETRY_MS = 30_000;

export interface ConsoleServer extends Server {
  closeAllConnections(): void;
}

/** An address, and what is told of it. */
export interface Door {
  /** Called before each attempt. What it throws has failed the attempt. */
  find(): Promise<ListenAddress>;
  /** Of a socket. */
  readonly mode: number;
  opened(address: string): void;
  /** Called for the first failure, and for the first one after it was open: the file of a socket was removed. `address`: missing if none was found. `reason`: the code of the system's error. */
  failed(error: unknown, reason: string, address?: string): void;
}

/**
 * Retries if the address is taken, because downloads do not depend on the console, and makes a socket anew whose file was removed.
 * Returns a function that closes the server.
 */
export function startListening(server: ConsoleServer, door: Door): () => Promise<void> {
  const closing = new AbortController();
  let at: ListenAddress | undefined;
  const keepTrying = async () => {
    for (let isFirst = true; !closing.signal.aborted; ) {
      try {
        at = await door.find();
        await listen(server, at, door.mode);
        door.opened(describeAddress(server, at));
        isFirst = true;
        if ("path" in at) await whileThere(at.path, closing.signal);
        return;
      } catch (error) {
        if (isFirst) door.failed(error, reasonOf(error), at && describeAddress(server, at));
        isFirst = false;
      }
      if (server.listening) server.close();
      else await pauseOrAbort(RETRY_MS, closing.signal);
    }
  };
  const trying = keepTrying();
  return async () => {
    closing.abort();
    await trying;
    if (!server.listening) return void server.emit("close");
    // Before the server closes: another process would take a closed socket for a stale one, and put its own there.
    if (at !== undefined && "path" in at) await rm(at.path, { force: true });
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  };
}

async function listen(server: ConsoleServer, at: ListenAddress, mode: number): Promise<void> {
  const backlog = MAX_QUEUED_CONNECTIONS;
  if (!("path" in at)) return void (await once(server.listen({ ...at, backlog }), "listening"));
  await removeIfStale(at.path);
  // The umask decides the mode of a new socket, so its mode is set in a folder that only we can enter.
  const folder = await mkdtemp(join(dirname(at.path), ".inlet-"));
  const temporary = join(folder, "s");
  try {
    await once(server.listen({ path: temporary, backlog }), "listening");
    await chmod(temporary, mode);
    // Not a rename, which would replace a file that is not ours.
    await link(temporary, at.path);
  } catch (error) {
    server.close();
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Resolves when the signal aborts. Throws if the file is removed or replaced. */
async function whileThere(path: string, signal: AbortSignal): Promise<void> {
  const { ino } = await lstat(path);
  for (;;) {
    await pauseOrAbort(RETRY_MS, signal);
    if (signal.aborted) return;
    if ((await lstat(path)).ino !== ino) throw new Error("another file is in its place");
  }
}

/** Removes a socket on which nobody listens, left by a crash. Leaves everything else alone, also a listener without time for us. */
async function removeIfStale(path: string): Promise<void> {
  // Without it, the attempt to listen tells why.
  const found = await lstat(path).catch(() => undefined);
  if (!found?.isSocket()) return;
  const socket = connect(path);
  const isStale = await once(socket, "connect").then(
    () => false,
    (error: unknown) => reasonOf(error) === "ECONNREFUSED",
  );
  socket.destroy();
  if (isStale) await rm(path, { force: true });
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
