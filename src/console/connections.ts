/** Keeps the server reachable when clients hold many connections open. */
import type { Server } from "node:http";
import type { Socket } from "node:net";

const MAX_CONNECTIONS = 200;
/** From one address; a proxy needs few. */
const MAX_PER_PEER = 100;

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
