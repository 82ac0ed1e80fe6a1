/** Small servers beside or in front of the simulated service, which end with the test. */
import { once } from "node:events";
import { createServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { onTestFinished } from "vitest";

/** Listens on a free port of this machine until the end of the test. */
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

/** Accepts connections, and says nothing. Returns its port. */
export async function openSilent(): Promise<number> {
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

/** A server that answers everything with 200, and records all requests. */
export async function openWitness(): Promise<{ url: string; seen: IncomingMessage[] }> {
  const seen: IncomingMessage[] = [];
  const server = createServer((message, response) => {
    seen.push(message);
    response.setHeader("content-type", "application/json").end('{"data":[]}');
  });
  return { url: await listen(server), seen };
}

/** A forward proxy that records all requests. Demands `credentials` if given. */
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

export interface Rewritten {
  readonly status?: number;
  /** Replaces the body. */
  readonly json?: unknown;
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A reverse proxy that rewrites some of a service's answers, and records all URLs. `base`: the path that it serves. */
export async function openFront(
  service: { readonly url: string; readonly clientId: string },
  rewrite: (url: URL, body: string) => Rewritten | undefined,
  base = "",
): Promise<{ url: string; clientId: string; seen: URL[] }> {
  const seen: URL[] = [];
  const server = createServer((message, response) => {
    const url = new URL((message.url ?? "/").slice(base.length), service.url);
    seen.push(url);
    const { method = "GET", headers } = message;
    const { "accept-encoding": _, host: __, ...kept } = headers;
    const onward = request(url, { method, headers: kept }, async (answer) => {
      const body = Buffer.concat(await answer.toArray());
      const changed = rewrite(url, body.toString());
      const { "transfer-encoding": ___, "content-length": ____, ...own } = answer.headers;
      const text = changed?.json === undefined ? changed?.text : JSON.stringify(changed.json);
      const type = changed?.json === undefined ? {} : { "content-type": "application/json" };
      response.writeHead(changed?.status ?? answer.statusCode ?? 502, {
        ...own,
        ...type,
        ...changed?.headers,
      });
      response.end(text ?? body);
    });
    onward.on("error", () => response.destroy());
    message.pipe(onward);
  });
  return { url: (await listen(server)) + base, clientId: service.clientId, seen };
}
