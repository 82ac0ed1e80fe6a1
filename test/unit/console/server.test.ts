/** The console over HTTP limits the requests of hostile visitors. */

import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import type { ConsolePort } from "../../../src/console/port.ts";
import type { JournalQuery } from "../../../src/model/views.ts";
import { makeAccess, NOTHING_KNOWN, OPERATOR, openTestConsole } from "../../support/console.ts";

test("the journal is searched by one request at a time, and only while its client waits", async () => {
  const searches = makeSearches();
  const url = await serve(searches.read);
  const visitors = Array.from({ length: 20 }, () => new AbortController());
  const answers = visitors.map(({ signal }, at) =>
    fetch(`${url}${at % 2 === 0 ? "history?" : "api/history?"}text=x`, { signal }).then(
      ({ status }) => status,
      () => "left",
    ),
  );
  // Most are refused at once, the others after a short wait, while the first one runs.
  await expect.poll(() => settledOf(answers)).toEqual(Array(19).fill(503));
  expect(searches.counts.begun).toBe(1);
  for (const visitor of visitors) visitor.abort();
  await expect.poll(() => searches.counts.running).toBe(0);
});

test("searches that arrive during another one run one after the other", async () => {
  const searches = makeSearches();
  const url = await serve(searches.read);
  const answers = Array.from({ length: 5 }, () => fetch(`${url}api/history?text=x`));
  await expect.poll(() => searches.counts.running).toBe(1);
  searches.finish();
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array(5).fill(200));
  expect(searches.counts).toMatchObject({ begun: 5, most: 1 });
});

test("an action from another site is refused, and not carried out", async () => {
  let acts = 0;
  const actOnMailboxes = async () => {
    acts++;
    return [];
  };
  const port = { operate: { ...NOTHING_KNOWN.operate, actOnMailboxes }, access: makeAccess("open") };
  const { url } = await openTestConsole(0, port);
  const act = async (more: Readonly<Record<string, string>>) => {
    const headers = { authorization: `Bearer ${OPERATOR}`, "content-type": "application/json", ...more };
    const body = JSON.stringify({ action: "poll" });
    return (await fetch(`${url}api/mailboxes/actions`, { method: "POST", body, headers })).status;
  };
  expect([await act({ "sec-fetch-site": "cross-site" }), await act({}), acts]).toEqual([403, 200, 1]);
});

test("a search ends with its connection", async () => {
  const searches = makeSearches();
  const { port, hostname } = new URL(await serve(searches.read));
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  socket.write("GET /api/history HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await expect.poll(() => searches.counts.running).toBe(1);
  socket.destroy();
  await expect.poll(() => searches.counts.running).toBe(0);
});

test("I8 bounded: requests that a client sends without waiting for the answers are not answered, and close the connection", async () => {
  let answered = 0;
  const { url } = await openTestConsole(0, { stuck: () => `work ${++answered}` });
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  // The server closes it.
  socket.on("error", () => {});
  onTestFinished(() => void socket.destroy());
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.resume();
  socket.write("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(20_000));
  await closed;
  expect(answered).toBe(1);
});

test("neither one connection nor one address can take all listener slots", async () => {
  const url = await serve(async () => []);
  const { port, hostname } = new URL(url);
  const socket = connect(Number(port), hostname);
  onTestFinished(() => void socket.destroy());
  socket.write("GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(5));
  await once(socket, "data");
  const left = new AbortController();
  onTestFinished(() => left.abort());
  const { signal } = left;
  const others = Array.from({ length: 30 }, () => fetch(`${url}api/events`, { signal }));
  const answers = (await Promise.all(others)).map(({ status }) => status);
  expect(answers.toSorted()).toEqual([...Array(19).fill(200), ...Array(11).fill(503)]);
  // Clients that leave make room for others.
  left.abort();
  const late = new AbortController();
  onTestFinished(() => late.abort());
  const statusOf = async () => (await fetch(`${url}api/events`, { signal: late.signal })).status;
  await expect.poll(statusOf).toBe(200);
});

/** Searches that run until they are finished or their client has left. */
function makeSearches() {
  const counts = { begun: 0, running: 0, most: 0 };
  const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
  const read: Search = async (_query, signal) => {
    counts.begun++;
    counts.running++;
    counts.most = Math.max(counts.most, counts.running);
    const left = new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal)));
    await Promise.race([finished, left])
      .then(() => setImmediate())
      .finally(() => counts.running--);
    return [];
  };
  return { read, counts, finish };
}

test("a failure is answered with its code for programs and with a page for people, and reveals no internals", async () => {
  const failing = (error: Error) => {
    const operate = { ...NOTHING_KNOWN.operate, story: () => Promise.reject(error) };
    return openTestConsole(0, { operate });
  };
  const key = "mailbox=m&trackingId=t";
  const known = await failing(new Fault("RECORD_UNREADABLE", { detail: "/work/x.json" }));
  const answer = await fetch(`${known.url}api/transfers/story?${key}`);
  expect([answer.status, await answer.json()]).toMatchObject([
    503,
    { type: "docs/faults.md#RECORD_UNREADABLE", code: "RECORD_UNREADABLE", detail: "/work/x.json" },
  ]);
  const page = await fetch(`${known.url}transfer?${key}`);
  expect([page.status, page.headers.get("content-type")]).toEqual([503, "text/html; charset=utf-8"]);
  expect(await page.text()).toContain(">/work/x.json</p>");
  const unknown = await failing(new TypeError("internal"));
  const other = await fetch(`${unknown.url}api/transfers/story?${key}`);
  expect([other.status, await other.text()]).toEqual([500, expect.not.stringContaining("internal")]);
});

test("the moments of a search count from the daemon's clock", async () => {
  const queries: unknown[] = [];
  const nowMs = Date.parse("2026-03-02T08:00:00Z");
  const search: Search = async (query) => {
    queries.push(query.sinceMs);
    return [];
  };
  const url = await serve(search, { now: () => nowMs });
  await fetch(`${url}api/history?since=2h`);
  expect(queries).toEqual([nowMs - 2 * 3_600_000]);
});

async function settledOf(answers: readonly Promise<number | string>[]): Promise<unknown[]> {
  const open = Symbol("open");
  const states = await Promise.all(answers.map((it) => Promise.race([it, Promise.resolve(open)])));
  return states.filter((it) => it !== open);
}

type Search = (query: JournalQuery, signal: AbortSignal) => Promise<never[]>;

async function serve(search: Search, clock?: Clock): Promise<string> {
  const history: ConsolePort["operate"]["history"] = async (_kind, query, signal) => {
    return { entries: await search(query, signal ?? new AbortController().signal), damaged: [] };
  };
  const operate = { ...NOTHING_KNOWN.operate, history };
  return (await openTestConsole(0, { operate }, clock)).url;
}
