/** Connections that misbehaviour can pause and reset. */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout } from "node:timers/promises";

/** The longest time of a timer. */
const FOREVER_MS = 2 ** 31 - 1;
/** Written bytes need this time to leave the machine: a reset drops the rest. */
const LEAVE_MS = 20;

/** The connection of one request. */
export type Wire = ReturnType<Wires["open"]>;

export class Wires {
  /** The TCP connections, also below TLS, by the client's address. */
  readonly #sockets = new Map<string, Socket>();

  constructor(server: Server) {
    server.on("connection", (socket: Socket) => {
      const address = clientAddress(socket);
      this.#sockets.set(address, socket);
      socket.once("close", () => this.#sockets.delete(address));
    });
  }

  destroyAll(): void {
    for (const socket of this.#sockets.values()) socket.destroy();
  }

  open(response: ServerResponse, signal: AbortSignal) {
    const pause = (ms = FOREVER_MS): Promise<void> =>
      setTimeout(Math.min(ms, FOREVER_MS), undefined, { signal });
    return {
      /** Waits, forever without `ms`; rejects when the client disconnects. */
      pause,
      /** Resets the connection, after the bytes written so far have left. */
      reset: async () => {
        if (response.headersSent) await pause(LEAVE_MS);
        if (response.socket !== null) this.#sockets.get(clientAddress(response.socket))?.resetAndDestroy();
      },
    };
  }
}

function clientAddress({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
