/** A TCP proxy that can drop all data without closing the connections, like a cut line. */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface TcpProxy {
  readonly port: number;
  cut(): void;
  mend(): void;
}

export async function openTcpProxy(targetPort: number): Promise<TcpProxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isCut = false;
  const server = createServer((near) => {
    const far = connect(targetPort, "127.0.0.1");
    const pair = [near, far] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on("data", (chunk) => {
        if (!isCut) to.write(chunk);
      });
      from
        .on("error", () => {})
        .on("close", () => {
          to.destroy();
          pairs.delete(pair);
        });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const [near, far] of pairs) [near, far].map((socket) => socket.destroy());
    server.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return {
    port: address.port,
    cut() {
      isCut = true;
    },
    /** Dropped data stays lost, so both ends get a closed connection. */
    mend() {
      isCut = false;
      for (const [near, far] of pairs) [near, far].map((socket) => socket.destroy());
    },
  };
}
