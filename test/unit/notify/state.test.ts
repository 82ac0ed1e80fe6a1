/** The notices of one channel: what is pending, what was reported, and what is remembered. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { DaemonEvent } from "../../../src/model/events.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { changeOfLine, changesOfEvent, type Notice, type NoticeChange } from "../../../src/notify/notices.ts";
import { ChannelState } from "../../../src/notify/state.ts";
import { pollFailed, pollSucceeded } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

const SERVICE = "https://transfer.example.com";
const DELIVERED = {
  mailbox: "m",
  trackingId: "t1",
  round: 1,
  sender: "s",
  folder: "f",
  deliveredAt: "2026-03-01T08:00:00.000Z",
};

test("an expected transfer that is overdue is reported, and its late arrival", () => {
  const state = new ChannelState();
  const by = { zone: "UTC", days: [0], timeMs: 0 };
  const described = "*@bank.example by 06:00";
  const expectation = { sender: "*@bank.example", by, withinMs: undefined, described };
  const overdue = { mailbox: "m", expectation, dueMs: 1_000 };
  happen(state, { type: "overdue-listed", overdue: [overdue] });
  expect(send(state)).toEqual(["overdue"]);
  happen(state, { type: "overdue-listed", overdue: [overdue] });
  expect(send(state)).toEqual([]);
  happen(state, { type: "arrival-late", ...overdue });
  expect(send(state)).toEqual(["overdue over"]);
});

test("entries of a list that cannot be used are reported once while polls find them", () => {
  const state = new ChannelState();
  const reasons = [new Fault("BAD_ANSWER", { detail: "no sender" })];
  const rejected = { type: "entries-rejected", mailbox: "m", entries: 3, reasons } as const;
  happen(state, rejected);
  expect(send(state)).toEqual(["refused"]);
  happen(state, rejected);
  expect(send(state)).toEqual([]);
  happen(state, pollSucceeded({ mailbox: "m" }));
  happen(state, rejected);
  expect(send(state)).toEqual(["refused"]);
});

test("a scan of the outbox reports what was given up or not picked up, unless it is known", () => {
  const [known, unknown] = [new ChannelState(), new ChannelState()];
  const failed = (["command", "webhook"] as const).map((step) => ({
    step,
    message: "failed",
    willRetry: step === "webhook",
  }));
  const trouble = { ...DELIVERED, failed, isOverdue: true };
  const summary = { waiting: 1, oldestMs: 1, troubled: 1, troubles: [trouble] };
  happen(known, { type: "pick-up-overdue", delivered: DELIVERED, sinceMs: 1 });
  happen(known, handoffFailed("command", false));
  expect(send(known)).toHaveLength(2);
  for (const state of [known, unknown]) happen(state, { type: "outbox-scanned", summary });
  expect([send(known), send(unknown)]).toEqual([[], ["not-picked-up t1", "handoff t1"]]);
});

test("5,000 of a kind are counted, and only the first of them have details", () => {
  const state = new ChannelState();
  for (let at = 0; at < 5_000; at++) change(state, `t${at}`, "waiting", "password");
  expect(state.pending()).toHaveLength(5_000);
  expect(state.pending().filter(({ trackingId }) => trackingId !== undefined)).toHaveLength(100);
  expect(state.serialize().length).toBeLessThan(400_000);
  send(state);
  expect(state.pending()).toEqual([]);
});

test("50,000 reported notices are remembered; beyond them the oldest is forgotten", () => {
  const state = new ChannelState();
  const begin = (key: string) => beginIn(state, { kind: "gone", key, atMs: 0 });
  for (const from of [0, 25_001]) {
    for (let at = from; at < from + 25_001; at++) begin(`k${at}`);
    send(state);
  }
  for (const known of ["k2", "k50001"]) begin(known);
  expect(state.pending()).toEqual([]);
  begin("k1");
  expect(state.pending()).toHaveLength(1);
});

test("a transfer is reported once, whatever its retries say, and again after a new quarantine", () => {
  const state = new ChannelState();
  change(state, "t1", "waiting", "password");
  expect(send(state)).toEqual(["password t1"]);
  change(state, "t1", "waiting", "password");
  expect(send(state)).toEqual([]);
  change(state, "t1", "quarantined");
  expect(send(state)).toEqual(["quarantined t1"]);
  change(state, "t1", "quarantined");
  expect(send(state)).toEqual([]);
  change(state, "t1", "downloading");
  change(state, "t1", "quarantined");
  expect(send(state)).toEqual(["quarantined t1"]);
});

test("a transfer that is gone is reported, unless an operator discarded or acknowledged it", () => {
  const state = new ChannelState();
  change(state, "t1", "gone", "discarded");
  change(state, "t2", "gone", "not_listed");
  change(state, "t3", "gone", "not_listed");
  apply(state, lineOf({ trackingId: "t3", state: "gone", reason: "not_listed", acknowledged: true }));
  expect(send(state)).toEqual(["gone t2"]);
});

test("spellings of an address are one mailbox", () => {
  const state = new ChannelState();
  apply(state, lineOf({ mailbox: "Box@Example.com", state: "waiting", reason: "held" }));
  apply(state, lineOf({ mailbox: "box@example.com", state: "waiting", reason: "held" }));
  expect(send(state)).toEqual(["held t1"]);
});

describe("a trouble", () => {
  test("that ends before its message is not reported; one that ends later is, once", () => {
    const state = new ChannelState();
    disk(state, "full");
    disk(state, "room");
    expect(send(state)).toEqual([]);
    disk(state, "full");
    expect(send(state)).toEqual(["disk"]);
    disk(state, "full");
    expect(send(state)).toEqual([]);
    disk(state, "room");
    disk(state, "full");
    // Neither the end nor the new beginning was seen by a person.
    expect(send(state)).toEqual([]);
    disk(state, "room");
    expect(send(state)).toEqual(["disk over"]);
  });

  test("of several processes is over when the last of them is past it", () => {
    const state = new ChannelState();
    for (const process of ["a", "b", "c"]) disk(state, "full", process);
    expect(send(state)).toEqual(["disk"]);
    disk(state, "room", "a");
    state.release("b", 1);
    expect(state.processes).toEqual(["c"]);
    expect(send(state)).toEqual([]);
    disk(state, "room", "c");
    expect(send(state)).toEqual(["disk over"]);
  });

  test("of a mailbox is over when any process has polled it", () => {
    const state = new ChannelState();
    fail(state, "m", "TOKEN_REFUSED");
    expect(send(state)).toEqual(["service"]);
    happen(state, pollSucceeded({ mailbox: "m" }), "other");
    expect(send(state)).toEqual(["service over"]);
  });

  test("of a process that has ended is over; a full disk only with the next delivery, unless it is full again", () => {
    for (const isFull of [false, true]) {
      const state = new ChannelState();
      disk(state, "full", "a");
      happen(state, { type: "queue-lost", fault: new Fault("QUEUE_UNREACHABLE") }, "a");
      happen(state, { type: "handoffs-stuck", fault: new Fault("DISK_REFUSED") }, "a");
      expect(send(state)).toEqual(["handoff", "disk", "queue"]);
      state.release("a", 1);
      expect(send(state)).toEqual(["handoff over", "queue over"]);
      if (isFull) disk(state, "full", "b");
      change(state, "t1", "delivered");
      expect(send(state)).toEqual(isFull ? [] : ["disk over"]);
    }
  });

  test("that gets another cause is reported again, and its first cause is not reported as over", () => {
    const state = new ChannelState();
    fail(state, "m", "SERVICE_UNREACHABLE");
    expect(send(state)).toEqual(["service"]);
    fail(state, "m", "TOKEN_REFUSED");
    expect(send(state)).toEqual(["service"]);
    happen(state, pollSucceeded({ mailbox: "m" }));
    expect(send(state)).toEqual(["service over"]);
  });

  test("that ends or begins again while its message is being sent is reported as the message turns out", () => {
    for (const isSent of [true, false]) {
      const state = new ChannelState();
      const during = (to: "full" | "room") => {
        const notices = state.pending();
        state.report(notices);
        disk(state, to);
        if (!isSent) state.takeBack(notices);
      };
      disk(state, "full");
      during("room");
      expect(send(state)).toEqual(isSent ? ["disk over"] : []);
      disk(state, "full");
      send(state);
      disk(state, "room");
      during("full");
      expect(send(state)).toEqual(isSent ? ["disk"] : []);
      during("full");
      disk(state, "room");
      expect(send(state)).toEqual(["disk over"]);
    }
  });

  test("is not brought back by a line that is read after its end", () => {
    const state = new ChannelState();
    const [begin, end] = ["disk-failed", "disk-recovered"].map((type, at) => {
      const event = { type, fault: new Fault("DISK_FULL"), pausedForMs: 1 } as DaemonEvent;
      return changesOf(event).map((each) => ({ ...each, process: "p", seq: at + 1 }))[0];
    });
    if (begin === undefined || end === undefined) throw new Error("no change");
    state.apply(begin);
    expect(send(state)).toEqual(["disk"]);
    state.apply(end);
    expect(send(state)).toEqual(["disk over"]);
    for (const line of [begin, end]) {
      restarted(state).apply(line);
      state.apply(line);
      expect(send(state)).toEqual([]);
    }
  });

  test("of mailboxes that are no longer polled is forgotten, and reported when it comes back", () => {
    const state = new ChannelState();
    fail(state, "m1", "TOKEN_REFUSED");
    expect(send(state)).toEqual(["service"]);
    state.keepPolled((mailbox) => mailbox !== "m1");
    expect(send(state)).toEqual([]);
    fail(state, "m2", "TOKEN_REFUSED");
    expect(send(state)).toEqual(["service"]);
  });
});

test.each(["", "{", "{}", '{"version":2}', "null"])(
  "a saved state that reads %j counts as missing",
  (text) => {
    expect(ChannelState.parse(text)).toBeUndefined();
  },
);

test.each([
  ["an act", { at: "2026-03-01T08:00:00.000Z", act: "retry", id: "i", who: "w", from: "f" }],
  ["a damaged change", { at: "2026-03-01T08:00:00.000Z", notice: { begin: [] } }],
  [
    "a transfer without a state",
    { at: "2026-03-01T08:00:00.000Z", mailbox: "m", trackingId: "t", sender: "s" },
  ],
])("a line with %s changes nothing", (_, line) => {
  expect(changeOfLine(line, 1)).toBeUndefined();
});

test("a line of a clock that is ahead is reported at once", () => {
  const line = lineOf({ state: "waiting", reason: "held" }, "2099-01-01T00:00:00.000Z");
  expect(changeOfLine(line, 5)).toMatchObject({ begin: [{ atMs: 5 }] });
});

/** Everything that the journal can say about two transfers, two mailboxes and two processes. */
const anyChange: fc.Arbitrary<NoticeChange> = fc
  .oneof(
    fc.record({
      trackingId: fc.constantFrom("t1", "t2"),
      state: fc.constantFrom("waiting", "downloading", "delivered", "quarantined", "gone"),
      reason: fc.constantFrom("password", "held", "discarded", "retry"),
      needsPerson: fc.boolean(),
    }),
    fc.record({
      process: fc.constantFrom("a", "b"),
      event: fc.constantFrom<DaemonEvent>(
        { type: "disk-failed", fault: new Fault("DISK_FULL") },
        { type: "disk-recovered", pausedForMs: 1 },
        pollFailed({ mailbox: "m1", fault: new Fault("TOKEN_REFUSED") }),
        pollFailed({ mailbox: "m1", fault: new Fault("SERVICE_UNREACHABLE") }),
        pollFailed({ mailbox: "m2", fault: new Fault("TOKEN_REFUSED") }),
        pollSucceeded({ mailbox: "m1" }),
        pollSucceeded({ mailbox: "m2" }),
        { type: "handoff-succeeded", delivered: DELIVERED, step: "command" },
        handoffFailed("command", true),
        handoffFailed("command", false),
      ),
    }),
  )
  .chain((what) => {
    const changes =
      "event" in what ? changesOf(what.event, what.process) : [changeOfLine(lineOf(what as never), 1)];
    return fc.constantFrom(...changes.filter((each) => each !== undefined));
  });

test("any changes that are read again after a kill leave the same notices", () => {
  fc.assert(
    fc.property(fc.array(anyChange, { maxLength: 40 }), fc.nat(40), fc.nat(40), (changes, from, sentAt) => {
      const state = new ChannelState();
      for (const [at, each] of changes.entries()) {
        if (at === sentAt) send(state);
        state.apply(each);
      }
      send(state);
      const before = state.serialize();
      const again = restarted(state);
      for (const each of changes.slice(from)) again.apply(each);
      // A notice that was settled and begun anew among these lines may be sent again: at least once.
      const settled = new Set(changes.slice(from).flatMap(({ end }) => end));
      const repeated = again
        .pending()
        .filter(({ key, isTrouble, isOver }) => !settled.has(key) && !isTrouble && !isOver);
      expect(repeated).toEqual([]);
      expect(keysOf(again)).toEqual(keysOf(ChannelState.parse(before)));
    }),
  );
});

test("any sequence of events, messages and restarts reports each open transfer exactly once", () => {
  const step = fc.oneof(
    fc.record({ at: fc.nat(5), to: fc.constantFrom("password", "delivered", "refused") }),
    fc.constantFrom("message" as const, "restart" as const),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let state = new ChannelState();
      const reported = new Map<string, number>();
      const isOpen = new Set<string>();
      const message = () => {
        for (const key of send(state)) reported.set(key, (reported.get(key) ?? 0) + 1);
      };
      for (const each of steps) {
        if (each === "message") message();
        else if (each === "restart") state = restarted(state);
        else if (each.to === "delivered") {
          change(state, `t${each.at}`, "delivered");
          for (const kind of ["password", "refused"]) {
            isOpen.delete(`${kind} t${each.at}`);
            reported.delete(`${kind} t${each.at}`);
          }
        } else {
          change(state, `t${each.at}`, "waiting", each.to);
          isOpen.add(`${each.to} t${each.at}`);
        }
      }
      message();
      expect([...reported].toSorted()).toEqual([...isOpen].map((key) => [key, 1]).toSorted());
    }),
  );
});

test("any sequence of results reports once that a hand-off fails, and once more when it is given up", () => {
  const result = fc.constantFrom("failed", "given up", "succeeded", "message", "restart");
  const steps = fc.array(fc.record({ step: fc.constantFrom("command", "webhook"), result }), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(steps, (all) => {
      let state = new ChannelState();
      const unreported = new Map<string, string>();
      const now = new Map<string, string>();
      for (const { step, result } of all) {
        if (result === "restart") state = restarted(state);
        else if (result === "message") {
          expect(sendHandoffs(state)).toEqual([...unreported].map((it) => it.join(" ")).toSorted());
          unreported.clear();
        } else {
          handOff(state, step, result);
          if (result === "succeeded") unreported.delete(step);
          else if (now.get(step) !== result) unreported.set(step, result);
          now.set(step, result);
        }
      }
    }),
  );
});

function handOff(state: ChannelState, step: "command" | "webhook", result: string): void {
  if (result === "succeeded") happen(state, { type: "handoff-succeeded", delivered: DELIVERED, step });
  else happen(state, handoffFailed(step, result === "failed"));
}

/** Sends everything: the step of each hand-off, and whether it was given up. */
function sendHandoffs(state: ChannelState): string[] {
  const notices = state.pending();
  send(state);
  const found = notices.map(({ text = "" }) => {
    const step = /command failed: (\w+)/.exec(text)?.[1];
    return `${step} ${text.startsWith("Inlet gave up") ? "given up" : "failed"}`;
  });
  return found.toSorted();
}

/** Sends everything: the kind, the tracking-id, and whether it is over. */
function send(state: ChannelState): string[] {
  const notices = state.pending();
  state.report(notices);
  return notices.map(({ kind, trackingId, isOver }) =>
    [kind, trackingId, isOver ? "over" : ""].filter(Boolean).join(" "),
  );
}

/** Everything that is known, pending or reported. */
function keysOf(state: ChannelState | undefined): string[] {
  const { pending = [], reported = [] } = JSON.parse(state?.serialize() ?? "{}") as Record<string, Notice[]>;
  return [...pending, ...reported].map(({ key, isOver }) => `${key} ${isOver ?? false}`).toSorted();
}

function beginIn(state: ChannelState, notice: Notice): void {
  state.apply({ atMs: 0, end: [], begin: [notice] });
}

function restarted(state: ChannelState): ChannelState {
  const next = ChannelState.parse(state.serialize());
  if (next === undefined) throw new Error("the state cannot be read");
  return next;
}

function changesOf(event: DaemonEvent, process = "p"): NoticeChange[] {
  return changesOfEvent(event, { nowMs: 1, blipMs: 0, process, serviceOf: () => SERVICE });
}

function happen(state: ChannelState, event: DaemonEvent, process?: string): void {
  // As the journal stores them.
  for (const notice of changesOf(event, process)) apply(state, { notice });
}

function apply(state: ChannelState, line: object): void {
  const change = changeOfLine(JSON.parse(JSON.stringify(line)), 1);
  if (change !== undefined) state.apply(change);
}

function lineOf(facts: Partial<TransferRecord>, at = "1970-01-01T00:00:00.001Z") {
  return { ...makeRecord(facts), at };
}

function change(
  state: ChannelState,
  trackingId: string,
  to: "waiting" | "quarantined" | "delivered" | "gone" | "downloading",
  reason?: string,
): void {
  const facts = reason === "refused" ? { reason: "retry", needsPerson: true } : { reason };
  apply(state, lineOf({ trackingId, state: to, ...facts }));
}

function disk(state: ChannelState, to: "full" | "room", process?: string): void {
  const event =
    to === "full"
      ? ({ type: "disk-failed", fault: new Fault("DISK_FULL") } as const)
      : ({ type: "disk-recovered", pausedForMs: 1 } as const);
  happen(state, event, process);
}

function fail(
  state: ChannelState,
  mailbox: string,
  code: "TOKEN_REFUSED" | "SERVICE_UNREACHABLE" | "SERVICE_TIMEOUT",
) {
  happen(state, pollFailed({ mailbox, fault: new Fault(code) }));
}

function handoffFailed(step: "command" | "webhook", willRetry: boolean): DaemonEvent {
  const fault = new Fault("COMMAND_FAILED", { detail: step });
  return { type: "handoff-failed", delivered: DELIVERED, step, fault, attempts: 1, willRetry };
}
