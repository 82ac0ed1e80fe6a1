/** Commands ask a running daemon on its socket: for more than one answer can hold, and without a token. */

import { once } from "node:events";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import type { ConsolePort } from "../../../src/console/port.ts";
import { createConsole } from "../../../src/console/server.ts";
import { ledgerPaths } from "../../../src/ledger/paths.ts";
import { Board } from "../../../src/observe/board.ts";
import { DaemonClient } from "../../../src/operate/client.ts";
import { readJournal } from "../../../src/operate/history.ts";
import { Local } from "../../../src/operate/local.ts";
import { Remote } from "../../../src/operate/remote.ts";
import { FACTS } from "../../support/board.ts";
import { makeAccess, NOTHING_KNOWN } from "../../support/console.ts";
import { makeFolder } from "../../support/program.ts";

test("no request carries a token, so where the operators' socket needs one for reading, commands are refused", async () => {
  const { client } = await openSocket({ access: makeAccess("token") });
  const refused = { code: "UNAUTHORIZED" };
  await expect(client.get("/api/status", {})).rejects.toMatchObject(refused);
  await expect(client.post("/api/actions", {}, 0)).rejects.toMatchObject(refused);
});

test("a problem becomes the fault that it names, with its detail", async () => {
  const { client } = await openSocket({});
  await expect(client.get("/api/history", { limit: 0 })).rejects.toMatchObject({
    code: "REQUEST_INVALID",
    message: expect.stringContaining("refuses: limit must be a number from 1 to 5000."),
  });
  await expect(client.post("/api/actions", {}, 0)).rejects.toMatchObject({
    code: "NOT_ALLOWED",
    // The advice follows once.
    message: expect.stringMatching(/refuses$/),
  });
  const key = { mailbox: "m", trackingId: "t" };
  expect(await new Remote(client, { mailboxes: [] }).story(key)).toBeUndefined();
});

const STOP = new AbortController().signal;
const START_MS = Date.parse("2026-03-01T00:00:00Z");
const LINES = 12_000;

test("a history longer than an answer is the same through the socket, also where many entries have one time", async () => {
  const work = await makeFolder();
  await writeJournal(work);
  const journal = await serve(work);
  for (const [kind, query] of [
    ["changes", { limit: 20_000 }],
    ["transfers", { limit: 20_000 }],
    ["changes", { limit: 5_500, state: "delivered" }],
    ["transfers", { limit: 100, untilMs: START_MS + 100_000 }],
    ["acts", { limit: 20_000 }],
  ] as const) {
    const local = await readJournal(work, kind, query);
    expect(await journal.history(kind, query)).toEqual(local);
    expect(local.damaged).toEqual([{ path: expect.stringContaining("2026-03.jsonl"), lines: 1 }]);
  }
});

/** Two lines for each of many transfers, ten in each millisecond, and as many acts. */
async function writeJournal(work: string): Promise<void> {
  const lines = Array.from({ length: LINES }, (_, number) => {
    const at = new Date(START_MS + Math.floor(number / 10)).toISOString();
    const facts = { mailbox: "m", trackingId: `t${number % (LINES / 2)}`, sender: "a@example.org" };
    const act = { at, act: "retry", id: `id${number}`, who: "anna", from: "h", ...facts };
    const state = number < LINES / 2 ? "discovered" : "delivered";
    return `${JSON.stringify({ at, ...facts, state, round: 1 })}\n${JSON.stringify(act)}\n`;
  });
  const path = join(ledgerPaths(work).journal, "2026-03.jsonl");
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${lines.join("")}{"at":"2026-03-02T00:00:00.000Z","act":\n`);
}

async function serve(work: string): Promise<Remote> {
  const settings = { work, inbox: work, state: work, isStateNamed: true, mailboxes: [] };
  const operate = new Local({
    settings: () => settings,
    stop: STOP,
    asOwner: (_folder, write) => write(),
    isRunning: async () => true,
  });
  return new Remote((await openSocket({ operate })).client, settings);
}

async function openSocket(more: Partial<ConsolePort>): Promise<{ client: DaemonClient }> {
  const path = join(await makeFolder(), "s");
  const board = new Board(FACTS, [], systemClock);
  const rest = { metrics: async () => "", access: undefined, hosts: [], stuck: () => undefined };
  const server = createConsole({ ...NOTHING_KNOWN, board, ...rest, ...more }, systemClock);
  server.listen(path);
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { client: new DaemonClient(path, "anna", STOP) };
}
