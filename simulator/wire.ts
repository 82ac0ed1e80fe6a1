/** Connections in the hands of misbehaviour: they can be kept waiting, and torn. */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setTimeout } from "node:timers/promises";
import type { Wire } from "./misbehave.ts";

/** The longest time that a timer can wait; it stands for ever. */
const FOR_EVER_MS = 2 ** 31 - 1;
/** What was written has to leave this machine before a reset, which would throw it away. */
const LEAVE_MS = 20;

export class Wires {
  /** The plain connections, also below TLS, where a reset has to happen; by the client's end of each. */
  readonly #plain = new Map<string, Socket>();

  constructor(server: Server) {
    server.on("connection", (socket: Socket) => {
      const end = clientEnd(socket);
      this.#plain.set(end, socket);
      socket.once("close", () => this.#plain.delete(end));
    });
  }

  /** Ends every connection at once, whatever it is doing. */
  tearAll(): void {
    for (const socket of this.#plain.values()) socket.destroy();
  }

  open(response: ServerResponse, signal: AbortSignal): Wire {
    const pause = (ms = FOR_EVER_MS): Promise<void> =>
      setTimeout(Math.min(ms, FOR_EVER_MS), undefined, { signal });
    return {
      pause,
      reset: async () => {
        if (response.headersSent) await pause(LEAVE_MS);
        if (response.socket !== null) this.#plain.get(clientEnd(response.socket))?.resetAndDestroy();
      },
    };
  }
}

function clientEnd({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
