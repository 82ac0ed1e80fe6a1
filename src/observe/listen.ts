/** Listens on an address. Retries where the port is taken: downloads do not depend on the console. */
import { once } from "node:events";
import { chmod, lstat, rm } from "node:fs/promises";
import type { Server } from "node:http";
import { connect } from "node:net";
import type { Emit } from "../model/events.ts";

export type ListenAddress = { readonly host: string; readonly port: number } | { readonly path: string };

const TRY_AGAIN_MS = 30_000;
/** For the owner and the group: whoever may reach the socket sees the page. */
const SOCKET_MODE = 0o660;

/** Returns what ends it. */
export function startListening(server: Server, at: ListenAddress, emit: Emit): () => Promise<void> {
  let isReported = false;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const attempt = async () => {
    try {
      await listen(server, at);
      emit({ type: "console-opened", address: describeAddress(server, at) });
    } catch (error) {
      const address = describeAddress(server, at);
      if (!isReported) emit({ type: "console-failed", address, reason: reasonOf(error) });
      isReported = true;
      if (!isClosed) timer = setTimeout(() => void attempt(), TRY_AGAIN_MS);
    }
  };
  const begun = attempt();
  return async () => {
    isClosed = true;
    clearTimeout(timer);
    await begun;
    if (!server.listening) return void server.emit("close");
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  };
}

async function listen(server: Server, at: ListenAddress): Promise<void> {
  if ("path" in at) await removeStale(at.path);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once("error", reject).once("listening", resolve);
  try {
    server.listen(at);
    await promise;
  } finally {
    server.off("error", reject).off("listening", resolve);
  }
  if ("path" in at) await chmod(at.path, SOCKET_MODE);
}

/** A socket that nobody answers is what a crash left; anything else is not ours to remove. */
async function removeStale(path: string): Promise<void> {
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined || !found.isSocket()) return;
  const socket = connect(path);
  const isAnswered = await Promise.race([
    once(socket, "connect").then(() => true),
    once(socket, "error").then(() => false),
  ]).catch(() => false);
  socket.destroy();
  if (!isAnswered) await rm(path, { force: true });
}

function describeAddress(server: Server, at: ListenAddress): string {
  if ("path" in at) return `unix:${at.path}`;
  const bound = server.address();
  const port = bound !== null && typeof bound === "object" ? bound.port : at.port;
  return `http://${at.host.includes(":") ? `[${at.host}]` : at.host}:${port}/`;
}

function reasonOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
