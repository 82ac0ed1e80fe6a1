/** What the status shows. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { makeTimetable } from "../../../src/base/timetable.ts";
import { readinessOf } from "../../../src/console/server.ts";
import type { Rest } from "../../../src/model/job.ts";
import { serviceIdOf } from "../../../src/model/mailbox.ts";
import type { Promised } from "../../../src/model/promise.ts";
import type { State, TransferRecord } from "../../../src/model/record.ts";
import { Board } from "../../../src/observe/board.ts";
import { FACTS, shownMailbox } from "../../support/board.ts";
import { DELIVERED, pollFailed, pollSucceeded } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

const START_MS = Date.UTC(2026, 2, 1, 8);
const HOUR_MS = 3_600_000;

const ONE = shownMailbox("m");

let { board, pass } = openBoard();
beforeEach(() => {
  ({ board, pass } = openBoard());
});

test("the board lists transfers as downloading, queued, or in need of attention", () => {
  discover({ trackingId: "later" });
  change({ trackingId: "now", state: "downloading" });
  change({ trackingId: "closed", state: "waiting", reason: "password" });
  change({ trackingId: "wrong", state: "quarantined" });
  discover({ trackingId: "urgent", expires: new Date(START_MS + HOUR_MS).toISOString() });
  const { counts } = board.read();
  expect(idsOf()).toEqual([["urgent", "closed", "wrong"], ["now"], ["later"]]);
  expect(counts).toEqual({ discovered: 2, downloading: 1, waiting: 1, quarantined: 1 });
});

test("the board names the cause of a transfer that needs a person also while it is tried again, until it has progressed", () => {
  const why = { reason: "retry", message: "A secret cannot be read." };
  change({ state: "waiting", needsPerson: true, ...why });
  const record = makeRecord({ state: "downloading" });
  board.listener({ type: "transfer-changed", record });
  expect(board.read().attention).toMatchObject([{ state: "downloading", ...why }]);
  board.listener({ type: "transfer-progressed", record, doneBytes: 1, totalBytes: 2, receivedBytes: 1 });
  expect(board.read().attention).toEqual([]);
  expect(board.read().downloading).toMatchObject([{ reason: undefined, message: undefined }]);
});

test("the board shows refused recipients of mails until a mail is accepted for all, and no other channel fails", () => {
  const facts = { kind: "mail", channel: "mail to a", notices: 1 } as const;
  const fault = new Fault("MAIL_RECIPIENTS_REFUSED");
  const codes = () => board.read().troubles.map(({ what, code }) => `${what} ${code}`);
  board.listener({ type: "notify-failed", ...facts, fault, isFirst: true, waitMs: undefined });
  expect(codes()).toEqual(["notify MAIL_RECIPIENTS_REFUSED"]);
  board.listener({ type: "notify-succeeded", ...facts, failing: 1 });
  expect(codes()).toEqual(["notify MAIL_RECIPIENTS_REFUSED"]);
  board.listener({ type: "notify-succeeded", ...facts, failing: 0 });
  expect(codes()).toEqual([]);
});

test("the board shows the progress, the rate and the remaining time of a download", () => {
  const record = makeRecord({ state: "downloading" });
  board.listener({ type: "transfer-changed", record });
  for (let second = 0; second <= 4; second++) {
    const bytes = { doneBytes: second * 100, totalBytes: 1_000, receivedBytes: 100 };
    board.listener({ type: "transfer-progressed", record, ...bytes });
    pass(1_000);
  }
  const progress = { doneBytes: 400, totalBytes: 1_000, bytesPerSecond: 80, secondsLeft: 8 };
  expect(board.read().downloading[0]?.progress).toEqual(progress);
});

test("the board shows transfers of other processes from the disk, without counting them as its own, and gone ones for a day", () => {
  change({ trackingId: "ours", state: "downloading" });
  change({ trackingId: "gone", state: "gone", at: { gone: new Date(START_MS).toISOString() } });
  discover({ trackingId: "finished elsewhere" });
  const theirs = [makeRecord({ trackingId: "theirs", state: "downloading" })];
  board.learn(theirs);
  expect(idsOf()).toEqual([["gone"], ["ours"], ["theirs"]]);
  pass(25 * HOUR_MS);
  board.learn(theirs);
  expect(idsOf()).toEqual([[], ["ours"], ["theirs"]]);
});

test("I7 nothing silent: a download that is left to another process is shown as the disk says, also after its end", () => {
  change({ state: "downloading" });
  const ended = makeRecord({ state: "quarantined" });
  board.learn([ended]);
  expect(idsOf()).toEqual([[], ["t1"], []]);
  board.listener({ type: "transfer-left", record: makeRecord({ state: "downloading" }) });
  expect(idsOf()).toEqual([[], [], ["t1"]]);
  board.learn([ended]);
  expect(idsOf()).toEqual([["t1"], [], []]);
});

test("I8 bounded: the board counts more transfers than it shows, and many waits for passwords do not hide other kinds", () => {
  const soon = new Date(START_MS + HOUR_MS).toISOString();
  for (let at = 0; at < 6_000; at++) {
    const waits = { state: "waiting", reason: "password", expires: soon } as const;
    change({ trackingId: `closed${at}`, ...waits });
    discover({ trackingId: `new${at}` });
  }
  change({ trackingId: "wrong", state: "quarantined" });
  const at = { gone: new Date(START_MS).toISOString() };
  change({ trackingId: "gone", state: "gone", at });
  const failed = [{ step: "command", message: "It failed", willRetry: true }] as const;
  const trouble = { ...DELIVERED, failed, isOverdue: false };
  const one = { waiting: 0, oldestMs: undefined, troubled: 1, troubles: [trouble] };
  board.listener({ type: "outbox-scanned", summary: one });
  const { attention, causes, totals, counts, queued } = board.read();
  expect(causes).toMatchObject([
    { state: "waiting", reason: "password", count: 6_000, firstExpires: soon },
    { state: "gone", count: 1 },
    { state: "delivered", reason: "handoff", count: 1 },
    { state: "quarantined", count: 1 },
  ]);
  expect([attention.length, queued.length]).toEqual([100, 100]);
  expect(totals).toEqual({ attention: 6_003, downloading: 0, queued: 6_000 });
  expect(counts).toEqual({ discovered: 6_000, waiting: 6_000, quarantined: 1, gone: 1 });
  const summary = { waiting: 0, oldestMs: undefined, troubled: 7_000, troubles: [] };
  board.listener({ type: "outbox-scanned", summary });
  expect(board.read().totals.attention).toBe(13_002);
});

test("the board shows failed hand-offs and folders that are not picked up, with advice", () => {
  const failed = [
    { step: "command", message: "It failed", willRetry: true },
    { step: "webhook", message: "It was refused", willRetry: false },
  ] as const;
  const troubles = [
    { ...DELIVERED, failed, isOverdue: false },
    { ...DELIVERED, round: 2, failed: [], isOverdue: true },
    { ...DELIVERED, trackingId: "t2; rm -r /", failed: failed.slice(1), isOverdue: true },
  ];
  board.listener({
    type: "outbox-scanned",
    summary: { waiting: 2, oldestMs: 0, troubled: 3, troubles },
  });
  expect(board.transfers().map(({ reason, message }) => `${reason}: ${message}`)).toEqual([
    "handoff: It failed. Inlet will try it again; inlet retry t1 tries it at once. It was refused. It was given up; inlet retry t1 tries it again.",
    "not-picked-up: m/t was not picked up yet.",
    "handoff: It was refused. It was given up; inlet retry -- 't2; rm -r /' tries it again. m/t was not picked up yet.",
  ]);
});

test("the board shows transfers that were gone before a restart, except discarded and acknowledged ones", () => {
  const at = { gone: new Date(START_MS - HOUR_MS).toISOString() };
  const gone = (trackingId: string, facts: object) =>
    makeRecord({ trackingId, state: "gone", reason: "deleted_by_revocation", at, ...facts });
  board.recall([], [gone("news", {}), gone("unwanted", { reason: "discarded" })]);
  board.listener({ type: "transfer-changed", record: gone("also unwanted", { reason: "discarded" }) });
  board.learn([]);
  expect([idsOf(), board.read().counts]).toEqual([[["news"], [], []], { gone: 1 }]);
  board.listener({ type: "transfer-acknowledged", record: gone("news", { acknowledged: true }) });
  expect(board.read().totals.attention).toBe(0);
});

test("the board names the exact commands for a transfer of this daemon, and the folder of its content", () => {
  const mailboxes = ["m", "n"].map((name) => shownMailbox(name));
  const facts = { ...FACTS, config: "/etc/my inlet.yaml" };
  const clock = { now: () => START_MS };
  board = new Board(facts, mailboxes, clock, ({ trackingId }) => `/kept/${trackingId}`);
  change({ trackingId: "wrong", state: "quarantined" });
  const message = "Supply it with inlet password closed, or add a rule.";
  change({ trackingId: "closed", state: "waiting", reason: "password", message });
  const way = "--config '/etc/my inlet.yaml' --mailbox m";
  expect(board.read().attention).toMatchObject([
    {
      keptIn: "/kept/wrong",
      commands: ["retry", "release", "discard"].map((action) => `inlet ${action} ${way} wrong`),
    },
    {
      commands: [`inlet password ${way} closed`, `inlet discard ${way} closed`],
      message: `Supply it with inlet password ${way} closed, or add a rule.`,
    },
  ]);
});

test("the board shows why a transfer waits: the last failure, and the end of quiet hours", () => {
  const quiet = makeTimetable("UTC", [{ fromMs: 0, untilMs: 6.5 * 24 * HOUR_MS }]);
  board = new Board(FACTS, [shownMailbox("m", { quiet })], { now: () => START_MS });
  const quietUntil = "2026-03-01T12:00:00.000Z";
  const postponed = { state: "waiting", reason: "quiet", until: quietUntil } as const;
  change({ trackingId: "new", ...postponed });
  const failed = { state: "waiting", reason: "retry", message: "The service does not answer." } as const;
  change({ trackingId: "failed", ...failed });
  const status = board.read();
  expect(status.queued).toMatchObject([postponed, failed]);
  expect(status.mailboxes).toMatchObject([{ quietUntil }]);
});

test("I7 nothing silent: a mailbox that cannot be polled shows since when and why", () => {
  fail();
  pass(60_000);
  board.listener(pollFailed({ mailbox: "m", fault: new Fault("SERVICE_TIMEOUT"), waitMs: 240_000 }));
  const { troubles, mailboxes } = board.read();
  const since = new Date(START_MS).toISOString();
  expect(troubles).toMatchObject([{ what: "mailbox m", since, code: "SERVICE_TIMEOUT" }]);
  expect(mailboxes[0]?.nextPoll).toBe(new Date(START_MS + 300_000).toISOString());
  board.listener(pollSucceeded({ mailbox: "m", listed: 3 }));
  expect(board.read().mailboxes[0]?.nextPoll).toBe(new Date(START_MS + 120_000).toISOString());
  expect(board.read().troubles).toEqual([]);
  expect(board.read().mailboxes[0]).toMatchObject({ listed: 3, lastSuccess: expect.any(String) });
});

test("I7 nothing silent: a mailbox that is no longer polled does not look fine", () => {
  poll();
  pass(60_000);
  const [promised] = [...board.promisedPolls(() => undefined)];
  // Three intervals after the last success.
  expect(promised?.dueMs).toBe(START_MS + 180_000);
  breakPromise(promised);
  const since = new Date(START_MS + 180_000).toISOString();
  const troubles = [{ what: "mailbox m", since, code: "POLL_OVERDUE" }];
  expect(board.read()).toMatchObject({ troubles, overdue: [{ kind: "poll" }] });
  breakPromise();
  expect(board.read().troubles).toEqual([]);
  // Another process has polled it since.
  const [again] = [...board.promisedPolls(() => START_MS + 60_000)];
  expect(again?.dueMs).toBe(START_MS + 240_000);
});

test("I7 nothing silent: a service that rests is shown with its reason and end, until it is over", () => {
  const service = serviceIdOf(ONE.service.baseUrl);
  const rests = (rest: Rest | undefined) => board.listener({ type: "service-rests", service, rest });
  const shown = () => board.read().troubles.map(({ code, message }) => `${code} ${message}`);
  poll();
  rests({ isAsked: true, isProbed: false, forMs: HOUR_MS });
  const again = new Date(START_MS + HOUR_MS).toISOString();
  expect(shown()).toEqual([`SERVICE_RESTS The service asked for a rest. Inlet asks again at ${again}.`]);
  // One trouble for one cause.
  board.listener(pollFailed({ mailbox: "m", fault: new Fault("RATE_LIMITED") }));
  expect(shown()).toHaveLength(1);
  board.listener(pollFailed({ mailbox: "m", fault: new Fault("TOKEN_REFUSED") }));
  expect(board.read().troubles).toMatchObject([{ code: "TOKEN_REFUSED" }]);
  poll();
  pass(HOUR_MS + 1);
  expect(shown()).toEqual([]);
  rests({ isAsked: false, isProbed: true, forMs: 60_000 });
  pass(HOUR_MS);
  expect(shown()).toEqual([
    "SERVICE_RESTS The service gives no answer. One mailbox asks for all once a minute.",
  ]);
  expect([...board.promisedPolls(() => undefined)]).toMatchObject([{ isExplained: true }]);
  rests(undefined);
  expect(shown()).toEqual([]);
  rests({ isAsked: false, isProbed: true, forMs: 60_000 });
  board.reopen();
  expect(shown()).toEqual([]);
});

test("after the loss of a disk, the polls say anew what fails: another process may have polled meanwhile", () => {
  fail();
  expect(board.read().troubles).toHaveLength(1);
  board.reopen();
  expect(board.read().troubles).toEqual([]);
  fail();
  expect(board.read().troubles).toHaveLength(1);
});

test("a paused mailbox is no problem any more, and does not count as overdue", () => {
  fail();
  expect(board.read().troubles).toHaveLength(1);
  reload({ ...ONE, paused: true });
  expect(board.read().troubles).toEqual([]);
  pass(24 * HOUR_MS);
  expect([...board.promisedPolls(() => undefined)]).toEqual([]);
  // Its first poll is due now.
  reload(ONE);
  const dueMs = START_MS + 24 * HOUR_MS + 180_000;
  expect([...board.promisedPolls(() => undefined)]).toMatchObject([{ dueMs }]);
});

describe("being ready", () => {
  const reasonsOf = () => {
    const { ready, reasons } = readinessOf(board.read());
    expect(ready).toBe(reasons.length === 0);
    return reasons;
  };

  test("needs a first poll, and a mailbox that can be polled", () => {
    expect(reasonsOf()).toHaveLength(1);
    poll();
    expect(reasonsOf()).toEqual([]);
    fail();
    expect(reasonsOf()).toEqual(["No mailbox can be polled."]);
    const [promised] = [...board.promisedPolls(() => undefined)];
    expect(promised?.isExplained).toBe(true);
    breakPromise(promised);
    // One problem, with its cause.
    expect(reasonsOf()).toEqual(["No mailbox can be polled."]);
    expect(board.read().troubles).toMatchObject([{ code: "SERVICE_UNREACHABLE" }]);
  });

  test("needs no poll of its own on Redis, where other processes may do all polls", () => {
    ({ board } = openBoard({ queue: "redis" }));
    expect(reasonsOf()).toEqual([]);
    fail();
    expect(reasonsOf()).toEqual(["No mailbox can be polled."]);
  });

  test("is lost while a mailbox is not polled in time, though its last poll was good", () => {
    poll();
    reload(ONE, { ...ONE, name: "n" });
    breakPromise([...board.promisedPolls(() => undefined)][1]);
    expect(reasonsOf()).toEqual(["Not polled in time: n."]);
  });

  test("is lost with a full disk or a lost queue, and comes back afterwards", () => {
    poll();
    board.listener({ type: "queue-lost", fault: new Fault("QUEUE_UNREACHABLE") });
    board.listener({ type: "disk-failed", fault: new Fault("DISK_FULL") });
    board.listener({ type: "settings-refused", fault: new Fault("CONFIG_INVALID") });
    expect(reasonsOf()).toHaveLength(2);
    board.listener({ type: "queue-back", lostForMs: 1 });
    board.listener({ type: "disk-recovered", pausedForMs: 1 });
    expect(reasonsOf()).toEqual([]);
  });
});

test("an outbox that cannot be read is a problem until it can be read again", () => {
  board.listener({ type: "handoffs-stuck", fault: new Fault("DISK_UNREADABLE") });
  expect(board.read().troubles).toMatchObject([{ what: "handoffs", code: "DISK_UNREADABLE" }]);
  board.listener({ type: "handoffs-resumed", stuckForMs: 1 });
  expect(board.read().troubles).toEqual([]);
});

test("every state of a record is shown, or is a good end", () => {
  const states: State[] = ["discovered", "downloading", "waiting", "delivering", "quarantined", "gone"];
  for (const state of states) change({ trackingId: state, state });
  expect(idsOf().flat().toSorted()).toEqual(states.toSorted());
});

function change(facts: Partial<TransferRecord>): void {
  board.listener({ type: "transfer-changed", record: makeRecord(facts) });
}

function discover(facts: Partial<TransferRecord>): void {
  board.listener({ type: "transfer-discovered", record: makeRecord(facts) });
}

function poll(): void {
  board.listener(pollSucceeded({ mailbox: "m", listed: 0 }));
}

function fail(): void {
  board.listener(pollFailed({ mailbox: "m", fault: new Fault("SERVICE_UNREACHABLE") }));
}

function reload(...mailboxes: (typeof ONE)[]): void {
  board.listener({ type: "settings-reloaded", mailboxes, needsRestart: [] });
}

/** The transfers that need attention, are downloaded and are queued. */
function idsOf(): string[][] {
  const { attention, downloading, queued } = board.read();
  return [attention, downloading, queued].map((all) => all.map(({ trackingId }) => trackingId));
}

/** These promises are broken now, and no others. */
function breakPromise(...promised: (Promised | undefined)[]): void {
  const broken = promised.flatMap((each) =>
    each ? [{ isExplained: false, ...each, sinceMs: each.dueMs }] : [],
  );
  board.listener({ type: "promises-changed", broken, began: [], kept: [] });
}

function openBoard(facts: { readonly queue?: "redis" } = {}) {
  let nowMs = START_MS;
  vi.spyOn(performance, "now").mockImplementation(() => nowMs);
  const board = new Board({ ...FACTS, ...facts }, [ONE], { now: () => nowMs });
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { board, pass };
}
