import { Writable } from "node:stream";
import { beforeEach, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { logEvents } from "../../../src/cli/event-log.ts";
import type { State, TransferRecord } from "../../../src/model/record.ts";
import { createLog } from "../../../src/observe/log.ts";
import { DELIVERED, pollFailed } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

let { emit, lines, facts } = listen();
beforeEach(() => {
  ({ emit, lines, facts } = listen());
});

test("I8 bounded: a transfer that is tried again and again is told once for each reason", () => {
  for (let round = 0; round < 50; round++) {
    emit({ type: "transfer-changed", record: record("t1", "downloading") });
    emit({ type: "transfer-changed", record: record("t1", "waiting"), fault: new Fault("SERVER_FAULT") });
  }
  emit({ type: "transfer-changed", record: record("t1", "waiting"), fault: new Fault("CONNECTION_LOST") });
  emit({ type: "transfer-changed", record: record("t2", "waiting"), fault: new Fault("SERVER_FAULT") });
  expect(lines).toEqual(["waiting t1", "waiting t1", "waiting t2"]);
  emit({ type: "transfer-changed", record: record("t1", "delivered") });
  expect(lines.at(-1)).toBe("delivered t1");
});

test("I8 bounded: one that is stuck is told once, and what waits for a password every time it is refused", () => {
  for (let round = 0; round < 50; round++)
    emit({ type: "transfer-stuck", record: record("t1", "delivering"), fault: new Fault("DISK_REFUSED") });
  emit({ type: "transfer-changed", record: record("t2", "waiting") });
  emit({ type: "transfer-changed", record: record("t2", "waiting") });
  expect(lines).toEqual(["stuck, and retried t1", "waiting t2", "waiting t2"]);
});

test("I8 bounded: transfers that others finish, of which nobody hears here, are not remembered for ever", () => {
  const wait = (id: string) =>
    emit({ type: "transfer-changed", record: record(id, "waiting"), fault: new Fault("SERVER_FAULT") });
  wait("first");
  for (let at = 0; at < 10_000; at++) wait(`t${at}`);
  lines.length = 0;
  wait("t9999");
  expect(lines).toEqual([]);
  wait("first");
  expect(lines).toEqual(["waiting first"]);
});

test("I8 bounded: entries that cannot be used are one line, with their number and two reasons", () => {
  emit({
    type: "entries-rejected",
    mailbox: "m",
    entries: 5_000,
    reasons: [new Fault("BAD_ANSWER", { detail: "a" }), new Fault("RECORD_UNREADABLE")],
  });
  expect(lines).toHaveLength(1);
  expect(facts.at(-1)).toMatchObject({
    mailbox: "m",
    entries: 5_000,
    fault: { code: "BAD_ANSWER" },
    otherReason: expect.stringContaining("damaged"),
  });
});

test("I6 no contagion: a full disk is told once for all transfers and mailboxes", () => {
  const fault = new Fault("DISK_FULL");
  emit({ type: "disk-failed", fault });
  for (const id of ["t1", "t2", "t3"])
    emit({ type: "transfer-changed", record: record(id, "waiting"), fault });
  emit(pollFailed({ mailbox: "m", fault, isFirst: true, waitMs: 0 }));
  emit({ type: "poll-recovered", mailbox: "m", failedForMs: 1000, fault });
  emit({ type: "disk-recovered", pausedForMs: 1000 });
  expect(lines).toEqual(["a disk cannot be used: work that needs it pauses", "the disk can be used again"]);
});

test("I8 bounded: a receiver that fails for many is told once until it accepts again, what was given up each time", () => {
  const fault = new Fault("WEBHOOK_FAILED");
  const fails = (trackingId: string, willRetry: boolean) =>
    emit({
      type: "handoff-failed",
      delivered: { ...DELIVERED, trackingId },
      step: "webhook",
      ...{ fault, attempts: 1, willRetry },
    });
  for (let round = 0; round < 50; round++) for (const id of ["t1", "t2"]) fails(id, true);
  fails("t2", false);
  emit({ type: "handoff-succeeded", delivered: DELIVERED, step: "webhook" });
  fails("t3", true);
  expect(lines).toEqual([
    "the hand-off failed, and is retried t1",
    "the hand-off failed, and was given up: inlet retry tries it again t2",
    "handed over t1",
    "the hand-off failed, and is retried t3",
  ]);
});

test("refused recipients of mails are logged once, as sent to the others, and not as retried", () => {
  const facts = { kind: "mail", channel: "mail to a", notices: 1 } as const;
  const fault = new Fault("MAIL_RECIPIENTS_REFUSED");
  for (const isFirst of [true, false, false])
    emit({ type: "notify-failed", ...facts, fault, isFirst, waitMs: undefined });
  emit({ type: "notify-succeeded", ...facts, failing: 0 });
  expect(lines).toEqual([
    "the mail server refused some recipients of a notification: the others have it",
    "notified",
  ]);
});

/** Every line of level info and above: its message, and its transfer. */
function listen() {
  const lines: string[] = [];
  const facts: unknown[] = [];
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const { msg, trackingId = "", ...rest } = JSON.parse(chunk.toString());
      facts.push(rest);
      lines.push(`${msg} ${trackingId}`.trim());
      done();
    },
  });
  return { emit: logEvents(createLog(output, "info")), lines, facts };
}

function record(trackingId: string, state: State): TransferRecord {
  return makeRecord({ trackingId, state });
}
