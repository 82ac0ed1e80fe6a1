/** Slots are shared fairly, whatever other services and mailboxes do. */
import fc from "fast-check";
import { expect, test } from "vitest";

import { type Holder, Runs, Slots } from "../../../src/queue/slots.ts";

test("I6 no contagion: slots never exceed the limit plus one for each further service; a service without a slot always gets one", () => {
  const mailboxes = fc.array(fc.tuple(fc.string(), fc.constantFrom("a", "b", "c")), { minLength: 1 });
  const steps = fc.array(fc.nat(), { maxLength: 60 });
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), mailboxes, steps, (limit, configured, picks) => {
      const services = new Map(configured);
      const slots = new Slots(
        () => limit,
        () => services,
      );
      const held: Holder[] = [];
      for (const pick of picks) {
        const [mailbox, service] = [...services][pick % services.size] ?? ["", ""];
        const holdsNone = held.every((it) => it.service !== service);
        const isFree = slots.isFreeFor({ mailbox, service });
        if (holdsNone) expect(isFree).toBe(true);
        if (isFree) {
          slots.take({ mailbox, service });
          held.push({ mailbox, service });
        } else if (pick % 3 === 0) slots.giveBack(held.splice(pick % held.length, 1)[0] ?? neverHolder());
        const holding = new Set(held.map((it) => it.service)).size;
        expect(held.length).toBeLessThanOrEqual(limit - 1 + holding);
      }
    }),
  );
});

test("I6 no contagion: slots are all available to a single mailbox, all but one while another of its service has none, and all after it has one", () => {
  expect(takeAll(slotsOf(3, { m: "s" }), "m", "s")).toBe(3);
  const slots = slotsOf(4, { m: "s", other: "s" });
  expect(takeAll(slots, "m", "s")).toBe(3);
  slots.take({ mailbox: "other", service: "s" });
  slots.giveBack({ mailbox: "m", service: "s" });
  expect(takeAll(slots, "m", "s")).toBe(1);
});

function slotsOf(limit: number, services: Readonly<Record<string, string>>): Slots {
  const map = new Map(Object.entries(services));
  return new Slots(
    () => limit,
    () => map,
  );
}

function takeAll(slots: Slots, mailbox: string, service: string): number {
  let taken = 0;
  for (; slots.isFreeFor({ mailbox, service }); taken++) slots.take({ mailbox, service });
  return taken;
}

function neverHolder(): never {
  throw new Error("nothing is held");
}

test("a job counts as deferred only if it found no free slot, even just after a start", () => {
  const runs = new Runs(
    () => 1,
    () => new Map([["m", "service"]]),
  );
  expect(runs.isDeferred("a")).toBe(false);
  const run = runs.begin("a", "m");
  expect(runs.begin("b", "m")).toBeUndefined();
  expect(runs.defer("b")).toBeGreaterThan(0);
  expect([runs.isDeferred("a"), runs.isDeferred("b"), runs.countDeferred()]).toEqual([false, true, 1]);
  if (run !== undefined) runs.end(run);
  runs.begin("b", "m");
  expect([runs.isDeferred("b"), runs.countDeferred()]).toEqual([false, 0]);
});
