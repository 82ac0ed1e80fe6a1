/** The status on a screen, and its exit code. */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import type { Context } from "../../../src/cli/command.ts";
import { fitStatus, outcomeOf, watchStatus } from "../../../src/cli/status.ts";
import type { Status, Trouble } from "../../../src/model/status.ts";
import { Board } from "../../../src/observe/board.ts";
import { FACTS, shownMailbox } from "../../support/board.ts";
import { pollFailed } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

test.each([1, 5, 10, 24, 50])(
  "the status on a screen has at most %i rows, the most important first",
  (rows) => {
    const lines = fit(largeStatus(), rows);
    expect(lines.length).toBeLessThanOrEqual(rows);
    if (rows > 1) expect(lines[0]).toMatch(/^50 problems/);
    expect(lines.at(-1)).toBe("q quits");
  },
);

test("the status on a screen shows as many items of each section as fit, and the number of the others", () => {
  const text = fit(largeStatus(), 40).slice(0, -1).join("\n");
  for (const title of ["Problems:", "Needs attention:", "Queued:", "Mailboxes:"]) {
    const lines = text.slice(text.indexOf(title)).split("\n\n")[0]?.split("\n") ?? [];
    expect(lines.length).toBeGreaterThan(3);
    expect(lines.at(-1)).toMatch(/^ {2}… and \d+ more$/);
  }
  expect(text).toMatch(/Needs attention:\n {2}t0 from/);
});

test("inlet status --watch ends with a signal, and leaves the terminal as it was, also after a failure", async () => {
  const stopped = watch();
  await expect.poll(() => stopped.written.join("")).toContain("Mailboxes:");
  expect(stopped.stdin.isRaw).toBe(true);
  stopped.stdin.emit("data", Buffer.from("x"));
  stopped.stop.abort();
  expect(await stopped.ended).toBe("interrupted");
  expect([stopped.stdin.isRaw, stopped.stdin.isPaused]).toEqual([false, true]);
  expect([stopped.stdin.listenerCount("data"), process.listenerCount("exit")]).toEqual([0, exits]);
  const failed = watch(async () => {
    throw new Fault("CONFIG_INVALID");
  });
  await expect(failed.ended).rejects.toThrow();
  expect(failed.stdin.isRaw).toBe(false);
  expect(failed.written.at(-1)).toBe(RESTORED);
});

test("inlet status --watch redraws at once for another size", async () => {
  const { stdin, stdout, written, ended } = watch();
  await expect.poll(() => written.length).toBe(2);
  stdout.rows = 6;
  stdout.emit("resize");
  expect(written).toHaveLength(3);
  expect(written[2]?.split("\r\n")).toHaveLength(6);
  stdin.emit("data", Buffer.from("q"));
  await ended;
});

const RESTORED = "\u001b[?7h\u001b[?25h\u001b[?1049l";

const exits = process.listenerCount("exit");

function watch(read = async () => ({ status: largeStatus(), instead: undefined })) {
  const written: string[] = [];
  const stdin = Object.assign(new EventEmitter(), {
    isTTY: true,
    isRaw: false,
    isPaused: true,
    setRawMode(isRaw: boolean) {
      stdin.isRaw = isRaw;
      return stdin;
    },
    resume() {
      stdin.isPaused = false;
      return stdin;
    },
    pause() {
      stdin.isPaused = true;
      return stdin;
    },
  });
  const stdout = Object.assign(new EventEmitter(), {
    isTTY: true,
    rows: 24,
    columns: 80,
    write: (text: string) => void written.push(text),
  });
  const stop = new AbortController();
  const context = { stdin, stdout, stop: stop.signal } as unknown as Context;
  return { stdin, stdout, written, stop, ended: watchStatus(context, read) };
}

function fit(status: Status, rows: number): string[] {
  const stream = Object.assign(new PassThrough(), { rows, isTTY: true });
  const lines = fitStatus(status, undefined, stream as unknown as NodeJS.WriteStream);
  return lines.map((line) => stripVTControlCharacters(line));
}

/** 50 failing mailboxes, 300 quarantined transfers, 40 queued ones. */
function largeStatus(): Status {
  const names = Array.from({ length: 50 }, (_, at) => `m${at}`);
  const board = boardOf(names);
  for (const mailbox of names) {
    board.listener(pollFailed({ mailbox, fault: new Fault("SERVICE_UNREACHABLE", { detail: "no answer" }) }));
  }
  for (let at = 0; at < 340; at++) {
    const state = at < 300 ? "quarantined" : "discovered";
    const record = makeRecord({ trackingId: `t${at}`, mailbox: "m1", state, reason: "CHECKSUM_MISMATCH" });
    board.listener({ type: "transfer-discovered", record });
  }
  return { ...board.read(), live: true };
}

/** Each mailbox has its own service, so that its failure is a problem of its own. */
function boardOf(names: readonly string[]): Board {
  const mailboxes = names.map((name) =>
    shownMailbox(name, { service: { baseUrl: new URL(`https://${name}.example.com/`) } }),
  );
  return new Board(FACTS, mailboxes, systemClock);
}

const totals = { attention: 0 } as Status["totals"];

test.each([
  ["", "fine"],
  ["notify: MAIL_LOGIN_REFUSED", "attention"],
  ["disk: DISK_FULL", "attention"],
  ["mailbox orders: ARRIVAL_MISSED", "attention"],
  ["mailbox orders: VERIFICATION_ENDS", "attention"],
  ["queue: QUEUE_UNREACHABLE", "unreachable"],
  ["service https://transfer.example.com: SERVICE_UNREACHABLE", "unreachable"],
  ["notify: MAIL_LOGIN_REFUSED, queue: QUEUE_UNREACHABLE", "unreachable"],
])("problems %j: %s", (found, outcome) => {
  const troubles = found
    .split(", ")
    .filter(Boolean)
    .map((text): Trouble => {
      const [what = "", code = ""] = text.split(/: (?=[A-Z_]+$)/);
      return { what, code, since: "", message: "", advice: "" } as Trouble;
    });
  expect(outcomeOf({ live: true, troubles, totals })).toBe(outcome);
  expect(outcomeOf({ live: false, troubles, totals })).toBe("unreachable");
});
