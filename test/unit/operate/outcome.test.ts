/** The outcome of an operator's order, for every way in which a transfer may go on. */
import { describe, expect, test } from "vitest";
import type { TransferAct } from "../../../src/model/order.ts";
import { nextRound, type TransferRecord, withState } from "../../../src/model/record.ts";
import { awaitOutcome } from "../../../src/operate/outcome.ts";
import { makeRecord } from "../../support/record.ts";

const NEVER = { signal: new AbortController().signal };
const ENDED = { signal: AbortSignal.abort() };
const AT = Date.parse("2026-03-01T09:00:00.000Z");

const at = { waiting: "2026-03-01T08:00:00.000Z" };
const lacks = { reason: "password", message: "No password is known." };
const waits = makeRecord({ state: "waiting", ...lacks, attempts: 1, at });
const wanted = { ...waits, wanted: true };
const wrong = { reason: "SIZE_MISMATCH", message: "Too few bytes." };
const quarantined = makeRecord({ state: "quarantined", ...wrong });
const inFolder = { folder: "m/t1" };
const delivered = makeRecord({ state: "delivered", ...inFolder });
const expired = { reason: "deleted_by_expiration", message: "It expired." };
const goneRecord = makeRecord({ state: "gone", ...expired });
const loading = withState(waits, "downloading", AT, { attempts: 2 });
const again = (record: TransferRecord) => nextRound(record, { wanted: true });
const atWork = (record: TransferRecord) => withState(again(record), "downloading", AT, { attempts: 1 });
const end = (record: TransferRecord, state: TransferRecord["state"], facts: Partial<TransferRecord> = {}) =>
  withState(record, state, AT + 1_000, facts);
const locked = { reason: "locked", message: "It is locked.", code: "TRANSFER_LOCKED" };
const away = { reason: "retry", message: "The service could not be reached.", code: "SERVICE_UNREACHABLE" };
const odd = { reason: "retry", message: "It is odd.", code: "BAD_ANSWER" };
const evening = { reason: "quiet", until: "2026-03-01T18:00:00.000Z" };
const full = { reason: "disk", message: "No space is left." };
const UNREACHABLE = "t1: failed, will be retried. The service could not be reached.";
const UNCHANGED =
  "t1 was not delivered again: the service no longer has it. The earlier delivery is unchanged.";
const released = { by: "anna", at: "", reason: "", message: "" };

const onTrust = { ...inFolder, released };

/** The transfer when the order is given and at each look. */
type Path = readonly [before: TransferRecord, ...then: (TransferRecord | undefined)[]];
type Row = readonly [outcome: string, path: Path];

/** A waiting transfer is tried, and ends so. */
const tried = (...as: [TransferRecord["state"], Partial<TransferRecord>?]): Path => [
  waits,
  wanted,
  loading,
  end(loading, ...as),
];
const redone = (before: TransferRecord, ...as: [TransferRecord["state"], Partial<TransferRecord>?]): Path => [
  before,
  again(before),
  atWork(before),
  end(atWork(before), ...as),
];
const refusedAgain: Path = [waits, ...tried("waiting", { reason: "password", message: "One was refused." })];
const found: Path = [
  makeRecord(),
  { ...makeRecord(), wanted: true },
  end(delivered, "picked-up", { round: 2 }),
];
const dropped: Path = [
  quarantined,
  again(quarantined),
  end(again(quarantined), "gone", { reason: "discarded" }),
];

/** By order: the result with its text, and how the transfer goes on. */
const ROWS: Partial<Record<TransferAct, readonly Row[]>> = {
  password: [
    ["fine: t1 was delivered to m/t1.", tried("delivered", inFolder)],
    ["attention: t1: needs a password. One was refused.", refusedAgain],
    ["attention: t1: in quarantine. Too few bytes.", tried("quarantined", wrong)],
    // A lock leaves the verdict open.
    ["attention: t1: locked by the service. It is locked.", tried("waiting", locked)],
  ],
  retry: [
    ["attention: t1: needs a password. No password is known.", [waits, wanted, waits]],
    [`pending: ${UNREACHABLE}`, tried("waiting", away)],
    // For long.
    [`attention: ${UNREACHABLE}`, tried("waiting", { ...away, needsPerson: true })],
    [`attention: t1: waits for the end of quiet hours, until ${evening.until}.`, tried("waiting", evening)],
    ["attention: t1: waits for free disk space. No space is left.", tried("waiting", full)],
    ["pending: t1: failed, will be retried. It is odd.", [loading, loading, end(loading, "waiting", odd)]],
    ["fine: t1 was delivered to m/t1, and picked up.", found],
    ["attention: t1: gone before it was delivered. It expired.", tried("gone", expired)],
    ["attention: t1 was discarded.", tried("gone", { reason: "discarded" })],
    // Another worker ends the round.
    ["fine: t1 was delivered to m/t1.", [waits, wanted, { ...delivered, attempts: 1 }]],
    ["fine: t1 was delivered to m/t1.", redone(quarantined, "delivered", inFolder)],
    ["attention: t1: in quarantine. Too few bytes.", redone(quarantined, "quarantined", wrong)],
  ],
  release: [
    ["fine: t1 was delivered on your responsibility to m/t1.", redone(quarantined, "delivered", onTrust)],
    ["attention: t1: needs a password.", redone(quarantined, "waiting", { reason: "password" })],
  ],
  discard: [
    ["fine: t1 was discarded.", dropped],
    ["fine: t1 is gone, and no longer shown.", [goneRecord, { ...goneRecord, round: 2, acknowledged: true }]],
    ["attention: t1 was not discarded: it is delivered.", [loading, delivered]],
    // Retention removes the records.
    ["attention: t1 is no longer known here.", [goneRecord, undefined]],
  ],
  redeliver: [
    ["fine: t1 was delivered to m/t1-2.", redone(delivered, "delivered", { folder: "m/t1-2" })],
    // The service no longer has it.
    [`attention: ${UNCHANGED}`, [delivered, delivered]],
  ],
  grant: [["fine: One more password attempt is allowed.", [waits, waits]]],
};

describe("the outcome of an order", () => {
  const rows = Object.entries(ROWS).flatMap(([act, each]) =>
    each.map((row) => [act as TransferAct, ...row] as const),
  );

  test.each(rows)("of %s: %s", async (act, outcome, [before, ...then]) => {
    const { record, isSettled, result, text } = await awaitOutcome(before, act, NEVER, {
      find: script(then),
    });
    expect([`${result}: ${text}`, isSettled]).toEqual([outcome, true]);
    expect(record).toBe(then.at(-1));
  });

  test("is pending if no daemon carries out the order in time", async () => {
    const watched = { find: script([waits]), isCarriedOut: async () => false };
    const outcome = await awaitOutcome(waits, "retry", { ...NEVER, carriedOutMs: 150 }, watched);
    expect(outcome).toMatchObject({ isSettled: false, result: "pending" });
  });

  test("is not read before the order is carried out", async () => {
    let looks = 0;
    const isCarriedOut = async () => ++looks > 2;
    const outcome = await awaitOutcome(delivered, "redeliver", NEVER, {
      find: script([delivered]),
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
      const watched = { find: script([now]), isCarriedOut: async () => isCarriedOut };
      const outcome = await awaitOutcome(waits, "retry", ENDED, watched);
      expect(outcome).toMatchObject({ isSettled: false, result: "pending", text });
    }
  });

  test("of a paused mailbox is that nothing is tried", async () => {
    const outcome = await awaitOutcome(waits, "retry", NEVER, { find: script([wanted]), isPaused: true });
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
      return awaitOutcome(delivered, "retry", NEVER, { find: script([delivered]), steps });
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
