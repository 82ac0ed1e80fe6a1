import { Writable } from "node:stream";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { logEvents } from "../../../src/cli/event-log.ts";
import { createLog, limitLog } from "../../../src/observe/log.ts";
import { DELIVERED } from "../../support/events.ts";

const MINUTE_MS = 60_000;

let { log, lines } = open();
beforeEach(() => {
  vi.useFakeTimers();
  ({ log, lines } = open());
});
afterEach(() => void vi.useRealTimers());

test("I8 bounded: 37,000 folders that are not picked up are a few lines, and one with their number a minute later", () => {
  const emit = logEvents(log);
  for (let at = 0; at < 37_000; at++) {
    const delivered = { ...DELIVERED, trackingId: `t${at}`, folder: `f${at}` };
    emit({ type: "pick-up-overdue", delivered, sinceMs: at });
  }
  expect(lines).toHaveLength(20);
  expect(lines.every(({ msg }) => msg === "not picked up in time")).toBe(true);
  vi.advanceTimersByTime(MINUTE_MS);
  expect(lines.slice(20)).toEqual([
    {
      level: "warn",
      time: expect.any(String),
      msg: "more like this in the last minute",
      more: 36_980,
      like: "not picked up in time",
      example: expect.objectContaining({ trackingId: "t36999", folder: "f36999" }),
    },
  ]);
});

test("the next minute begins anew, and a quiet minute has no line", () => {
  for (let minute = 0; minute < 2; minute++) {
    for (let at = 0; at < 21; at++) log.warn({ trackingId: `t${at}` }, "waiting");
    vi.advanceTimersByTime(MINUTE_MS);
  }
  expect(lines).toHaveLength(42);
  vi.advanceTimersByTime(10 * MINUTE_MS);
  expect(lines).toHaveLength(42);
});

test("causes are limited apart: another fault, reason, message or level is never swallowed", () => {
  const fault = (code: "SERVER_FAULT" | "CONNECTION_LOST", detail: string) => new Fault(code, { detail });
  for (let at = 0; at < 500; at++) {
    const facts = { mailbox: `m${at}`, trackingId: `t${at}` };
    log.warn({ ...facts, fault: fault("SERVER_FAULT", `m${at}: status ${500 + at}`) }, "cannot be polled");
  }
  expect(lines).toHaveLength(20);
  lines.length = 0;
  const other = { mailbox: "m", trackingId: "t" };
  log.warn({ ...other, fault: fault("CONNECTION_LOST", "m: status 500") }, "cannot be polled");
  log.warn({ ...other, reason: "password" }, "waiting");
  log.warn({ ...other, reason: "locked" }, "waiting");
  log.error({ ...other, reason: "locked" }, "waiting");
  expect(lines).toHaveLength(4);
});

test("information is not limited: each delivery has its line", () => {
  for (let at = 0; at < 1_000; at++) log.info({ trackingId: `t${at}` }, "delivered");
  expect(lines).toHaveLength(1_000);
});

test("the end of the daemon does not lose a summary", () => {
  for (let at = 0; at < 25; at++) log.error({ trackingId: `t${at}` }, "stuck");
  log.close();
  expect(lines.at(-1)).toMatchObject({ level: "error", more: 5, like: "stuck" });
  expect(vi.getTimerCount()).toBe(0);
});

function open() {
  const lines: Record<string, unknown>[] = [];
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()));
      done();
    },
  });
  return { log: limitLog(createLog(output, "info")), lines };
}
