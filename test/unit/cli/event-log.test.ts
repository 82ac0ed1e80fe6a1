import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { logEvents } from "../../../src/cli/event-log.ts";
import type { State, TransferRecord } from "../../../src/model/record.ts";
import { createLog } from "../../../src/observe/log.ts";
import { makeRecord } from "../../support/record.ts";

test("I8 bounded: a transfer that is tried again and again is told once for each reason", () => {
  const { watch, lines } = listen();
  for (let round = 0; round < 50; round++) {
    watch.stateChanged(record("t1", "downloading"));
    watch.stateChanged(record("t1", "waiting"), new Fault("SERVER_FAULT"));
  }
  watch.stateChanged(record("t1", "waiting"), new Fault("CONNECTION_LOST"));
  watch.stateChanged(record("t2", "waiting"), new Fault("SERVER_FAULT"));
  expect(lines).toEqual(["waiting t1", "waiting t1", "waiting t2"]);
  watch.stateChanged(record("t1", "delivered"));
  expect(lines.at(-1)).toBe("delivered t1");
});

test("I8 bounded: one that is stuck is told once, and what waits for a password every time it is refused", () => {
  const { watch, lines } = listen();
  for (let round = 0; round < 50; round++) watch.stuck(record("t1", "delivering"), new Fault("DISK_REFUSED"));
  watch.stateChanged(record("t2", "waiting"));
  watch.stateChanged(record("t2", "waiting"));
  expect(lines).toEqual(["stuck, and tried again t1", "waiting t2", "waiting t2"]);
});

test("I8 bounded: transfers that others finish, of which nobody hears here, are not remembered for ever", () => {
  const { watch, lines } = listen();
  const wait = (id: string) => watch.stateChanged(record(id, "waiting"), new Fault("SERVER_FAULT"));
  wait("first");
  for (let at = 0; at < 10_000; at++) wait(`t${at}`);
  lines.length = 0;
  wait("t9999");
  expect(lines).toEqual([]);
  wait("first");
  expect(lines).toEqual(["waiting first"]);
});

test("I8 bounded: entries that cannot be used are one line, with their number and two reasons", () => {
  const { watch, lines, facts } = listen();
  watch.rejected("m", 5_000, [new Fault("BAD_ANSWER", { detail: "a" }), new Fault("RECORD_UNREADABLE")]);
  expect(lines).toHaveLength(1);
  expect(facts.at(-1)).toMatchObject({
    mailbox: "m",
    entries: 5_000,
    fault: { code: "BAD_ANSWER" },
    otherReason: expect.stringContaining("damaged"),
  });
});

test("I6 no contagion: a full disk is told once for all transfers and mailboxes", () => {
  const { watch, lines } = listen();
  const fault = new Fault("DISK_FULL");
  watch.diskFull(fault);
  for (const id of ["t1", "t2", "t3"]) watch.stateChanged(record(id, "waiting"), fault);
  watch.pollFailed("m", fault, true, 0);
  watch.recovered("m", 1000, fault);
  watch.diskHasRoom(1000);
  expect(lines).toEqual([
    "the disk is full: intake pauses until there is room",
    "there is room on the disk again",
  ]);
});

test("I8 bounded: a receiver that fails for many is told once until it accepts again, what was given up each time", () => {
  const { watch, lines } = listen();
  const facts = {
    mailbox: "m",
    sender: "a@example.org",
    folder: "f",
    deliveredAt: "2026-03-01T08:00:00.000Z",
  };
  const fault = new Fault("WEBHOOK_FAILED");
  const fails = (trackingId: string, willRetry: boolean) =>
    watch.handoffFailed({ ...facts, trackingId }, "webhook", fault, { attempts: 1, willRetry, output: "" });
  for (let round = 0; round < 50; round++) for (const id of ["t1", "t2"]) fails(id, true);
  fails("t2", false);
  watch.handedOver({ ...facts, trackingId: "t1" }, "webhook");
  fails("t3", true);
  expect(lines).toEqual([
    "the hand-off failed, and is tried again t1",
    "the hand-off failed, and was given up: inlet retry tries it again t2",
    "handed over t1",
    "the hand-off failed, and is tried again t3",
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
  return { watch: logEvents(createLog(output, "info")), lines, facts };
}

function record(trackingId: string, state: State): TransferRecord {
  return makeRecord({ trackingId, state });
}
