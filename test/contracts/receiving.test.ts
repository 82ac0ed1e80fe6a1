/** Large bodies arrive unchanged, however they are sent and read. */
import { createHash, randomBytes } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { Secret } from "../../src/base/secret.ts";
import { type Http, openHttp } from "../../src/service/http.ts";
import { listen } from "../support/servers.ts";
import { SIGNAL } from "../support/service.ts";
import { CA, SERVER } from "../support/tls.ts";

const CONTENT = randomBytes(7_654_321);

type Send = (response: ServerResponse) => void | Promise<void>;

const WAYS: Readonly<Record<string, Send>> = {
  "with its length": (response) =>
    void response.writeHead(200, { "content-length": CONTENT.length }).end(CONTENT),
  "in chunks": async (response) => {
    for (let at = 0; at < CONTENT.length; at += 50_001) {
      if (!response.write(CONTENT.subarray(at, at + 50_001)) && at % 3 === 0) await pause(1);
    }
    response.end();
  },
  "until the connection ends": (response) => {
    response.socket?.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
    response.socket?.end(CONTENT);
  },
};

async function serve(send: Send, isPlain: boolean): Promise<Http> {
  const answer = (_: unknown, response: ServerResponse) => void send(response);
  const server = isPlain ? createServer(answer) : createTlsServer(SERVER, answer);
  const address = await listen(server);
  const http = openHttp({
    baseUrl: new URL(isPlain ? address : address.replace("http:", "https:")),
    clientId: new Secret("x"),
    acceptLanguage: "en",
    userAgent: "inlet/test",
    proxy: { http: "", https: "", except: "" },
    ca: CA,
    cert: undefined,
    key: undefined,
    timeoutMs: 20_000,
    maxRequests: () => 16,
  });
  onTestFinished(() => http.close());
  return http;
}

const call = { what: "a file", path: ["file"] };

async function hashOf(http: Http, onChunk: (number: number) => Promise<void> | void): Promise<string> {
  const { body } = await http.stream(call, SIGNAL);
  const hash = createHash("sha256");
  let number = 0;
  for await (const chunk of body) {
    await onChunk(number++);
    hash.update(chunk);
  }
  return hash.digest("hex");
}

const EXPECTED = createHash("sha256").update(CONTENT).digest("hex");

describe.each([
  ["plain", true],
  ["by TLS", false],
] as const)("a large body, %s", (_name, isPlain) => {
  test.each(Object.entries(WAYS))(
    "%s, arrives unchanged for many concurrent readers, fast and slow",
    async (_way, send) => {
      const http = await serve(send, isPlain);
      const slow = async (number: number) => {
        if (number % 3 === 0) await pause(2);
      };
      const digests = await Promise.all([
        hashOf(http, () => {}),
        hashOf(http, slow),
        hashOf(http, (number) => (number === 0 ? pause(100) : undefined)),
        hashOf(http, () => {}),
        hashOf(http, slow),
      ]);
      expect(digests).toEqual(digests.map(() => EXPECTED));
    },
  );

  test("that is cut short yields the received bytes, then fails", async () => {
    const sent = 3_000_000;
    const http = await serve((response) => {
      response.writeHead(200, { "content-length": CONTENT.length });
      response.write(CONTENT.subarray(0, sent), () => response.destroy());
    }, isPlain);
    const { body } = await http.stream(call, SIGNAL);
    const chunks: Uint8Array[] = [];
    const reading = (async () => {
      for await (const chunk of body) {
        chunks.push(chunk);
        await pause(5);
      }
    })();
    await expect(reading).rejects.toThrow();
    const whole = Buffer.concat(chunks);
    expect(whole.length).toBeGreaterThan(0);
    expect(whole.equals(CONTENT.subarray(0, whole.length))).toBe(true);
  });

  test("that is not read is not buffered, and ends when it is cancelled or stopped", async () => {
    let taken = 0;
    const http = await serve(async (response) => {
      response.setMaxListeners(0).on("error", () => {});
      while (!response.destroyed) {
        if (response.write(CONTENT.subarray(0, 100_000))) taken += 100_000;
        else await Promise.race([new Promise((resolve) => response.once("drain", resolve)), pause(20)]);
      }
    }, isPlain);
    const stop = new AbortController();
    const { body } = await http.stream(call, stop.signal);
    await pause(300);
    const before = taken;
    await pause(200);
    // All buffers on the way are full by then.
    expect(taken - before).toBeLessThan(1_000_000);
    stop.abort(new Error("stopped"));
    await expect(body[Symbol.asyncIterator]().next()).rejects.toThrow("stopped");
    const other = await http.stream(call, SIGNAL);
    other.body.cancel();
    await expect(other.body[Symbol.asyncIterator]().next()).rejects.toThrow("not read to its end");
  });
});
