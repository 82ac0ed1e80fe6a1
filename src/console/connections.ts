/** Keeps the server reachable, and its memory small, when clients open many connections or send many requests at once. */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

const MAX_CONNECTIONS = 200;
/** From one address; a proxy needs few. */
const MAX_PER_PEER = 100;

/** Requests that a client may send before it has the answer to an earlier one. A connection with more is closed. */
const MAX_WAITING = 8;

/**
 * Calls `answer` for each request, one at a time on each connection, because a client that reads no answers could make
 * them fill the memory.
 */
export function answerInSequence(server: Server, answer: (response: ServerResponse) => void): void {
  const waiting = new WeakMap<Socket, ServerResponse[]>();
  const start = (socket: Socket, response: ServerResponse) => {
    response.once("close", () => {
      const next = waiting.get(socket)?.shift();
      if (next === undefined || socket.destroyed) waiting.delete(socket);
      else start(socket, next);
    });
    answer(response);
  };
  server.on("request", ({ socket }, response) => {
    const others = waiting.get(socket);
    if (others !== undefined && others.length >= MAX_WAITING) socket.destroy();
    else if (others !== undefined) others.push(response);
    else {
      waiting.set(socket, []);
      start(socket, response);
    }
  });
}

/** A new connection beyond the limits replaces the one that was idle longest, so that health probes get through. */
export function limitConnections(server: Server): void {
  /** The longest idle first. */
  const idle = new Set<Socket>();
  const open = new Set<Socket>();
  const forget = (socket: Socket) => {
    open.delete(socket);
    idle.delete(socket);
  };
  const close = (socket: Socket) => {
    forget(socket);
    socket.destroy();
  };
  server.on("connection", (socket: Socket) => {
    open.add(socket);
    idle.add(socket);
    socket.once("close", () => forget(socket));
    const ofPeer = (other: Socket) => other.remoteAddress === socket.remoteAddress && other !== socket;
    if ([...open].filter(ofPeer).length >= MAX_PER_PEER) close([...idle].find(ofPeer) ?? socket);
    if (open.size > MAX_CONNECTIONS) close([...idle].find((other) => other !== socket) ?? socket);
  });
  server.on("request", (request, response) => {
    idle.delete(request.socket);
    response.once("close", () => {
      if (open.has(request.socket)) idle.add(request.socket);
    });
  });
}
