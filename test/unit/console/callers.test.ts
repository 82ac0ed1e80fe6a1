/** What callers of the console can make us spend is bounded, and probes have a place whatever the others do. */
import { EventEmitter, once } from "node:events";
import { createServer, type Server as HttpServer, request, type ServerResponse } from "node:http";
import { type AddressInfo, connect, Server, type Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  MAX_INTERIM_ANSWERS,
  MAX_OPEN_REQUESTS,
  MAX_REQUESTS_OF_PEER,
  MAX_SIGN_IN_BYTES,
  MAX_SILENT_CONNECTIONS,
  MAX_STREAMS_OF_PEER,
  MAX_UNREAD_BYTES,
  MAX_WAITING_BYTES,
  MAX_WAITING_REFUSALS,
  PIECE_BYTES,
  TURNS_PER_PIECE,
} from "../../../src/base/bounds.ts";
import { sendList } from "../../../src/console/answers.ts";
import { Callers, inTurn, reportLimits } from "../../../src/console/callers.ts";
import { Guesses } from "../../../src/console/sessions.ts";
import type { CallerLimit, DaemonEvent } from "../../../src/model/events.ts";
import { receive } from "../../../src/service/receiving.ts";
import { makeAccess, openTestConsole, READER } from "../../support/console.ts";
import { SIGNAL } from "../../support/service.ts";

test("I8 bounded: clients that read nothing leave no more in memory than the limit for all of them", async () => {
  const responses: ServerResponse[] = [];
  const limits: CallerLimit[] = [];
  const size = 12 * 1024 ** 2;
  const { port, callers } = await serve((response) => {
    responses.push(response);
    response.end(Buffer.alloc(size));
    callers.trim();
  }, limits);
  const unread = () => responses.reduce((sum, it) => sum + (it.destroyed ? 0 : it.writableLength), 0);
  for (let at = 0; at < 8; at++) {
    const socket = open(port);
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await expect.poll(() => responses.length).toBe(at + 1);
    expect(unread()).toBeLessThanOrEqual(MAX_UNREAD_BYTES);
  }
  expect(limits).toContain("unread");
});

test("an answer that is not read ends after a minute, and a request that does not end after 10 s", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const responses: ServerResponse[] = [];
  const limits: CallerLimit[] = [];
  const { port } = await serve((response) => {
    responses.push(response);
    if (response.req.method === "GET") response.end(Buffer.alloc(12 * 1024 ** 2));
  }, limits);
  const [reader, sender] = [open(port), open(port)];
  reader.pause();
  reader.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  sender.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
  await expect.poll(() => responses.length).toBe(2);
  const ended = () => responses.map(({ req, destroyed }) => [req.method, destroyed]).toSorted();
  vi.advanceTimersByTime(9_000);
  expect(ended()).toEqual([
    ["GET", false],
    ["POST", false],
  ]);
  vi.advanceTimersByTime(3_000);
  expect(ended()).toEqual([
    ["GET", false],
    ["POST", true],
  ]);
  vi.advanceTimersByTime(50_000);
  expect(ended()).toEqual([
    ["GET", true],
    ["POST", true],
  ]);
  expect(limits).toEqual(["unfinished", "unread"]);
});

test("half-sent requests hold no place that another one needs, and none at all without rights", async () => {
  const { url } = await openTestConsole(1, { access: makeAccess("open") });
  const { port } = new URL(url);
  const refused = open(Number(port));
  refused.write("POST /api/actions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{");
  expect(await firstLine(refused)).toBe("HTTP/1.1 401 Unauthorized");
  for (let at = 0; at < MAX_REQUESTS_OF_PEER + 20; at++) {
    const head = "POST /sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\ntok";
    open(Number(port)).write(head);
  }
  for (const path of ["healthz", "readyz", "api/status"]) {
    const { status, headers } = await fetch(url + path);
    expect([path, status, headers.has("retry-after")]).toEqual([path, 200, false]);
  }
});

test("half-sent requests that are refused, and so have no place, are bounded as well", () => {
  const server = createServer();
  new Callers(new Server(), server, () => {});
  const ended: number[] = [];
  for (let at = 0; at < MAX_OPEN_REQUESTS + 2; at++) {
    const req = { complete: at === 0, socket: {} };
    const response = Object.assign(new EventEmitter(), { req, destroy: () => ended.push(at) });
    server.emit("request", req, response);
  }
  // The first one is complete: our answer to it is under way.
  expect(ended).toEqual([1, 2]);
});

test("probes are answered while every place is taken, and others are told when to come back", async () => {
  const never = Promise.withResolvers<string>();
  const { url } = await openTestConsole(0, { metrics: () => never.promise });
  const { port } = new URL(url);
  const taken = Array.from({ length: MAX_REQUESTS_OF_PEER }, () => open(Number(port)));
  for (const socket of taken) socket.write("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const ask = async () => {
    const { status, headers } = await fetch(`${url}api/status`);
    return [status, headers.get("retry-after")];
  };
  await expect.poll(ask).toEqual([503, "5"]);
  expect((await fetch(`${url}healthz`)).status).toBe(200);
  expect((await fetch(`${url}readyz`)).headers.has("retry-after")).toBe(false);
  never.resolve("");
  await expect.poll(async () => (await fetch(`${url}api/status`)).status).toBe(200);
});

test("a probe is read at once while other requests wait for their turn, so that a flood of them delays no probe", async () => {
  const read: string[] = [];
  const { port } = await serve((response) => {
    read.push(response.req.url ?? "");
    response.end("x");
  });
  // No turn ends.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const ask = (path: string, rest = "\r\n") => {
    const socket = open(port);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n${rest}`);
    return once(socket.resume(), "end");
  };
  await ask("/first");
  const waiting = [ask("/second"), ask("/healthz-not", "\r\n"), ask("/healthz?", "")];
  for (const path of ["/healthz", "/readyz", "/healthz?a=b"]) await ask(path);
  expect(read).toEqual(["/first", "/healthz", "/readyz", "/healthz?a=b"]);
  vi.useRealTimers();
  expect(waiting).toHaveLength(3);
});

test("I8 bounded: what connections send before their turn stays small over all of them, and the longest wait ends", async () => {
  const limits: CallerLimit[] = [];
  const { port, server } = await serve((response) => void response.end("x"), limits);
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const size = 60_000;
  const sockets = Array.from({ length: (2 * MAX_WAITING_BYTES) / size }, () => open(port));
  for (const socket of sockets) socket.resume().write(`GET / HTTP/1.1\r\nX: ${"x".repeat(size)}`);
  const count = () => new Promise<number>((resolve) => server.getConnections((_, it) => resolve(it)));
  await expect.poll(() => limits.length).toBeGreaterThan(MAX_WAITING_BYTES / size / 2);
  await expect.poll(count).toBeLessThan(sockets.length - MAX_WAITING_BYTES / size / 2);
});

test("connections that send no request end after 10 s, also while they wait for their turn", async () => {
  const { port, server } = await serve((response) => void response.end("x"));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const first = open(port);
  first.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await once(first.resume(), "end");
  const sockets = ["", "GET / HT", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"].map((text) => {
    const socket = open(port);
    socket.write(text);
    return once(socket.resume(), "close");
  });
  const count = () => new Promise((resolve) => server.getConnections((_, found) => resolve(found)));
  await expect.poll(count).toBe(sockets.length);
  vi.advanceTimersByTime(10_000);
  await Promise.all(sockets);
});

test("event streams have places of their own, and a full house says when to come back", async () => {
  const { url } = await openTestConsole(0);
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const ask = () => fetch(`${url}api/events`, { signal: left.signal });
  const answers = await Promise.all(Array.from({ length: MAX_STREAMS_OF_PEER + 1 }, ask));
  const refused = answers.find(({ status }) => status === 503);
  expect(refused?.headers.get("retry-after")).toBe("5");
  expect((await fetch(url)).status).toBe(200);
  // Every program here may send from any of these addresses.
  const asked = request(`${url}api/events`, { localAddress: "127.0.0.9", agent: false }).end();
  onTestFinished(() => void asked.destroy());
  const [{ statusCode }] = await once(asked, "response");
  expect(statusCode).toBe(503);
});

test("a connection is closed with its answer, so that callers who stay pile up none", async () => {
  const { port, http } = await serve((response) => response.end("x"), []);
  http.keepAliveTimeout = 3_600_000;
  const socket = open(port);
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  await once(socket.resume(), "end");
});

test("connections without a request are replaced by newer ones", async () => {
  const limits: CallerLimit[] = [];
  const { port, server } = await serve((response) => void response.end("alive"), limits);
  const sockets = Array.from({ length: MAX_SILENT_CONNECTIONS + 100 }, () => open(port));
  await Promise.all(sockets.map((socket) => once(socket, "connect").catch(() => {})));
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe("alive");
  const count = () => new Promise((resolve) => server.getConnections((_, found) => resolve(found)));
  await expect.poll(count).toBeLessThanOrEqual(MAX_SILENT_CONNECTIONS);
  expect(limits).toContain("silent");
});

test("a long list is made in pieces, and every other caller and the daemon have a turn between two", async () => {
  const entry = { text: "x".repeat(1_000) };
  const [others, list] = [{ page: 1, missing: undefined }, Array.from({ length: 3_000 }, () => entry)];
  const sizes: number[] = [];
  const { port, callers } = await serve(async (response) => {
    const write = response.write.bind(response);
    response.write = (text: string) => sizes.push(text.length) > 0 && write(text);
    await sendList(callers, response, others, "list", list.values());
  });
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  expect(await answer.json()).toEqual({ page: 1, list });
  expect(sizes.length).toBeGreaterThan(20);
  expect(Math.max(...sizes)).toBeLessThan(PIECE_BYTES + 2_000);
  const order: string[] = [];
  const pieces = [1, 2, 3].map((at) => inTurn(SIGNAL, () => order.push(`piece ${at}`)));
  setImmediate(() => order.push("daemon"));
  await Promise.all(pieces);
  expect(order.indexOf("daemon")).toBeLessThan(2);
});

test("after each piece of work for a caller, waiting connections are taken, however long this process waited for a processor", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  let [turns, isOver] = [0, false];
  const count = () => {
    turns++;
    if (!isOver) setImmediate(count);
  };
  count();
  await inTurn(SIGNAL, () => {});
  vi.advanceTimersByTime(1_000);
  const before = turns;
  await inTurn(SIGNAL, () => {});
  isOver = true;
  expect(turns - before).toBeGreaterThanOrEqual(TURNS_PER_PIECE);
  vi.advanceTimersByTime(1_000);
});

test("I8 bounded: a caller that has left waits for no turn", async () => {
  const begun = inTurn(SIGNAL, () => {});
  const left = new AbortController();
  let answered = 0;
  const waiting = Array.from({ length: 1_000 }, () => inTurn(left.signal, () => answered++));
  left.abort();
  await Promise.all(waiting.map((turn) => expect(turn).rejects.toMatchObject({ code: "STOPPED" })));
  expect(answered).toBe(0);
  await begun;
});

test("a wrong Bearer token is refused where reading is open; another scheme and every probe pass", async () => {
  const wrong: string[] = [];
  const access = makeAccess("open", undefined, undefined, (from) => wrong.push(from));
  const { url } = await openTestConsole(1, { access });
  const ask = async (path: string, authorization: string) =>
    (await fetch(url + path, { headers: { authorization } })).status;
  for (const path of ["", "metrics", "api/status"]) {
    expect([path, await ask(path, "Bearer a-wrong-one")]).toEqual([path, 401]);
    expect([path, await ask(path, "bearer")]).toEqual([path, 401]);
    expect([path, await ask(path, "Basic YTpi")]).toEqual([path, 200]);
    expect([path, await ask(path, `bearer ${READER}`)]).toEqual([path, 200]);
  }
  expect(wrong).toEqual(Array(6).fill("127.0.0.1"));
  expect(await ask("healthz", "Bearer a-wrong-one")).toBe(200);
  expect(await ask("readyz", "Bearer a-wrong-one")).not.toBe(401);
});

test("wrong tokens that wait are bounded, and each kind of limit is reported once at first", async () => {
  const guesses = new Guesses({ now: () => 0 }, 60_000);
  for (let at = 0; at < 10; at++) await guesses.attempt("a", () => undefined);
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const waiting = Array.from({ length: MAX_WAITING_REFUSALS }, () => guesses.attempt("a", () => undefined));
  expect(await guesses.attempt("a", () => undefined)).toBe("throttled");
  expect(await guesses.attempt("a", () => "right")).toBe("right");
  expect(waiting).toHaveLength(MAX_WAITING_REFUSALS);
  const events: DaemonEvent[] = [];
  const report = reportLimits((event) => void events.push(event));
  for (let at = 0; at < 1_000; at++) report("wrong-token", "192.0.2.1");
  vi.advanceTimersByTime(60_000);
  const fact = { type: "callers-limited", limit: "wrong-token", from: "192.0.2.1" };
  expect(events).toEqual([
    { ...fact, count: 1 },
    { ...fact, count: 999 },
  ]);
});

test("a request with two host names is refused", async () => {
  const { port } = new URL((await openTestConsole(0)).url);
  for (const path of ["/", "/healthz"]) {
    const socket = open(Number(port));
    socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n`);
    expect([path, await firstLine(socket)]).toEqual([path, "HTTP/1.1 400 Bad Request"]);
  }
});

test("the body of a sign-in is small, and a refusal reaches a client that sends its body first", async () => {
  const { url } = await openTestConsole(0, { access: makeAccess("open") });
  const send = async (path: string, bytes: number) =>
    (await fetch(url + path, { method: "POST", body: `token=${"x".repeat(bytes)}` })).status;
  expect(await send("sign-in", 100)).toBe(401);
  expect(await send("sign-in", MAX_SIGN_IN_BYTES)).toBe(413);
  expect(await send("actions", 400_000)).toBe(401);
});

test.each([
  [{ origin: "https://inlet.example.com", host: "inlet.example.com" }, true],
  [{ "x-forwarded-proto": "https" }, true],
  [{}, false],
])("a session behind TLS has a cookie for TLS only: %o", async (headers, isSecure) => {
  const { url } = await openTestConsole(0, { access: makeAccess("open"), hosts: ["inlet.example.com"] });
  const { port } = new URL(url);
  const body = `token=${READER}`;
  const socket = open(Number(port));
  const all = { host: "localhost", "content-length": body.length, ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`POST /sign-in HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
  const text = String((await once(socket, "data"))[0]);
  expect([/set-cookie: inlet-session/i.test(text), /; Secure\r/.test(text)]).toEqual([true, isSecure]);
});

test("informational answers of a service without end are a bad answer", async () => {
  let aborted: Error | undefined;
  const controller = { abort: (reason: Error) => (aborted = reason) };
  const dispatcher = {
    dispatch(_options: unknown, handler: Parameters<import("undici").Dispatcher["dispatch"]>[1]) {
      handler.onRequestStart?.(controller as never, {});
      for (let at = 0; at <= MAX_INTERIM_ANSWERS; at++)
        handler.onResponseStart?.(controller as never, 103, {}, "Early Hints");
      return true;
    },
  };
  const options = { origin: "http://a", path: "/", method: "GET" as const };
  const answer = receive(dispatcher as never, options, new AbortController().signal, () => {});
  await expect(answer).rejects.toMatchObject({ code: "BAD_ANSWER" });
  expect(aborted).toMatchObject({ code: "BAD_ANSWER" });
});

async function serve(
  handle: (response: ServerResponse) => unknown,
  limits: CallerLimit[] = [],
): Promise<{ port: number; callers: Callers; server: Server; http: HttpServer }> {
  const [server, http] = [new Server(), createServer()];
  const callers = new Callers(server, http, (limit) => limits.push(limit));
  http.on("request", (_request, response) => void handle(response.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    callers.end();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, callers, server, http };
}

function open(port: number): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}

async function firstLine(socket: Socket): Promise<string | undefined> {
  return String((await once(socket, "data"))[0]).split("\r\n")[0];
}
