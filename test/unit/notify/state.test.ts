/** The notices of one channel: what is pending, what was reported, and what is remembered. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { DaemonEvent } from "../../../src/model/events.ts";
import type { State, TransferRecord } from "../../../src/model/record.ts";
import { changeOfLine, changesOfEvent, type Notice, type NoticeChange } from "../../../src/notify/notices.ts";
import { ChannelState } from "../../../src/notify/state.ts";
import { DELIVERED, pollFailed, pollSucceeded } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

const SERVICE = "https://transfer.example.com";
const AT = "2026-03-01T08:00:00.000Z";
const EXPECTATION = {
  sender: "*@bank.example",
  by: { zone: "UTC", days: [0], timeMs: 0 },
  withinMs: undefined,
  described: "*@bank.example by 06:00",
};

/** What is said of the mailbox, or emitted by the process, that a step names. */
const EVENTS: Readonly<Record<string, (mailbox: string) => DaemonEvent>> = {
  full: () => ({ type: "disk-failed", fault: new Fault("DISK_FULL") }),
  room: () => ({ type: "disk-recovered", pausedForMs: 1 }),
  lost: () => ({ type: "queue-lost", fault: new Fault("QUEUE_UNREACHABLE") }),
  stuck: () => ({ type: "handoffs-stuck", fault: new Fault("DISK_REFUSED") }),
  refused: (mailbox) => pollFailed({ mailbox, fault: new Fault("TOKEN_REFUSED") }),
  away: (mailbox) => pollFailed({ mailbox, fault: new Fault("SERVICE_UNREACHABLE") }),
  polled: (mailbox) => pollSucceeded({ mailbox }),
  modeless: (mailbox) => pollSucceeded({ mailbox, modeless: 3 }),
  doubtful: (mailbox) => pollSucceeded({ mailbox, doubtful: 3 }),
  overdue: (mailbox) => ({
    type: "overdue-listed",
    overdue: [{ mailbox, expectation: EXPECTATION, dueMs: 1_000 }],
  }),
  late: (mailbox) => ({ type: "arrival-late", mailbox, expectation: EXPECTATION, dueMs: 1_000 }),
  unusable: (mailbox) => ({
    type: "entries-rejected",
    mailbox,
    entries: 3,
    reasons: [new Fault("BAD_ANSWER", { detail: "no sender" })],
  }),
};

/** Steps with their mailbox or process, and after each `→` all that is sent then. */
const REPORTS = {
  "an overdue transfer, and its late arrival": "overdue → overdue; overdue →; late → overdue over",
  "unusable entries of a list, once while polls find them":
    "unusable → refused; unusable →; polled, unusable → refused",
  "no trouble that ends before its message": "full, room →",
  "a trouble once, and no end that another beginning hid":
    "full → disk; full →; room, full →; room → disk over",
  "a trouble of several processes, until the last is past it":
    "full a, full b → disk; room a →; room b → disk over",
  "a trouble of a mailbox, until any process has polled it":
    "refused m → service; polled m other → service over",
  "unknown security modes once for a service, until no mailbox has them":
    "modeless m1, modeless m2 → service; modeless m1 →; polled m1 →; polled m2 → service over",
  "transfers that may have been delivered before once for a mailbox, until an operator has decided":
    "doubtful m → refused; doubtful m →; polled m →; doubtful m → refused",
  "another cause, and not that the first one is over":
    "away → service; refused → service; polled → service over",
  "troubles of a process until it ends, and a full disk until a delivery":
    "full a, lost a, stuck a → handoff, disk, queue; ended a → handoff over, queue over; delivered → disk over",
  "no end of a full disk that is full again": "full a → disk; ended a →; full b, delivered →",
  "a quarantine, and a new one":
    "quarantined → quarantined t1; quarantined →; downloading/2, quarantined/2 → quarantined t1",
  "a quarantine, though a process with a full disk adds late to its journal what came before it":
    "quarantined, discovered, downloading → quarantined t1; downloading, quarantined →",
  "a password that is needed, and then the quarantine":
    "waiting password → password t1; waiting password →; quarantined → quarantined t1",
  "a trouble that comes back after its mailbox was not polled":
    "refused m1 → service; unpolled m1 →; refused m2 → service",
};

test.each(Object.entries(REPORTS))("reports %s", (_, script) => {
  const state = new ChannelState();
  for (const part of script.split("; ")) {
    const [steps = "", messages = ""] = part.split(/ →\s?/);
    for (const step of steps.split(", ")) act(state, step);
    expect([part, send(state).join(", ")]).toEqual([part, messages]);
  }
});

function eventOf(step: string): DaemonEvent {
  const [what = "", who = "m"] = step.split(" ");
  return (EVENTS[what] ?? expect.unreachable())(who);
}

function act(state: ChannelState, step: string): void {
  const [what = "", who = "m", process = who] = step.split(" ");
  if (what in EVENTS) happen(state, eventOf(step), process);
  else if (what === "ended") state.release(who, 1);
  else if (what === "unpolled") state.keepPolled((mailbox) => mailbox !== who);
  else change(state, "t1", what as State, who);
}

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

test("a trouble that ends or begins again while its message is being sent is reported as the message turns out", () => {
  for (const isSent of [true, false]) {
    const state = new ChannelState();
    const during = (to: "full" | "room") => {
      const notices = state.pending();
      state.report(notices);
      act(state, to);
      if (!isSent) state.takeBack(notices);
    };
    act(state, "full");
    during("room");
    expect(send(state)).toEqual(isSent ? ["disk over"] : []);
    act(state, "full");
    send(state);
    act(state, "room");
    during("full");
    expect(send(state)).toEqual(isSent ? ["disk"] : []);
    during("full");
    act(state, "room");
    expect(send(state)).toEqual(["disk over"]);
  }
});

test("a trouble is not brought back by a line that is read after its end", () => {
  const state = new ChannelState();
  const [begin, end] = ["full", "room"].map((what, at) => {
    const [change = expect.unreachable()] = changesOf(eventOf(what));
    return { ...change, process: "p", seq: at + 1 };
  }) as [NoticeChange, NoticeChange];
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

test.each(["", "{", "{}", '{"version":2}', "null"])(
  "a saved state that reads %j counts as missing",
  (text) => {
    expect(ChannelState.parse(text)).toBeUndefined();
  },
);

test.each([
  ["an act", { at: AT, act: "retry", id: "i", who: "w", from: "f" }],
  ["a damaged change", { at: AT, notice: { begin: [] } }],
  ["a transfer without a state", { at: AT, mailbox: "m", trackingId: "t", sender: "s" }],
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
        ...["full", "room", "refused m1", "away m1", "refused m2", "polled m1", "polled m2"].map(eventOf),
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

function change(state: ChannelState, trackingId: string, to: State, reason?: string): void {
  const facts = reason === "refused" ? { reason: "retry", needsPerson: true } : { reason };
  const [name, round = "1"] = to.split("/");
  apply(state, lineOf({ trackingId, state: name as State, round: Number(round), ...facts }));
}

function handoffFailed(step: "command" | "webhook", willRetry: boolean): DaemonEvent {
  const fault = new Fault("COMMAND_FAILED", { detail: step });
  return { type: "handoff-failed", delivered: DELIVERED, step, fault, attempts: 1, willRetry };
}
