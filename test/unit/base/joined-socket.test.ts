/** Bodies of any form, over connections with and without TLS, arrive unchanged although their memory is reused. */
import { createHash } from "node:crypto";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { createServer as createSecureServer } from "node:https";
import { type AddressInfo, createServer as createPlainServer, type Server, type Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import fc from "fast-check";
import type { Dispatcher } from "undici";
import { afterEach, describe, expect, test } from "vitest";
import { returnChunk } from "../../../src/base/blocks.ts";
import { openConnections } from "../../../src/base/connection.ts";
import { joinedConnector } from "../../../src/base/joined-socket.ts";
import { type Answer, receive } from "../../../src/service/receiving.ts";
import { CA, SERVER } from "../../support/tls.ts";

const ends: (() => unknown)[] = [];
afterEach(end);

async function end(): Promise<void> {
  for (const stop of ends.splice(0).reverse()) await stop();
}

type Framing = "length" | "chunked" | "close";

interface Body {
  readonly framing: Framing;
  /** The server writes them one by one. */
  readonly pieces: readonly { readonly bytes: number; readonly pauseMs: number }[];
  readonly seed: number;
}

interface Reading {
  /** The pause after each chunk. */
  readonly pauseMs: number;
  readonly returns: boolean;
}

const anyBody: fc.Arbitrary<Body> = fc.record({
  framing: fc.constantFrom<Framing[]>("length", "chunked", "close"),
  pieces: fc.array(
    fc.record({
      bytes: fc.oneof(
        fc.constantFrom(1, 16_383, 16_384, 65_536, 1_048_576),
        fc.integer({ min: 1, max: 400_000 }),
      ),
      pauseMs: fc.constantFrom(0, 0, 0, 2),
    }),
    { maxLength: 12 },
  ),
  seed: fc.integer({ min: 1, max: 255 }),
});
const anyReading: fc.Arbitrary<Reading> = fc.record({
  pauseMs: fc.constantFrom(0, 0, 1, 5),
  returns: fc.boolean(),
});

describe.each(["http", "https"] as const)("%s", (scheme) => {
  test("any body arrives unchanged, for any number of readers at once", { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(anyBody, anyReading), { minLength: 1, maxLength: 6 }),
        async (asked) => {
          const bodies = asked.map(([body]) => body);
          const connections = await open(scheme, (request, response) => {
            const body = bodies[Number(request.url?.slice(1))];
            if (body !== undefined) void answer(body, response);
          });
          // Two connections: some answers follow others on the same one.
          const digests = await Promise.all(
            asked.map(async ([, reading], index) => read(await ask(connections, `/${index}`), reading)),
          );
          expect(digests).toEqual(bodies.map(digestOf));
          await end();
        },
      ),
      { numRuns: 12 },
    );
  });

  test("a slow reader makes the service wait", async () => {
    let sent = 0;
    const connections = await open(scheme, (_request, response) => {
      const endless = function* () {
        for (; ; sent += 65_536) yield Buffer.alloc(65_536);
      };
      pipeline(endless, response).catch(() => {});
    });
    const { body } = await ask(connections, "/0");
    const sentMeanwhile = async () => {
      const before = sent;
      await delay(300);
      return before === 0 ? "nothing yet" : sent - before;
    };
    await expect.poll(sentMeanwhile).toBe(0);
    // The buffers of both kernels are the larger part.
    expect(sent).toBeLessThan(32 * 1024 * 1024);
    body.cancel();
  });

  test("bytes before a broken connection can be read", async () => {
    const connections = await open(scheme, (_request, response) => {
      response.setHeader("content-length", 10_000_000);
      response.write(Buffer.alloc(300_000), () => setTimeout(() => response.destroy(), 200));
    });
    const { body } = await ask(connections, "/0");
    let bytes = 0;
    await expect(async () => {
      for await (const chunk of body) bytes += chunk.byteLength;
    }).rejects.toThrow();
    expect(bytes).toBe(300_000);
  });
});

test.each([1_000, 200_000])(
  "a reader that pauses gets all %i bytes before it sees that the connection broke",
  async (bytes) => {
    const server = createPlainServer((socket) => {
      socket.write(Buffer.alloc(bytes), () => setTimeout(() => socket.resetAndDestroy(), 100));
    });
    const { joined, inner } = await connectJoined(await listen(server, "http"));
    let received = 0;
    const readAll = () => {
      for (let chunk = joined.read(); chunk !== null; chunk = joined.read()) {
        // As undici, which ignores bytes of a destroyed socket.
        if (!joined.destroyed) received += chunk.byteLength;
      }
    };
    joined.on("error", () => {});
    joined.once("readable", () => {});
    await closed(inner);
    joined.on("readable", readAll);
    readAll();
    await closed(joined);
    expect(received).toBe(bytes);
  },
);

test("the end of an idle connection is passed on before the next request could be sent on it", async () => {
  const server = createPlainServer((socket) => setTimeout(() => socket.end(), 50));
  const { joined, inner } = await connectJoined(await listen(server, "http"));
  joined.resume();
  const isEnded = new Promise((resolve) => {
    inner.prependListener("end", () => setImmediate(() => resolve(joined.readableEnded)));
  });
  expect(await isEnded).toBe(true);
});

/** Unlike `once`, does not reject because of an error before. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once("close", () => resolve()));
}

/** `inner`: the connection itself. */
async function connectJoined(url: string): Promise<{ readonly joined: Socket; readonly inner: Socket }> {
  const inner = Promise.withResolvers<Socket>();
  const watch = (message: unknown) => inner.resolve((message as { socket: Socket }).socket);
  subscribe("net.client.socket", watch);
  const { hostname, host, protocol, port } = new URL(url);
  const joined = await new Promise<Socket>((resolve, reject) => {
    joinedConnector({})({ hostname, host, protocol, port }, (...[error, socket]) =>
      error === null ? resolve(socket) : reject(error),
    );
  });
  unsubscribe("net.client.socket", watch);
  ends.push(() => joined.destroy());
  return { joined, inner: await inner.promise };
}

async function open(scheme: "http" | "https", listener: RequestListener): Promise<Dispatcher> {
  const server: Server = scheme === "http" ? createServer(listener) : createSecureServer(SERVER, listener);
  const connections = connect(await listen(server, scheme), 2);
  ends.push(() => connections.destroy());
  return connections;
}

async function listen(server: Server, scheme: "http" | "https"): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  ends.push(() => new Promise((resolve) => server.close(resolve)));
  return `${scheme}://localhost:${(server.address() as AddressInfo).port}`;
}

function connect(url: string, connections: number): Dispatcher {
  const proxy = { http: "", https: "", except: "" };
  const options = { proxy, ca: CA, cert: undefined, key: undefined, timeoutMs: 20_000, connections };
  return openConnections(options, new URL(url));
}

function ask(connections: Dispatcher, path: string): Promise<Answer> {
  const { signal } = new AbortController();
  return receive(connections, { path, method: "GET" }, signal, () => {});
}

async function answer(
  { framing, pieces, seed }: Body,
  response: Parameters<RequestListener>[1],
): Promise<void> {
  const length = pieces.reduce((sum, { bytes }) => sum + bytes, 0);
  if (framing === "length") response.setHeader("content-length", length);
  if (framing === "close") response.useChunkedEncodingByDefault = false;
  for (const [index, { bytes, pauseMs }] of pieces.entries()) {
    response.write(contentOf(bytes, seed, index));
    if (pauseMs > 0) await delay(pauseMs);
  }
  response.end();
}

async function read({ body }: Answer, { pauseMs, returns }: Reading): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of body) {
    if (pauseMs > 0) await delay(pauseMs);
    hash.update(chunk);
    if (returns) returnChunk(chunk);
  }
  return hash.digest("hex");
}

function digestOf({ pieces, seed }: Body): string {
  const hash = createHash("sha256");
  for (const [index, { bytes }] of pieces.entries()) hash.update(contentOf(bytes, seed, index));
  return hash.digest("hex");
}

/** No two positions of a body are easily confused. */
function contentOf(bytes: number, seed: number, index: number): Buffer {
  const numbers = new Uint32Array(Math.ceil(bytes / 4));
  for (let at = 0; at < numbers.length; at++)
    numbers[at] = Math.imul(at + 1, 2654435761) ^ (seed * 65_537 + index);
  return Buffer.from(numbers.buffer, 0, bytes);
}
