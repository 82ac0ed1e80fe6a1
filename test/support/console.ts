/** A console without a daemon, with as many transfers as wanted. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/base/clock.ts";
import { Fault } from "../../src/base/faults.ts";
import { Secret } from "../../src/base/secret.ts";
import type { ConsolePort } from "../../src/console/port.ts";
import { createConsole } from "../../src/console/server.ts";
import { Sessions, type Tokens } from "../../src/console/sessions.ts";
import type { ReadAccess } from "../../src/model/order.ts";
import type { TransferRecord } from "../../src/model/record.ts";
import { Board } from "../../src/observe/board.ts";
import { FACTS, shownMailbox } from "./board.ts";
import { pollFailed, pollSucceeded } from "./events.ts";
import { makeRecord } from "./record.ts";

const HOUR_MS = 3_600_000;

const KINDS: readonly Partial<TransferRecord>[] = [
  { state: "waiting", reason: "password", message: "No password opens it." },
  { state: "quarantined", reason: "CHECKSUM_MISMATCH", message: "A file does not match its checksum." },
  { state: "waiting", reason: "retry", message: "The service does not answer." },
  { state: "discovered" },
];

/** The disk of a daemon without any transfer. */
export const NOTHING_KNOWN = {
  operate: {
    history: async () => ({ entries: [], damaged: [] }),
    list: async () => ({ total: 0, page: 1, pages: 1, size: 1, transfers: [], damaged: [] }),
    story: async () => undefined,
    objectionTo: async () => undefined,
    start: () => Promise.reject(new Error("nothing can be done")),
    actOnMailboxes: async () => [],
  },
  tally: async () => [],
  onLimited: () => {},
} satisfies Partial<ConsolePort>;

/** Transfers `T-0`, `T-1` …, which expire in this order. From ten on there are 50 mailboxes, and one outage of 20. */
export async function openTestConsole(
  count: number,
  more: Partial<ConsolePort> = {},
  clock = systemClock,
): Promise<{ url: string; board: Board }> {
  const names = Array.from({ length: count > 10 ? 50 : 1 }, (_, at) => `m${at}@example.com`);
  const mailboxes = names.map((name) => shownMailbox(name, { email: name }));
  const board = new Board(FACTS, mailboxes, systemClock);
  for (const [at, mailbox] of names.entries()) {
    const isDown = count > 10 && at < 20;
    const fault = new Fault("SERVICE_UNREACHABLE");
    board.listener(isDown ? pollFailed({ mailbox, fault }) : pollSucceeded({ mailbox, listed: 0 }));
  }
  for (let at = 0; at < count; at++) {
    const expires = new Date(Date.now() + (at + 1) * HOUR_MS).toISOString();
    const mailbox = names[at % names.length] ?? "";
    const kind = KINDS[at % KINDS.length];
    const record = makeRecord({ mailbox, trackingId: `T-${at}`, expires, ...kind });
    board.listener({ type: "transfer-changed", record, fault: undefined });
  }
  const port: ConsolePort = {
    board,
    metrics: async () => "",
    ...NOTHING_KNOWN,
    access: undefined,
    hosts: [],
    stuck: () => undefined,
    ...more,
  };
  const server = createConsole(port, clock);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, board };
}

/** Tokens of the two roles. */
export const [READER, OPERATOR] = ["the-token-of-the-reader", "the-token-of-the-operator"] as const;

const TOKENS: Tokens = new Map([
  ["reader", { token: new Secret(READER), role: "read" }],
  ["operator", { token: new Secret(OPERATOR), role: "operate" }],
]);

/** Guesses of tokens are not slowed down: each comes a minute after the other. */
export function makeAccess(
  read: ReadAccess,
  readTokens = async () => TOKENS,
  clock = minutesApart(),
  onWrong = (_from: string) => {},
): Sessions {
  return new Sessions({ read, readTokens, cookie: "test", clock, onWrong });
}

function minutesApart(): Clock {
  let nowMs = 0;
  const now = () => {
    nowMs += 61_000;
    return nowMs;
  };
  return { now };
}
