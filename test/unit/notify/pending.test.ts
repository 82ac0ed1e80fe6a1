/** The notices of one channel: what is pending, what was notified, and what is remembered. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { applyEvent } from "../../../src/notify/notices.ts";
import { Pending } from "../../../src/notify/pending.ts";
import { ServiceTroubles } from "../../../src/notify/service-troubles.ts";
import { pollSucceeded } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

const all = () => true;

test("an expected transfer that is overdue is notified, and its late arrival", () => {
  const pending = makePending();
  const by = { zone: "UTC", days: [0], timeMs: 0 };
  const expectation = {
    sender: "*@bank.example",
    by,
    withinMs: undefined,
    described: "*@bank.example by 06:00",
  };
  const overdue = { mailbox: "m", expectation, dueMs: 1_000 };
  applyEvent({ type: "arrival-missed", ...overdue }, 1, 0, pending);
  const batch = pending.select(2, all);
  expect(batch.groups).toMatchObject([
    {
      kind: "overdue",
      isOver: false,
      notices: [{ mailbox: "m", text: expect.stringContaining("by 06:00") }],
    },
  ]);
  pending.take(batch);
  applyEvent({ type: "arrival-late", ...overdue }, 3, 0, pending);
  expect(pending.select(4, all).groups).toMatchObject([{ kind: "overdue", isOver: true, count: 1 }]);
});

test("entries of a list that cannot be used are notified once while polls find them", () => {
  const pending = makePending();
  const reasons = [new Fault("BAD_ANSWER", { detail: "no sender" })];
  const rejected = () =>
    applyEvent({ type: "entries-rejected", mailbox: "m", entries: 3, reasons }, 1, 0, pending);
  rejected();
  pending.take(pending.select(2, all));
  rejected();
  expect(pending.size).toBe(0);
  applyEvent(pollSucceeded({ mailbox: "m" }), 1, 0, pending);
  rejected();
  expect(pending.size).toBe(1);
});

test("5,000 of a kind are one group with the first of them and a count", () => {
  const pending = makePending();
  for (let at = 0; at < 5_000; at++) changeTo(pending, `t${at}`, "waiting", "password");
  const batch = pending.select(2, all);
  expect(batch.groups).toMatchObject([{ kind: "password", isOver: false, count: 5_000 }]);
  expect(batch.groups[0]?.notices.length).toBeLessThanOrEqual(100);
  pending.take(batch);
  expect(pending.size).toBe(0);
});

test("a transfer is notified once, whatever its retries say, and again after a new quarantine", () => {
  const pending = makePending();
  const notify = () => pending.take(pending.select(2, all));
  changeTo(pending, "t1", "waiting", "password");
  notify();
  changeTo(pending, "t1", "waiting", "password");
  expect(pending.size).toBe(0);
  changeTo(pending, "t1", "quarantined");
  expect(pending.size).toBe(1);
  notify();
  changeTo(pending, "t1", "quarantined");
  expect(pending.size).toBe(0);
  changeTo(pending, "t1", "downloading");
  changeTo(pending, "t1", "quarantined");
  expect(pending.size).toBe(1);
});

test("a transfer that was delivered before the message is not in it", () => {
  const pending = makePending();
  changeTo(pending, "t1", "waiting", "password");
  changeTo(pending, "t2", "waiting", "password");
  changeTo(pending, "t1", "delivered");
  const { groups } = pending.select(2, all);
  expect(groups).toMatchObject([{ count: 1, notices: [{ trackingId: "t2" }] }]);
});

test("a discarded transfer is not reported as gone", () => {
  const pending = makePending();
  changeTo(pending, "t1", "gone", "discarded");
  expect(pending.size).toBe(0);
});

test("a trouble that ends before its message is not notified; one that ends later is, once", () => {
  const pending = makePending();
  disk(pending, "full");
  disk(pending, "room");
  expect(pending.size).toBe(0);
  disk(pending, "full");
  pending.take(pending.select(2, all));
  disk(pending, "full");
  expect(pending.size).toBe(0);
  disk(pending, "room");
  expect(pending.select(2, all).groups).toMatchObject([{ kind: "disk", isOver: true, count: 1 }]);
  disk(pending, "full");
  // Neither the end nor the new begin was seen by a person.
  expect(pending.size).toBe(0);
});

test("a trouble that ends while its message is being sent is notified as over", () => {
  const pending = makePending();
  disk(pending, "full");
  pending.take(pending.select(2, all));
  disk(pending, "room");
  expect(pending.select(2, all).groups).toMatchObject([{ kind: "disk", isOver: true }]);
});

test("a message that was not sent is put back, without what ended meanwhile", () => {
  const pending = makePending();
  for (const id of ["t1", "t2", "t3"]) changeTo(pending, id, "waiting", "password");
  disk(pending, "full");
  const batch = pending.select(2, all);
  pending.take(batch);
  expect(pending.size).toBe(0);
  changeTo(pending, "t1", "delivered");
  changeTo(pending, "t2", "delivered");
  changeTo(pending, "t2", "waiting", "password");
  disk(pending, "room");
  pending.putBack(batch.taken);
  const ids = pending.select(2, all).groups.flatMap(({ notices }) => notices.map((it) => it.trackingId));
  expect(ids).toEqual(["t2", "t3"]);
});

test("the end of a trouble that was not sent is dropped where the trouble is back", () => {
  const pending = makePending();
  disk(pending, "full");
  pending.take(pending.select(2, all));
  disk(pending, "room");
  const over = pending.select(2, all);
  pending.take(over);
  disk(pending, "full");
  expect(pending.select(2, all).groups).toMatchObject([{ kind: "disk", isOver: false }]);
  pending.putBack(over.taken);
  expect(pending.size).toBe(0);
  disk(pending, "room");
  expect(pending.select(2, all).groups).toMatchObject([{ kind: "disk", isOver: true }]);
});

test("a restart keeps what is pending, what was notified, and which troubles last", () => {
  const before = makePending();
  disk(before, "full");
  changeTo(before, "t1", "waiting", "password");
  before.take(before.select(2, all));
  for (let at = 2; at < 500; at++) changeTo(before, `t${at}`, "waiting", "password");
  const after = makePending();
  after.restore(JSON.parse(JSON.stringify(before.snapshot())));
  expect(after.size).toBe(498);
  for (let at = 1; at < 500; at++) changeTo(after, `t${at}`, "waiting", "password");
  expect(after.size).toBe(498);
  disk(after, "full");
  expect(after.size).toBe(498);
  disk(after, "room");
  expect(after.size).toBe(499);
});

test("a trouble of an earlier run is over with the first delivery, unless the disk is full again", () => {
  const before = makePending();
  disk(before, "full");
  before.take(before.select(2, all));
  const snapshot = before.snapshot();
  const [well, stillFull] = [makePending(), makePending()];
  for (const pending of [well, stillFull]) {
    pending.restore(snapshot);
    pending.release(all);
  }
  disk(stillFull, "full");
  for (const pending of [well, stillFull]) changeTo(pending, "t1", "delivered");
  expect([well.size, stillFull.size]).toEqual([1, 0]);
});

test("a trouble of several processes is over when the last of them is past it, or has ended", () => {
  const pending = makePending();
  const over = { kind: "disk", key: "disk", atMs: 1, isOver: true } as const;
  const full = { kind: "disk", key: "disk", atMs: 1, isTrouble: true, isLocal: true } as const;
  for (const process of ["a", "b", "c", "d"]) pending.begin(full, process);
  pending.take(pending.select(2, all));
  pending.end(over, "a");
  pending.endEarlier(over);
  pending.release((process) => process === "b");
  pending.refresh("c", 1_000, 500);
  expect(pending.size).toBe(0);
  pending.endEarlier(over);
  expect(pending.size).toBe(0);
  pending.end(over, "c");
  expect(pending.select(2, all).groups).toMatchObject([{ kind: "disk", isOver: true, count: 1 }]);
});

test("a trouble of a process whose clock was ahead is over once that process has ended", () => {
  const pending = makePending();
  const over = { kind: "disk", key: "disk", atMs: 1, isOver: true } as const;
  const full = { kind: "disk", key: "disk", atMs: 1_000_000, isTrouble: true, isLocal: true } as const;
  pending.begin(full, "ahead");
  pending.take(pending.select(1_000_000, all));
  pending.refresh("other", 1_000, 500);
  pending.endEarlier(over);
  expect(pending.select(2, all).groups).toMatchObject([{ kind: "disk", isOver: true, count: 1 }]);
});

test("50 mailboxes that fail for the same reason are one trouble, which ends with the last of them", () => {
  const troubles = new ServiceTroubles(0);
  const pending = makePending();
  const service = "https://transfer.example.com";
  const unreachable = new Fault("SERVICE_UNREACHABLE");
  for (let at = 0; at < 50; at++) {
    const fault = at % 2 === 0 ? unreachable : new Fault("SERVICE_TIMEOUT");
    pending.begin(troubles.failed(`m${at}`, service, fault, 1).begun);
  }
  const { groups } = pending.select(2, all);
  expect(groups).toMatchObject([{ kind: "service", count: 1, notices: [{ service, count: 50 }] }]);
  pending.take(pending.select(2, all));
  const ends = Array.from({ length: 50 }, (_, at) => troubles.succeeded(`m${at}`, 3));
  expect(ends.slice(0, 49).every((end) => end === undefined)).toBe(true);
  const { begun, droppedKey } = troubles.failed("m1", service, unreachable, 4);
  expect(droppedKey).toBeUndefined();
  const refused = troubles.failed("m1", service, new Fault("TOKEN_REFUSED"), 5);
  expect([refused.droppedKey, refused.begun.key]).toEqual([begun.key, `service ${service} TOKEN_REFUSED`]);
});

test("any sequence of events, messages and restarts notifies each open transfer exactly once", () => {
  const step = fc.oneof(
    fc.record({ at: fc.nat(5), to: fc.constantFrom("password", "delivered", "refused") }),
    fc.constantFrom("message" as const, "restart" as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let pending = makePending();
      const notified = new Map<string, number>();
      const isOpen = new Set<string>();
      const message = () => {
        const batch = pending.select(2, all);
        for (const { notices, kind } of batch.groups) {
          for (const { trackingId } of notices) {
            const key = `${kind} ${trackingId}`;
            notified.set(key, (notified.get(key) ?? 0) + 1);
          }
        }
        pending.take(batch);
      };
      for (const each of steps) {
        if (each === "message") message();
        else if (each === "restart") pending = restarted(pending);
        else if (each.to === "delivered") {
          changeTo(pending, `t${each.at}`, "delivered");
          for (const kind of ["password", "refused"]) {
            isOpen.delete(`${kind} t${each.at}`);
            notified.delete(`${kind} t${each.at}`);
          }
        } else {
          changeTo(pending, `t${each.at}`, "waiting", each.to);
          isOpen.add(`${each.to} t${each.at}`);
        }
      }
      message();
      expect([...notified].toSorted()).toEqual([...isOpen].map((key) => [key, 1]).toSorted());
    }),
  );
});

test("any sequence of results notifies once that a hand-off fails, and once more when it is given up", () => {
  const result = fc.constantFrom("failed", "given up", "succeeded", "message", "restart");
  const steps = fc.array(fc.record({ step: fc.constantFrom("command", "webhook"), result }), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(steps, (all) => {
      let pending = makePending();
      const unreported = new Map<string, string>();
      const now = new Map<string, string>();
      for (const { step, result } of all) {
        if (result === "restart") pending = restarted(pending);
        else if (result === "message") {
          const expected = [...unreported].map(([of, what]) => `${of} ${what}`);
          expect(takeHandoffs(pending).toSorted()).toEqual(expected.toSorted());
          unreported.clear();
        } else {
          handOff(pending, step, result);
          if (result === "succeeded") unreported.delete(step);
          else if (now.get(step) !== result) unreported.set(step, result);
          now.set(step, result);
        }
      }
    }),
  );
});

function makePending(): Pending {
  return new Pending();
}

function restarted(pending: Pending): Pending {
  const next = makePending();
  next.restore(JSON.parse(JSON.stringify(pending.snapshot())));
  return next;
}

function handOff(
  pending: Pending,
  step: "command" | "webhook",
  result: "failed" | "given up" | "succeeded",
): void {
  const key = { mailbox: "m", trackingId: "t1", round: 1 };
  const delivered = { ...key, sender: "s", folder: "f", deliveredAt: "2026-03-01T08:00:00.000Z" };
  const failed = { fault: new Fault("COMMAND_FAILED", { detail: step }), attempts: 1, output: "" };
  const event =
    result === "succeeded"
      ? ({ type: "handoff-succeeded", delivered, step } as const)
      : ({ type: "handoff-failed", delivered, step, ...failed, willRetry: result === "failed" } as const);
  applyEvent(event, 1, 0, pending);
}

/** Takes all notices of hand-offs: the step, and whether it was given up. */
function takeHandoffs(pending: Pending): string[] {
  const batch = pending.select(2, all);
  pending.take(batch);
  return batch.groups.flatMap(({ kind, notices }) => {
    expect(kind).toBe("handoff");
    return notices.map(({ text = "" }) => {
      const step = /command failed: (\w+)/.exec(text)?.[1];
      return `${step} ${text.startsWith("Inlet gave up") ? "given up" : "failed"}`;
    });
  });
}

function changeTo(
  pending: Pending,
  trackingId: string,
  state: "waiting" | "quarantined" | "delivered" | "gone" | "downloading",
  reason?: string,
): void {
  const facts = reason === "refused" ? { reason: "retry", needsPerson: true } : { reason };
  const record = makeRecord({ trackingId, state, ...facts });
  applyEvent({ type: "transfer-changed", record }, 1, 0, pending);
}

function disk(pending: Pending, state: "full" | "room"): void {
  const event =
    state === "full"
      ? ({ type: "disk-full", fault: new Fault("DISK_FULL") } as const)
      : ({ type: "disk-has-room", pausedForMs: 1 } as const);
  applyEvent(event, 1, 0, pending);
}
