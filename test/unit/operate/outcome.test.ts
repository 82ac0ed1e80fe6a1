/** The outcome of an operator's order, for every way in which a transfer may go on. */
import { describe, expect, test } from "vitest";
import type { Action } from "../../../src/model/order.ts";
import { nextRound, type TransferRecord, withState } from "../../../src/model/record.ts";
import { awaitOutcome, type Outcome } from "../../../src/operate/outcome.ts";
import { makeRecord } from "../../support/record.ts";

const NEVER = new AbortController().signal;
const ENDED = AbortSignal.abort();
const AT = Date.parse("2026-03-01T09:00:00.000Z");

const waits = makeRecord({
  state: "waiting",
  reason: "password",
  message: "No password is known.",
  attempts: 1,
  at: { waiting: "2026-03-01T08:00:00.000Z" },
});
const wanted = { ...waits, wanted: true };
const quarantined = makeRecord({ state: "quarantined", reason: "SIZE_MISMATCH", message: "Too few bytes." });
const delivered = makeRecord({ state: "delivered", folder: "m/t1" });
const goneRecord = makeRecord({
  state: "gone",
  reason: "deleted_by_expiration",
  message: "It expired.",
});
const loading = withState(waits, "downloading", AT, { attempts: 2 });
const again = (record: TransferRecord) => nextRound(record, { wanted: true });
const atWork = (record: TransferRecord) => withState(again(record), "downloading", AT, { attempts: 1 });
const end = (record: TransferRecord, state: TransferRecord["state"], facts: Partial<TransferRecord> = {}) =>
  withState(record, state, AT + 1_000, facts);
const locked = { reason: "locked", message: "It is locked.", code: "TRANSFER_LOCKED" };
const away = { reason: "retry", message: "The service could not be reached.", code: "SERVICE_UNREACHABLE" };
const odd = { reason: "retry", message: "The answer is odd.", code: "BAD_ANSWER" };

type Act = Action | "password";
type Row = readonly [
  what: string,
  action: Act,
  before: TransferRecord,
  then: readonly (TransferRecord | undefined)[],
  result: Outcome["result"],
  text: string,
];

const ROWS: readonly Row[] = [
  [
    "a password opens the transfer",
    "password",
    waits,
    [waits, wanted, loading, end(loading, "delivering"), end(loading, "delivered", { folder: "m/t1" })],
    "fine",
    "t1 was delivered to m/t1.",
  ],
  [
    "a password is refused",
    "password",
    waits,
    [waits, wanted, loading, end(loading, "waiting", { reason: "password", message: "One was refused." })],
    "attention",
    "t1: needs a password. One was refused.",
  ],
  [
    "a password opens a transfer that is not as announced",
    "password",
    waits,
    [wanted, loading, end(loading, "quarantined", { reason: "SIZE_MISMATCH", message: "Too few bytes." })],
    "attention",
    "t1: in quarantine. Too few bytes.",
  ],
  [
    "a lock leaves the verdict on a password open",
    "password",
    waits,
    [wanted, loading, end(loading, "waiting", locked)],
    "attention",
    "t1: locked by the service. It is locked.",
  ],
  [
    "a retry has no password to try",
    "retry",
    waits,
    [wanted, waits],
    "attention",
    "t1: needs a password. No password is known.",
  ],
  [
    "a retry fails because the service is away",
    "retry",
    waits,
    [wanted, loading, end(loading, "waiting", away)],
    "pending",
    "t1: failed, will be retried. The service could not be reached.",
  ],
  [
    "a retry fails in another way",
    "retry",
    waits,
    [wanted, loading, end(loading, "waiting", odd)],
    "pending",
    "t1: failed, will be retried. The answer is odd.",
  ],
  [
    "a failure of the service has lasted for long",
    "retry",
    waits,
    [wanted, loading, end(loading, "waiting", { ...away, needsPerson: true })],
    "attention",
    "t1: failed, will be retried. The service could not be reached.",
  ],
  [
    "a retry ends in quiet hours",
    "retry",
    waits,
    [wanted, loading, end(loading, "waiting", { reason: "quiet", until: "2026-03-01T18:00:00.000Z" })],
    "attention",
    "t1: waits for the end of quiet hours, until 2026-03-01T18:00:00.000Z.",
  ],
  [
    "the disk is full",
    "retry",
    waits,
    [wanted, loading, end(loading, "waiting", { reason: "disk", message: "No space is left." })],
    "attention",
    "t1: waits for free disk space. No space is left.",
  ],
  [
    "a retry finds a download that runs, and it fails",
    "retry",
    loading,
    [loading, end(loading, "waiting", odd)],
    "pending",
    "t1: failed, will be retried. The answer is odd.",
  ],
  [
    "a retry finds a queued transfer",
    "retry",
    makeRecord(),
    [{ ...makeRecord(), wanted: true }, atWork(makeRecord()), end(delivered, "picked-up", { round: 2 })],
    "fine",
    "t1 was delivered to m/t1, and picked up.",
  ],
  [
    "a transfer expires while it is retried",
    "retry",
    waits,
    [wanted, loading, end(loading, "gone", { reason: "x", message: "It expired." })],
    "attention",
    "t1: gone before it was delivered. It expired.",
  ],
  [
    "another operator discards it meanwhile",
    "retry",
    waits,
    [wanted, loading, end(loading, "gone", { reason: "discarded" })],
    "attention",
    "t1 was discarded.",
  ],
  [
    "another worker has ended the round",
    "retry",
    waits,
    [wanted, { ...delivered, attempts: 1 }],
    "fine",
    "t1 was delivered to m/t1.",
  ],
  [
    "a retry of a quarantined transfer succeeds",
    "retry",
    quarantined,
    [again(quarantined), atWork(quarantined), end(atWork(quarantined), "delivered", { folder: "m/t1" })],
    "fine",
    "t1 was delivered to m/t1.",
  ],
  [
    "a retry of a quarantined transfer fails verification again",
    "retry",
    quarantined,
    [again(quarantined), atWork(quarantined), { ...quarantined, round: 2 }],
    "attention",
    "t1: in quarantine. Too few bytes.",
  ],
  [
    "a release delivers",
    "release",
    quarantined,
    [
      again(quarantined),
      end(atWork(quarantined), "delivered", {
        folder: "m/t1",
        released: { by: "anna", at: "", reason: "", message: "" },
      }),
    ],
    "fine",
    "t1 was delivered on your responsibility to m/t1.",
  ],
  [
    "a release needs files that need a password",
    "release",
    quarantined,
    [again(quarantined), atWork(quarantined), end(atWork(quarantined), "waiting", { reason: "password" })],
    "attention",
    "t1: needs a password.",
  ],
  [
    "a transfer is discarded",
    "discard",
    quarantined,
    [again(quarantined), end(again(quarantined), "gone", { reason: "discarded" })],
    "fine",
    "t1 was discarded.",
  ],
  [
    "a transfer that is gone is acknowledged",
    "discard",
    goneRecord,
    [{ ...goneRecord, round: 2, acknowledged: true }],
    "fine",
    "t1 is gone, and no longer shown.",
  ],
  [
    "a transfer is delivered before it can be discarded",
    "discard",
    loading,
    [delivered],
    "attention",
    "t1 was not discarded: it is delivered.",
  ],
  [
    "a transfer is delivered again",
    "redeliver",
    delivered,
    [again(delivered), atWork(delivered), end(atWork(delivered), "delivered", { folder: "m/t1-2" })],
    "fine",
    "t1 was delivered to m/t1-2.",
  ],
  [
    "the service no longer has the transfer",
    "redeliver",
    delivered,
    [delivered],
    "attention",
    "t1 was not delivered again: the service no longer has it. The earlier delivery is unchanged.",
  ],
  [
    "retention removes the records",
    "discard",
    goneRecord,
    [undefined],
    "attention",
    "t1 is no longer known here.",
  ],
];

describe("the outcome of an order", () => {
  test.each(ROWS)("where %s", async (_what, action, before, then, result, text) => {
    const outcome = await awaitOutcome(script(then), before, action, NEVER);
    expect(outcome).toMatchObject({ isSettled: true, result, text });
    expect(outcome.record).toBe(then.at(-1));
  });

  test("is not read before the order is carried out", async () => {
    let looks = 0;
    const isCarriedOut = async () => ++looks > 2;
    const outcome = await awaitOutcome(script([delivered]), delivered, "redeliver", NEVER, {
      isCarriedOut,
    });
    expect([outcome.result, looks]).toEqual(["attention", 3]);
  });

  test("is pending where the wait ends first, and says how far it is", async () => {
    const cases = [
      [loading, true, "t1 is still being downloaded: inlet show t1 shows how it ends."],
      [again(quarantined), true, "t1 is still queued: inlet show t1 shows how it ends."],
      [wanted, true, "t1 has not been tried yet: inlet show t1 shows how it ends."],
      [waits, false, "The daemon has not carried out the order for t1 yet. The order is kept."],
    ] as const;
    for (const [now, isCarriedOut, text] of cases) {
      const watching = { isCarriedOut: async () => isCarriedOut };
      const outcome = await awaitOutcome(script([now]), waits, "retry", ENDED, watching);
      expect(outcome).toMatchObject({ isSettled: false, result: "pending", text });
    }
  });

  test("of a paused mailbox is that nothing is tried", async () => {
    const outcome = await awaitOutcome(script([wanted]), waits, "retry", NEVER, { isPaused: true });
    expect(outcome).toMatchObject({
      result: "attention",
      text: "t1 is not tried: its mailbox m is paused. It is tried when the mailbox is resumed.",
    });
  });

  test("of a hand-off is that of its steps", async () => {
    const step = { step: "command", state: "pending", attempts: 0 } as const;
    const failed = { ...step, attempts: 1, error: "The hand-off command failed: exit code 1" };
    const given = { ...failed, step: "webhook", state: "failed", error: "It said no." } as const;
    const outcomeOf = (...seen: readonly (readonly object[])[]) => {
      const steps = script(seen) as unknown as () => Promise<[]>;
      return awaitOutcome(script([delivered]), delivered, "retry", NEVER, { steps });
    };
    expect(await outcomeOf([step], [failed, given])).toMatchObject({
      result: "attention",
      text: "t1 was not handed over. The hand-off command failed: exit code 1. The daemon retries it. It said no.",
    });
    expect(await outcomeOf([step], [])).toMatchObject({ result: "fine", text: "t1 was handed over." });
  });
});

/** Returns each value once, and the last one for ever. */
function script<Value>(values: readonly Value[]): () => Promise<Value> {
  let at = 0;
  return async () => values[Math.min(at++, values.length - 1)] as Value;
}
