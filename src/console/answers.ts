/** Sends HTTP answers. */
import type { ServerResponse } from "node:http";

export function sendJson(response: ServerResponse, status: number, value: unknown): void {
  send(response, status, "application/json; charset=utf-8", `${JSON.stringify(value)}\n`);
}

export function refuse(response: ServerResponse, status: number, message: string): void {
  send(response, status, "text/plain; charset=utf-8", `${message}\n`);
}

export function sendPage(response: ServerResponse, status: number, page: string): void {
  send(response, status, "text/html; charset=utf-8", page);
}

export function send(response: ServerResponse, status: number, type: string, body: string | Buffer): void {
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(body) });
  response.end(response.req.method === "HEAD" ? undefined : body);
}
