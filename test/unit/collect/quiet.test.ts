import { describe, expect, test } from "vitest";
import { makeTimetable } from "../../../src/base/timetable.ts";
import { collectTransfer } from "../../../src/collect/collect.ts";
import { quietForMs } from "../../../src/collect/quiet.ts";
import type { CollectTools, Source } from "../../../src/collect/tools.ts";
import { parseWindow } from "../../../src/config/weekly.ts";
import type { CollectJob, Next } from "../../../src/model/job.ts";
import type { Receipt } from "../../../src/model/receipt.ts";
import { makeReceipt } from "../../support/receipt.ts";

const HOUR_MS = 3_600_000;
const FAR_MS = 8.64e15;
const { signal } = new AbortController();

function timetable(window: string) {
  const parsed = parseWindow(window);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return makeTimetable("Europe/Berlin", parsed.value);
}

const quiet = timetable("mon-fri 08:00-18:00");
/** A Monday in Berlin. */
const at = (time: string) => Date.parse(`2026-03-02T${time}+01:00`);

describe("a download", () => {
  test("is put off until the quiet hours end", () => {
    expect(quietForMs(quiet, FAR_MS, at("08:00"))).toBe(10 * HOUR_MS);
    expect(quietForMs(quiet, FAR_MS, at("17:59:59.999"))).toBe(1);
  });

  test("begins at any other time, and where there are no quiet hours", () => {
    expect(quietForMs(quiet, FAR_MS, at("07:59:59.999"))).toBeUndefined();
    expect(quietForMs(quiet, FAR_MS, at("18:00"))).toBeUndefined();
    expect(quietForMs(undefined, FAR_MS, at("12:00"))).toBeUndefined();
  });

  test("begins in quiet hours where the transfer would not live long enough after them", () => {
    expect(quietForMs(quiet, at("17:00"), at("12:00"))).toBeUndefined();
    expect(quietForMs(quiet, at("23:59:59"), at("12:00"))).toBeUndefined();
    expect(quietForMs(quiet, at("18:00") + 6 * HOUR_MS, at("12:00"))).toBe(6 * HOUR_MS);
  });

  test("begins where quiet hours would never end", () => {
    expect(quietForMs(timetable("daily"), FAR_MS, at("12:00"))).toBeUndefined();
  });
});

/** Everything up to the claim: whether it came to that, and when to come again. */
async function turn(
  nowMs: number,
  receipt: Partial<Receipt> = {},
  job: Partial<CollectJob> = {},
): Promise<{ next: Next; asked: string[] }> {
  const asked: string[] = [];
  const tools = {
    clock: { now: () => nowMs },
    patience: { retryMs: 1, diskMs: 1, lockedMs: 1 },
    inbox: {
      async hasRoom() {
        asked.push("room");
        return true;
      },
    },
    receipts: {
      find: async () => makeReceipt(receipt),
      async claim() {
        asked.push("claim");
        return undefined;
      },
      put: () => asked.push("put"),
      folderName: () => "k",
    },
  } as unknown as CollectTools;
  const source = { mailbox: { name: "m", quiet }, health: { shaky: false } } as unknown as Source;
  const whole = {
    key: "k",
    mailbox: "m",
    trackingId: "t1",
    expiresMs: FAR_MS,
    occasion: "listed",
    ...job,
  } as const;
  return { next: await collectTransfer(tools, source, whole, signal), asked };
}

describe("collecting in quiet hours", () => {
  test.each(["discovered", "collecting", "waiting"] as const)(
    "puts the job of a %s transfer off, and leaves its receipt as it is",
    async (state) => {
      const { next, asked } = await turn(at("12:00"), { state });
      expect(next).toEqual({ kind: "again", afterMs: 6 * HOUR_MS });
      expect(asked).toEqual([]);
    },
  );

  test("finishes a delivery that was begun", async () => {
    expect((await turn(at("12:00"), { state: "delivering" })).asked).toEqual(["claim"]);
  });

  test("asks what became of a transfer that vanished", async () => {
    expect((await turn(at("12:00"), {}, { occasion: "vanished" })).asked).toEqual(["claim"]);
  });

  test("takes what a person wants now", async () => {
    expect((await turn(at("12:00"), {}, { occasion: "wanted" })).asked).toEqual(["room", "claim"]);
  });

  test("takes what expires before they end", async () => {
    expect((await turn(at("12:00"), {}, { expiresMs: at("17:00") })).asked).toEqual(["room", "claim"]);
  });

  test("is done as ever when they are over", async () => {
    expect((await turn(at("18:00"))).asked).toEqual(["room", "claim"]);
  });
});
