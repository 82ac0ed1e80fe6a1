/** How services rest, in virtual time: on the values of one process, and on those that several share. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NO_WAIT, type PollWait } from "../../../src/model/job.ts";
import { OwnValues, Turns } from "../../../src/queue/turns.ts";
import { Clocks } from "../../support/clocks.ts";
import { makeFolder } from "../../support/program.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const SERVICES = new Map([
  ["a", "s"],
  ["b", "s"],
  ["c", "s"],
  ["alone", "other"],
]);
const SILENT: PollWait = { waitMs: 15 * MINUTE_MS, isSilent: true };
const NOW = { waitMs: 0 };

function asked(limitMs: number): PollWait {
  return { waitMs: Math.min(limitMs, HOUR_MS), limitMs };
}

describe.each([
  ["one process", false],
  ["several processes", true],
])("in %s, a service", (_, isShared) => {
  test("is not asked while a rest of up to an hour lasts, and then by all", async () => {
    const { take, end, pass } = open(isShared);
    await end("a", asked(20 * MINUTE_MS));
    expect(await take("b")).toMatchObject({ rest: { isAsked: true, forMs: 20 * MINUTE_MS } });
    // Another mailbox was asked for at the same time.
    await end("c", NO_WAIT);
    pass(20 * MINUTE_MS - 1);
    expect((await take("b")).waitMs).toBe(1);
    pass(1);
    expect([await take("b"), await take("c")]).toEqual([NOW, NOW]);
  });

  test("is asked by one mailbox an hour after an hour, until that gets an answer", async () => {
    const { take, end, pass } = open(isShared);
    await end("a", asked(DAY_MS));
    pass(HOUR_MS - MINUTE_MS);
    expect((await take("b")).waitMs).toBeGreaterThan(0);
    pass(MINUTE_MS);
    expect(await take("b")).toMatchObject({ waitMs: 0, isProbe: true });
    expect((await take("c")).waitMs).toBeGreaterThan(0);
    // It gives no answer now. It was asked not to be asked, so that changes nothing.
    await end("b", SILENT);
    for (let passed = 0; passed < HOUR_MS - SECOND_MS; passed += SECOND_MS) {
      expect((await take("c")).waitMs).toBeGreaterThan(0);
      pass(SECOND_MS);
    }
    pass(SECOND_MS);
    expect(await take("c")).toMatchObject({ isProbe: true });
    await end("c", asked(DAY_MS));
    pass(HOUR_MS);
    expect(await take("b")).toMatchObject({ isProbe: true });
    expect((await take("c")).waitMs).toBeLessThanOrEqual(5 * SECOND_MS);
    await end("b", NO_WAIT);
    pass(5 * SECOND_MS);
    expect([await take("a"), await take("c")]).toEqual([NOW, NOW]);
  });

  test("that gives two mailboxes no answer is asked by one mailbox a minute", async () => {
    const { take, end, pass } = open(isShared);
    await end("a", SILENT);
    await end("a", SILENT);
    expect(await take("b")).toEqual(NOW);
    await end("b", SILENT);
    let probes = 0;
    for (let passed = 0; passed < 10 * MINUTE_MS; passed += SECOND_MS) {
      for (const mailbox of ["a", "b", "c"]) {
        const { waitMs, isProbe } = await take(mailbox);
        expect(waitMs <= 5 * SECOND_MS).toBe(true);
        if (waitMs > 0) continue;
        expect(isProbe).toBe(true);
        probes++;
        await end(mailbox, SILENT);
      }
      pass(SECOND_MS);
    }
    expect(probes).toBe(9);
    pass(MINUTE_MS);
    expect(await take("c")).toMatchObject({ isProbe: true });
    await end("c", NO_WAIT);
    expect([await take("a"), await take("b")].every(({ waitMs }) => waitMs <= 5 * SECOND_MS)).toBe(true);
    pass(5 * SECOND_MS);
    expect([await take("a"), await take("b")]).toEqual([NOW, NOW]);
  });

  test("goes on for its other mailboxes while one of them gets no answer", async () => {
    const { take, end, pass } = open(isShared);
    for (let round = 0; round < 5; round++) {
      await end("a", SILENT);
      pass(MINUTE_MS);
      expect(await take("b")).toEqual(NOW);
      await end("b", NO_WAIT);
    }
  });

  test("with one mailbox rests at once, and no other service does", async () => {
    const { take, end } = open(isShared);
    await end("alone", SILENT);
    expect((await take("alone")).rest).toMatchObject({ isAsked: false });
    expect(await take("a")).toEqual(NOW);
  });

  test("that asks for a rest during a download is not polled either", async () => {
    const { take, run, turns } = open(isShared);
    await run(() => turns[0].ask("s", 10 * MINUTE_MS));
    expect((await take("b")).rest).toMatchObject({ isAsked: true, forMs: 10 * MINUTE_MS });
    // Never shortened.
    await run(() => turns[0].ask("s", SECOND_MS));
    expect((await take("b")).rest).toMatchObject({ forMs: 10 * MINUTE_MS });
  });
});

describe("in a file, the rest of a service", () => {
  /** Values of one process after the other in one file. */
  async function openFile() {
    const path = join(await makeFolder(), "rests.json");
    const clocks = new Clocks(Date.UTC(2026, 0, 1));
    const open = () => {
      clocks.restart();
      return new Turns(new OwnValues(path), () => SERVICES, false);
    };
    const take = (turns: Turns, everyMs = MINUTE_MS) =>
      clocks.run(() => turns.take({ mailbox: "b", service: "s", everyMs }));
    return { path, clocks, open, take };
  }

  test("goes on in the next process, and ends at its time", async () => {
    const { clocks, open, take } = await openFile();
    const first = open();
    await clocks.run(() => first.ask("s", 40 * MINUTE_MS));
    clocks.pass(30 * MINUTE_MS);
    expect(await take(open())).toMatchObject({ rest: { isAsked: true, forMs: 10 * MINUTE_MS } });
    // A poll of its own, outside of a schedule, waits for a long rest only.
    expect((await take(open(), 0)).waitMs).toBeGreaterThan(0);
    clocks.pass(9.5 * MINUTE_MS);
    const last = open();
    expect(await take(last, 0)).toEqual(NOW);
    expect((await take(last)).waitMs).toBeGreaterThan(0);
    clocks.pass(MINUTE_MS);
    expect(await take(last)).toEqual(NOW);
  });

  test("of a day is ended by one mailbox that asks after an hour, however many processes there were", async () => {
    const { clocks, open, take } = await openFile();
    const first = open();
    await clocks.run(() => first.ask("s", DAY_MS));
    for (let passed = 0; passed < HOUR_MS; passed += 5 * MINUTE_MS) {
      expect((await take(open(), 0)).waitMs).toBeGreaterThan(0);
      clocks.pass(5 * MINUTE_MS);
    }
    expect(await take(open(), 0)).toMatchObject({ waitMs: 0, isProbe: true });
    expect((await take(open(), 0)).waitMs).toBeGreaterThan(0);
    const last = open();
    clocks.pass(MINUTE_MS);
    await clocks.run(() => last.end({ mailbox: "b", service: "s", everyMs: 0 }, 0, NO_WAIT));
    expect(await take(open(), 0)).toEqual(NOW);
  });

  test.each([
    ["was set back by years: it lasts an hour at most", -3 * 365 * DAY_MS, 61 * MINUTE_MS],
    ["was set forward: it is over", 365 * DAY_MS, 0],
  ])("does not depend on a clock that %s", async (_, byMs, lastsMs) => {
    const { clocks, open, take } = await openFile();
    const first = open();
    await clocks.run(() => first.ask("s", 40 * MINUTE_MS));
    clocks.wallMs += byMs;
    const next = open();
    expect((await take(next)).waitMs > 0).toBe(lastsMs > 0);
    clocks.pass(lastsMs);
    expect(await take(next)).toEqual(NOW);
  });

  test.each(["", "{", "[]", '{"poll-limit:x":1}', '{"poll-limit:x":{"value":"asked","until":"never"}}'])(
    "is forgotten if the file is damaged: %j",
    async (text) => {
      const { path, clocks, open, take } = await openFile();
      await writeFile(path, text);
      const turns = open();
      expect(await take(turns)).toEqual(NOW);
      await clocks.run(() => turns.ask("s", 40 * MINUTE_MS));
      expect((await take(open())).rest).toMatchObject({ isAsked: true });
    },
  );
});

/** `isShared`: mailbox `a` is polled by one process, and the others by another one. */
function open(isShared: boolean) {
  const clocks = new Clocks(0);
  const values = new OwnValues();
  const one = new Turns(values, () => SERVICES, isShared);
  const turns = [one, isShared ? new Turns(values, () => SERVICES, true) : one] as const;
  const of = (mailbox: string) => turns[mailbox === "a" ? 0 : 1];
  const poll = (mailbox: string) => ({ mailbox, service: SERVICES.get(mailbox) ?? "", everyMs: SECOND_MS });
  return {
    turns,
    pass: (ms: number) => clocks.pass(ms),
    run: <Result>(work: () => Result) => clocks.run(work),
    take: (mailbox: string) => clocks.run(() => of(mailbox).take(poll(mailbox))),
    end: (mailbox: string, wait: PollWait) =>
      clocks.run(() => of(mailbox).end(poll(mailbox), SECOND_MS, wait)),
  };
}
