/** What a process remembers of a mailbox: from one poll to the next, and in lookups of single transfers. */
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";
import { Secret } from "../../../src/base/secret.ts";
import { KnownTransfers } from "../../../src/mailbox/known-transfers.ts";
import { pollMailbox } from "../../../src/mailbox/poll.ts";
import { MailboxState, type PollTools } from "../../../src/mailbox/state.ts";
import type { Tokens } from "../../../src/mailbox/tokens.ts";
import { listenTo } from "../../../src/model/events.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import type { ListedTransfer, TransferState } from "../../../src/model/transfer.ts";
import type { Rejected, ServicePort, VerifiedAddress } from "../../../src/service/port.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { MAILBOX, mailboxSettings } from "../../support/settings.ts";

test("what is settled is looked for once, as long as it is listed, and a poll that breaks off forgets nothing", async () => {
  const { poll, looked, counted } = setUp();
  await poll(["a", "b"]);
  await poll(["a"], () => {
    throw new Fault("SERVER_FAULT");
  });
  await poll(["a", "b"]);
  expect(looked).toEqual(["a", "b"]);
  await poll(["b"]);
  await poll(["a", "b"]);
  expect(looked).toEqual(["a", "b", "a"]);
  expect(counted).toEqual([2, 2, 1, 2]);
});

test("I8 bounded: what an operator sends back to the start during a poll is looked for at the next one, and not remembered as open", async () => {
  const { poll, looked, state } = setUp();
  await poll(["a", "b"]);
  await poll(["a", "b"], () => state.transfers.noteOpen("a"));
  await poll(["a", "b"]);
  expect(looked).toEqual(["a", "b", "a"]);
  expect([...state.transfers.open]).toEqual([]);
});

test("I8 bounded: links are kept for open transfers whose link carries a password, and for no others", async () => {
  const { poll, state, notes } = setUp({ isNew: true });
  notes.set("done", makeRecord({ trackingId: "done", state: "delivered" }));
  await poll(["open?password=x", "bare", "done"]);
  const kept = ["open?password=x", "bare", "done"].filter(
    (id) => state.transfers.open.get(id)?.link !== undefined,
  );
  expect(kept).toEqual(["open?password=x"]);
});

test("I8 bounded: a poll takes up a thousand new transfers, says how many are left, and later polls take up those", async () => {
  const { poll, notes, failures, counted } = setUp({ isNew: true });
  const ids = idsUpTo(2_500);
  expect([(await poll(ids)).isGood, notes.size]).toEqual([false, 1_000]);
  expect([(await poll(ids)).isGood, notes.size]).toEqual([false, 2_000]);
  expect([(await poll(ids)).isGood, notes.size]).toEqual([true, 2_500]);
  expect(failures).toEqual(["left for later polls: 1500", "left for later polls: 500"]);
  expect(counted).toEqual([2_500]);
});

test("I8 bounded: a mailbox has ten thousand open transfers, and takes up others as these end", async () => {
  const { poll, notes, failures } = setUp({ isNew: true });
  const ids = idsUpTo(10_003);
  for (let round = 0; round < 11; round++) await poll(ids);
  expect([notes.size, failures.at(-1)]).toEqual([10_000, "left for later polls: 3"]);
  for (const trackingId of ["t0", "t1"])
    notes.set(trackingId, makeRecord({ trackingId, state: "delivered" }));
  await poll(ids);
  expect([notes.size, failures.at(-1)]).toEqual([10_002, "left for later polls: 1"]);
  await poll(ids.slice(2));
  expect(notes.size).toBe(10_002);
  notes.set("t2", makeRecord({ trackingId: "t2", state: "delivered" }));
  expect([(await poll(ids)).isGood, notes.size]).toEqual([true, 10_003]);
});

test("I8 bounded: rejected entries are one report per poll, and none while polls find the same", async () => {
  const { poll, rejected, state, reject } = setUp();
  const bad = (count: number) => () => {
    for (let at = 0; at < count; at++)
      reject({ fault: new Fault("BAD_ANSWER", { detail: `entry ${at}` }), trackingId: `${at}` });
  };
  await poll(["a"], bad(5_000));
  await poll(["a"], bad(5_000));
  expect(rejected).toEqual([{ entries: 5_000, reasons: ["entry 0", "entry 1"] }]);
  expect(state.health.unusable).toBe(5_000);
  await poll(["a"], bad(4_000));
  await poll(["a"], () => {
    throw new Fault("SERVER_FAULT");
  });
  await poll(["a"], bad(4_000));
  expect(rejected.map(({ entries }) => entries)).toEqual([5_000, 4_000]);
  await poll(["a"]);
  expect(state.health.unusable).toBe(0);
  await poll(["a"], bad(4_000));
  expect(rejected.map(({ entries }) => entries)).toEqual([5_000, 4_000, 4_000]);
});

/** A mailbox in which all that is listed was delivered before, or is new. */
function setUp({ isNew = false } = {}) {
  const clock = { now: () => 0 };
  const looked: string[] = [];
  const counted: number[] = [];
  let listed: readonly string[] = [];
  let atTheEnd = (): unknown => undefined;
  let reject: (entry: Rejected) => void = () => {};
  const notes = new Map<string, TransferRecord>();
  const failures: string[] = [];
  const rejected: { entries: number; reasons: (string | undefined)[] }[] = [];
  const service = {
    async *listReceived(...[, , onRejected, , isKnown]: Parameters<ServicePort["listReceived"]>) {
      reject = onRejected;
      const others = listed.filter((trackingId) => !isKnown?.(trackingId));
      if (others.length > 0) yield others.map(entryOf);
      atTheEnd();
    },
  } as unknown as ServicePort;
  const tools = {
    atOnce: () => 1,
    deadline: { stallMs: 60_000, totalMs: 60_000 },
    clock,
    diskTrouble: new Outage(clock, { began: () => {}, ended: () => {} }),
    ledger: {
      async find({ trackingId }: { readonly trackingId: string }) {
        looked.push(trackingId);
        return isNew ? notes.get(trackingId) : makeRecord({ trackingId, state: "delivered" });
      },
      async discover(record: TransferRecord) {
        notes.set(record.trackingId, record);
        return true;
      },
      services: { has: async () => true, add: async () => true },
      nameOf: ({ trackingId }: { readonly trackingId: string }) => trackingId,
      note: () => {},
      flush: async () => {},
      starts: { doubtAbout: async () => undefined },
    },
    inbox: { hasDelivery: async () => false },
    queue: { add: async () => {}, runNow: async () => {} },
    emit: listenTo({
      "poll-succeeded": ({ listed: count }) => counted.push(count),
      "poll-failed": ({ fault }) => failures.push(fault.message.split(": ").slice(1).join(": ")),
      "entries-rejected": ({ entries, reasons }) =>
        rejected.push({ entries, reasons: reasons.map(({ message }) => message.split(": ")[1]) }),
    }),
  } as unknown as PollTools;
  const state = stateWith(service);
  const poll = (ids: readonly string[], end = () => undefined as unknown) => {
    listed = ids;
    atTheEnd = end;
    return pollMailbox(tools, state, SIGNAL);
  };
  return {
    poll,
    looked,
    counted,
    state,
    notes,
    failures,
    rejected,
    reject: (entry: Rejected) => reject(entry),
  };
}

function idsUpTo(count: number): string[] {
  return Array.from({ length: count }, (_, at) => `t${at}`);
}

function entryOf(trackingId: string): ListedTransfer {
  return {
    trackingId,
    state: "unknown",
    sender: undefined,
    recipients: [
      { mail: MAILBOX, transferId: "id", downloadUrl: new Secret(`https://x/download/${trackingId}`) },
    ],
    addressees: {},
    removed: [],
    expires: undefined,
    passwordMode: undefined,
    securityMode: { is: "given", value: "ONE_TIME_PASSWORD" },
    message: { is: "unknown" },
  };
}

const SETTINGS = mailboxSettings({ url: "http://127.0.0.1", clientId: "" });

function stateWith(service: ServicePort): MailboxState {
  const address = { email: MAILBOX, token: new Secret("token") };
  const use = (work: (verified: VerifiedAddress) => unknown) => work(address);
  return new MailboxState(SETTINGS, service, { use } as unknown as Tokens);
}

test("known transfers: an order for a settled transfer keeps what the listing said of it, and a warning is due once more", () => {
  const known = new KnownTransfers();
  known.startListing();
  known.noteOpen("a");
  expect([known.warnOnce("a"), known.warnOnce("a"), known.warnOnce("b")]).toEqual([true, false, false]);
  known.settle("a");
  known.noteOpen("a");
  expect([known.isListed("a"), known.open.has("a"), known.warnOnce("a")]).toEqual([true, true, true]);
  known.startListing();
  expect(known.isListed("a")).toBe(false);
});

test("known transfers: a password is looked for once, and again for another supply or other settings", () => {
  const known = new KnownTransfers();
  known.noteOpen("a");
  const attempts = [undefined, undefined, "x", "x", undefined, "x"];
  expect(attempts.map((supplied) => known.claimPasswordSearch("a", SETTINGS, supplied))).toEqual([
    true,
    false,
    true,
    false,
    false,
    true,
  ]);
  expect(known.claimPasswordSearch("a", { ...SETTINGS }, "x")).toBe(true);
});

test("the state of a transfer costs one reading of the list for all that vanished, also of those that it does not have", async () => {
  const { ask, listings } = openList({ a: "deleted_by_revocation", b: "active" });
  const vanished = ["a", "b", "gone"].map((trackingId) => ask({ trackingId, vanished: true }));
  expect(await Promise.all(vanished)).toEqual(["deleted_by_revocation", "active", undefined]);
  expect(await ask({ trackingId: "also gone", vanished: true })).toBeUndefined();
  expect(listings()).toBe(1);
});

test("the state of a transfer is looked up anew for one that did not vanish and is not in what was read before", async () => {
  const { ask, listings, states } = openList({ a: "deleted_by_revocation" });
  await ask({ trackingId: "a", vanished: true });
  states.set("new", "active");
  expect(await ask({ trackingId: "new" })).toBe("active");
  expect(await ask({ trackingId: "a" })).toBe("deleted_by_revocation");
  expect(listings()).toBe(2);
});

test("the state of a transfer is looked up again after a failure, and by another job where the one that asked was stopped", async () => {
  const { ask, listings, failWith } = openList({ a: "deleted_by_admin" });
  failWith(new Fault("SERVER_FAULT"));
  await expect(ask({ trackingId: "a", vanished: true })).rejects.toMatchObject({ code: "SERVER_FAULT" });
  failWith(new Fault("STOPPED"));
  const stopped = ask({ trackingId: "a", vanished: true }, AbortSignal.abort());
  const other = ask({ trackingId: "a", vanished: true });
  await expect(stopped).rejects.toMatchObject({ code: "STOPPED" });
  expect(await other).toBe("deleted_by_admin");
  expect(listings()).toBe(3);
});

function openList(listed: Readonly<Record<string, TransferState>>) {
  const states = new Map(Object.entries(listed));
  let count = 0;
  let failure: Fault | undefined;
  const service = {
    async *listReceived() {
      count++;
      const thrown = failure;
      failure = undefined;
      if (thrown !== undefined) throw thrown;
      yield [...states].map(([trackingId, state]) => ({ trackingId, state }));
    },
  } as unknown as ServicePort;
  const state = stateWith(service);
  return {
    ask: (record: { trackingId: string; vanished?: boolean }, signal: AbortSignal = SIGNAL) =>
      state.stateOf(record, signal),
    listings: () => count,
    states,
    failWith: (fault: Fault) => {
      failure = fault;
    },
  };
}
