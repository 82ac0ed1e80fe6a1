/** Small servers that tests put beside or in front of the simulated service; each ends with its test. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { onTestFinished } from "vitest";

/** Listens on a free port of this machine until the test is over. */
export async function listen(server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that answers everything with 200 and remembers the requests it saw. */
export async function openWitness(): Promise<{ url: string; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = [];
  const server = createServer((message, response) => {
    seen.push(message);
    response.setHeader("content-type", "application/json").end('{"data":[]}');
  });
  return { url: await listen(server), seen };
}

/** A forward proxy that remembers what it was asked to reach; with `credentials` it wants to be told them. */
export async function openProxy(credentials?: string): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const refused = (message: IncomingMessage) =>
    credentials !== undefined &&
    message.headers["proxy-authorization"] !== `Basic ${Buffer.from(credentials).toString("base64")}`;
  const server = createServer((message, response) => {
    asked.push(`${message.method} ${message.url}`);
    if (refused(message)) return void response.writeHead(407).end();
    const { method, headers, url = "" } = message;
    const onward = request(url, { ...(method === undefined ? {} : { method }), headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    message.pipe(onward);
  });
  const tunnels = new Set<{ destroy(): void }>();
  server.on("connect", (message, socket) => {
    asked.push(`CONNECT ${message.url}`);
    if (refused(message)) return void socket.end("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
    const [host, port] = (message.url ?? "").split(":");
    const onward = connect(Number(port), host ?? "", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      socket.pipe(onward).pipe(socket);
    });
    for (const end of [socket, onward]) {
      tunnels.add(end);
      end.on("error", () => {});
    }
  });
  const url = await listen(server);
  onTestFinished(() => {
    for (const tunnel of tunnels) tunnel.destroy();
  });
  return { url, asked };
}
