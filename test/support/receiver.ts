/** A receiver of webhooks over real HTTP, with answers chosen by the test. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";
import { onTestFinished } from "vitest";

interface Call {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly path: string;
}

export interface Receiver {
  readonly url: string;
  readonly calls: Call[];
}

/** Gives the answers in turn, then repeats the last one. */
export async function openReceiver(...answers: ((response: ServerResponse) => void)[]): Promise<Receiver> {
  const calls: Call[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const answer = answers[Math.min(calls.length, answers.length - 1)] ?? accept;
    calls.push({ headers: request.headers, body, path: request.url ?? "" });
    answer(response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return { url: `http://127.0.0.1:${port}/hook?token=in-the-query`, calls };
}

export function accept(response: ServerResponse): void {
  response.writeHead(204).end();
}

export function refuse(status: number, headers: Record<string, string> = {}) {
  return (response: ServerResponse): void => void response.writeHead(status, headers).end("no");
}

/** Never answers. */
export function hang(): void {}
