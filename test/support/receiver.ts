/** A receiver of webhooks over real HTTP, with answers chosen by the test. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

interface Call {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly path: string;
  /** Of the answer. */
  readonly status: number;
}

export interface Receiver {
  readonly url: string;
  readonly calls: Call[];
  /** Refuses connections from now on. */
  stop(): Promise<void>;
  /** Accepts connections on the same port again. */
  start(): Promise<void>;
}

type Answer = (response: ServerResponse) => void;

/** Gives the answers in turn, then repeats the last one. */
export async function openReceiver(...answers: Answer[]): Promise<Receiver> {
  const calls: Call[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const answer = answers[Math.min(calls.length, answers.length - 1)] ?? accept;
    answer(response);
    calls.push({ headers: request.headers, body, path: request.url ?? "", status: response.statusCode });
  });
  const listen = async (port: number) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
  };
  const stop = async () => {
    if (!server.listening) return;
    const closed = once(server, "close");
    server.close();
    server.closeAllConnections();
    await closed;
  };
  await listen(0);
  onTestFinished(stop);
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  const { port } = address;
  return {
    url: `http://127.0.0.1:${port}/hook?token=in-the-query`,
    calls,
    stop,
    start: () => listen(port),
  };
}

export function accept(response: ServerResponse): void {
  response.writeHead(204).end();
}

export function refuse(status: number, headers: Record<string, string> = {}) {
  return (response: ServerResponse): void => void response.writeHead(status, headers).end("no");
}

/** Never answers. */
export function hang(): void {}
