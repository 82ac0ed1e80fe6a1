import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { openExpected } from "../../../src/mailbox/expected.ts";
import { listenTo } from "../../../src/model/events.ts";
import type { Expectation, Mailbox } from "../../../src/model/mailbox.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { whileUnread } from "../../support/unread.ts";

const HOUR_MS = 3_600_000;

let folder = "";
beforeEach(async () => {
  folder = await makeFolder();
});

const bank: Expectation = {
  sender: "*@bank.example",
  by: { zone: "UTC", days: [0, 1, 2, 3, 4], timeMs: 6 * HOUR_MS },
  withinMs: undefined,
  described: "*@bank.example by 06:00 mon-fri",
};

/** March 2026; Monday is the 2nd. */
const on = (day: number, time: string) => Date.parse(`2026-03-${String(day).padStart(2, "0")}T${time}:00Z`);

interface Life {
  readonly rules?: readonly Expectation[];
  /** Records that are not final when it starts. */
  readonly open?: readonly TransferRecord[];
}

/** Its clock is at the time of the last call. `told`: its reports. `shown`: how many were overdue, as the status heard last. */
async function start(startMs: number, { rules = [bank], open = [] }: Life = {}) {
  const told: string[] = [];
  let shown: number | undefined;
  let nowMs = startMs;
  const at = (ms: number) => new Date(ms).toISOString().slice(8, 16);
  const expected = await openExpected(
    {
      folder,
      clock: { now: () => nowMs },
      ledger: {
        async *open() {
          yield* open;
        },
      },
      emit: listenTo({
        "overdue-listed": ({ overdue }) => {
          shown = overdue.length;
        },
        "arrival-missed": ({ mailbox, expectation, dueMs }) =>
          void told.push(`${mailbox}: ${expectation.described} missed ${at(dueMs)}`),
        "arrival-late": ({ mailbox, expectation, dueMs }) =>
          void told.push(`${mailbox}: ${expectation.described} arrived for ${at(dueMs)}`),
      }),
    },
    [{ name: "m", expect: rules } as unknown as Mailbox, { name: "other" } as Mailbox],
  );
  onTestFinished(() => expected.close());
  return {
    expected,
    told,
    shown: () => shown,
    discovered(record: TransferRecord) {
      nowMs = Date.parse(record.at.discovered ?? "");
      expected.listener({ type: "transfer-discovered", record });
    },
    check(mailbox: string, polledMs: number) {
      nowMs = polledMs;
      return expected.check(mailbox, polledMs);
    },
  };
}

function arrival(ms: number, sender = "Anna@Bank.example", mailbox = "m"): TransferRecord {
  return makeRecord({ mailbox, sender, at: { discovered: new Date(ms).toISOString() } });
}

const MISSED = "m: *@bank.example by 06:00 mon-fri missed 03T06:00";
const ARRIVED = "m: *@bank.example by 06:00 mon-fri arrived for 03T06:00";

test("an expected transfer that does not come is reported once, and once that it came", async () => {
  const { expected, check, discovered, told, shown } = await start(on(1, "12:00"));
  discovered(arrival(on(2, "05:00")));
  await check("m", on(3, "05:59"));
  expect([told, expected.overdue()]).toEqual([[], []]);
  await check("m", on(3, "06:00"));
  await check("m", on(3, "06:01"));
  expect(told).toEqual([MISSED]);
  expect(expected.overdue()).toEqual([{ mailbox: "m", expectation: bank, dueMs: on(3, "06:00") }]);
  expect(shown()).toBe(1);
  discovered(arrival(on(3, "08:00")));
  await check("m", on(3, "08:00"));
  await check("m", on(3, "08:01"));
  expect(told).toEqual([MISSED, ARRIVED]);
  expect([expected.overdue(), shown()]).toEqual([[], 0]);
});

test("an expected transfer is one of the sender, to the mailbox, and not overdue once a reload does not expect it", async () => {
  const { expected, check, discovered, told, shown } = await start(on(1, "12:00"));
  discovered(arrival(on(3, "05:00"), "bank.example@evil.example"));
  discovered(arrival(on(3, "05:00"), "anna@bank.example", "other"));
  await check("other", on(3, "06:00"));
  await check("m", on(3, "06:00"));
  expect([told, shown()]).toEqual([[MISSED], 1]);
  const apply = await expected.prepare([]);
  await apply();
  expect(shown()).toBe(0);
});

test("a restart repeats no report, and remembers what is overdue", async () => {
  const first = await start(on(1, "12:00"));
  await first.check("m", on(3, "06:00"));
  await first.expected.close();
  const second = await start(on(3, "07:00"));
  expect(second.expected.overdue()).toHaveLength(1);
  await second.check("m", on(3, "07:00"));
  expect([first.told, second.told]).toEqual([[MISSED], []]);
  second.discovered(arrival(on(3, "08:00")));
  await second.check("m", on(3, "08:00"));
  expect(second.told).toEqual([ARRIVED]);
});

test("a restart reports nothing that came before it, nor what its first poll finds", async () => {
  const first = await start(on(1, "12:00"));
  first.discovered(arrival(on(3, "05:00")));
  await first.expected.close();
  const second = await start(on(3, "07:00"));
  await second.check("m", on(3, "07:00"));
  await second.expected.close();
  // Nobody ran on the 4th; on the 5th the first poll finds what came meanwhile, long after its deadline.
  const third = await start(on(5, "09:00"));
  third.discovered(arrival(on(5, "09:00")));
  await third.check("m", on(5, "09:00"));
  expect([second.told, third.told]).toEqual([[], []]);
});

test("a restart finds what its first poll did not find to be missing, once for all the time that nobody ran", async () => {
  await (await start(on(1, "12:00"))).expected.close();
  const { check, told } = await start(on(6, "09:00"));
  expect(told).toEqual([]);
  await check("m", on(6, "09:00"));
  expect(told).toEqual(["m: *@bank.example by 06:00 mon-fri missed 06T06:00"]);
});

test("a restart learns from ledger what a kill kept from being noted", async () => {
  await (await start(on(1, "12:00"))).expected.close();
  const { check, told } = await start(on(3, "05:30"), {
    open: [arrival(on(3, "05:00"))],
  });
  await check("m", on(3, "06:00"));
  expect(told).toEqual([]);
});

describe("a clock that was ahead", () => {
  const AHEAD_MS = 365 * 24 * HOUR_MS;

  test("for a moment, in which one was missed, keeps no later one from being reported", async () => {
    const { check, discovered, told } = await start(on(1, "12:00"));
    discovered(arrival(on(2, "05:00")));
    await check("m", on(2, "07:00") + AHEAD_MS);
    expect(told.splice(0)).toHaveLength(1);
    for (const day of [3, 4, 5]) await check("m", on(day, "07:00"));
    expect(told).toEqual(["04", "05"].map((day) => MISSED.replace("03T", `${day}T`)));
  });

  test("when one came does not have it count for all the time until then, over a restart too", async () => {
    const first = await start(on(1, "12:00"));
    first.discovered(arrival(on(2, "05:00") + AHEAD_MS));
    await first.expected.close();
    const { expected, check, told } = await start(on(2, "05:00"));
    for (const day of [2, 3, 4]) await check("m", on(day, "07:00"));
    expect(told).toEqual([MISSED, MISSED.replace("03T", "04T")]);
    await expected.close();
    const [name = ""] = await readdir(folder);
    const [known] = Object.values(JSON.parse(await readFile(join(folder, name), "utf8")));
    expect(known).toMatchObject({ arrivedMs: on(2, "05:00") });
  });
});

test("a rule that was changed is a new one, and one that was dropped is forgotten", async () => {
  const first = await start(on(1, "12:00"));
  await first.check("m", on(3, "06:00"));
  await first.expected.close();
  const earlier = { ...bank, by: { ...bank.by, timeMs: 5 * HOUR_MS } };
  const second = await start(on(3, "07:00"), { rules: [earlier] });
  await second.check("m", on(3, "07:00"));
  expect([second.told, second.expected.overdue()]).toEqual([[], []]);
  await second.expected.close();
  const [name = ""] = await readdir(folder);
  expect(Object.keys(JSON.parse(await readFile(join(folder, name), "utf8")))).toHaveLength(1);
});

test("a rule is learnt anew where its file is damaged or gone, without a false report", async () => {
  await (await start(on(1, "12:00"))).expected.close();
  const [name = ""] = await readdir(folder);
  for (const text of ["", "{", '{"x":1}', "[]"]) {
    await writeFile(join(folder, name), text);
    const { expected, check, told } = await start(on(3, "07:00"));
    await check("m", on(3, "07:00"));
    expect(told).toEqual([]);
    await expected.close();
  }
});

test("what the disk does not give is not forgotten", async () => {
  const { expected, check } = await start(on(1, "12:00"));
  await check("m", on(3, "06:00"));
  await expected.close();
  const [name = ""] = await readdir(folder);
  const before = await readFile(join(folder, name), "utf8");
  const unread = await whileUnread(name, () => start(on(5, "12:00")));
  await unread.expected.close();
  expect(await readFile(join(folder, name), "utf8")).toBe(before);
});

test("the folder is not made where nothing is expected", async () => {
  folder = join(folder, "expected");
  const { expected, check } = await start(on(1, "12:00"), { rules: [] });
  await check("m", on(3, "06:00"));
  await expected.close();
  await expect(readdir(folder)).rejects.toMatchObject({ code: "ENOENT" });
});

test("the folder that cannot be written costs no report, and repeats none", async () => {
  const { check, told } = await start(on(1, "12:00"));
  await rm(folder, { recursive: true });
  await check("m", on(3, "06:00"));
  await check("m", on(3, "06:01"));
  expect(told).toEqual([MISSED]);
});

test("the folder is shared: what one process discovers, another does not miss", async () => {
  const [a, b] = [await start(on(1, "12:00")), await start(on(1, "12:00"))];
  a.discovered(arrival(on(3, "05:00")));
  await a.expected.close();
  await b.check("m", on(3, "06:00"));
  await b.check("m", on(4, "06:00"));
  await a.check("m", on(4, "06:01"));
  expect([a.told, b.told]).toEqual([[], ["m: *@bank.example by 06:00 mon-fri missed 04T06:00"]]);
});
