import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { makeTimetable } from "../../../src/base/timetable.ts";
import { parseWindow } from "../../../src/config/times.ts";
import type { Next } from "../../../src/model/job.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { downloadTransfer } from "../../../src/transfer/download.ts";
import type { Source, TransferTools } from "../../../src/transfer/run.ts";
import { quietUntil } from "../../../src/transfer/turns.ts";
import { makeRecord } from "../../support/record.ts";

const HOUR_MS = 3_600_000;
const FAR_MS = 8.64e15;
const { signal } = new AbortController();

function timetable(window: string) {
  return makeTimetable("Europe/Berlin", parseWindow(window));
}

const quiet = timetable("mon-fri 08:00-18:00");
/** A Monday in Berlin. */
const at = (time: string) => Date.parse(`2026-03-02T${time}+01:00`);

test.each<[string, ReturnType<typeof timetable> | undefined, number, number, number | undefined]>([
  ["is postponed to the end of the quiet hours", quiet, FAR_MS, at("08:00"), at("18:00")],
  ["is postponed until their last moment", quiet, FAR_MS, at("17:59:59.999"), at("18:00")],
  ["starts before them", quiet, FAR_MS, at("07:59:59.999"), undefined],
  ["starts after them", quiet, FAR_MS, at("18:00"), undefined],
  ["starts without quiet hours", undefined, FAR_MS, at("12:00"), undefined],
  ["starts if the transfer expires during them", quiet, at("17:00"), at("12:00"), undefined],
  ["starts if it expires too soon after them", quiet, at("23:59:59"), at("12:00"), undefined],
  ["is postponed if enough time is left", quiet, at("18:00") + 6 * HOUR_MS, at("12:00"), at("18:00")],
  ["starts if quiet hours would never end", timetable("daily"), FAR_MS, at("12:00"), undefined],
])("a download %s", (_, hours, expiresMs, nowMs, until) => {
  expect(quietUntil(hours, expiresMs, nowMs)).toBe(until);
});

/** Runs the job up to the first change of state. Returns whether it got there, and the next run. */
async function turn(
  nowMs: number,
  record: Partial<TransferRecord> = {},
): Promise<{ next: Next; asked: string[] }> {
  const asked: string[] = [];
  const tools = {
    clock: { now: () => nowMs },
    patience: { retryMs: 1, diskMs: 1, lockedMs: 1, slowMs: 1_000 },
    inbox: {
      async hasRoom() {
        asked.push("room");
        return true;
      },
      forget() {},
    },
    diskTrouble: { clear() {} },
    emit() {},
    large: { giveBack() {} },
    stuck: new Set(),
    ledger: {
      find: async () => makeRecord({ expires: new Date(FAR_MS).toISOString(), ...record }),
      noteChange: ({ state, reason, until }: TransferRecord) => {
        if (state === "waiting") return void asked.push(`waiting: ${reason}, ${until}`);
        asked.push("begin");
        throw new Fault("STOPPED");
      },
      nameOf: () => "k",
      place: async () => void asked.push("place"),
    },
  } as unknown as TransferTools;
  const stateOf = async () => {
    asked.push("state");
    throw new Fault("STOPPED");
  };
  const mailbox = { name: "m", quiet };
  const source = { mailbox, stateOf, service: {} } as unknown as Source;
  return { next: await downloadTransfer(tools, source, { mailbox: "m", trackingId: "t1" }, signal), asked };
}

const EXPIRING = { expires: new Date(at("17:00")).toISOString() };

describe("downloading in quiet hours", () => {
  test("records until when a transfer waits again if the configured hours have changed since", async () => {
    const record = { state: "waiting", reason: "quiet", until: new Date(at("20:00")).toISOString() } as const;
    const until = new Date(at("18:00")).toISOString();
    // The clock may be set meanwhile, so it is looked at again.
    const next = { kind: "again", afterMs: HOUR_MS / 6 };
    expect(await turn(at("12:00"), record)).toEqual({ next, asked: [`waiting: quiet, ${until}`] });
  });

  test.each<[string, Partial<TransferRecord>, string[]]>([
    ["finishes a decided delivery", { state: "delivered" }, ["place"]],
    ["asks the service about a transfer that vanished", { vanished: true }, ["state"]],
    ["downloads a transfer that an operator wants now", { wanted: true }, ["room", "begin"]],
    ["downloads a transfer that expires before they end", EXPIRING, ["room", "begin"]],
  ])("%s", async (_, record, asked) => {
    expect((await turn(at("12:00"), record)).asked).toEqual(asked);
  });

  test("works as usual when they are over, whatever the record says of their end", async () => {
    expect((await turn(at("18:00"))).asked).toEqual(["room", "begin"]);
    const later = new Date(at("20:00")).toISOString();
    const quietLonger = { state: "waiting", reason: "quiet", until: later } as const;
    expect((await turn(at("18:00"), quietLonger)).asked).toEqual(["room", "begin"]);
  });
});
