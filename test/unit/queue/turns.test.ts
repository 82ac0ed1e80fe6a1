/** How services rest, in virtual time: on the values of one process, and on those that several share. */
import { describe, expect, test } from "vitest";
import { NO_WAIT, type PollWait } from "../../../src/model/job.ts";
import { OwnValues, Turns } from "../../../src/queue/turns.ts";
import { Clocks } from "../../support/clocks.ts";

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
