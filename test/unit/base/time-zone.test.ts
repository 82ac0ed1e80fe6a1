import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { firstInstantOf, isTimeZone, localTimeAt, nextShift } from "../../../src/base/timetable.ts";
import { instants, ZONES } from "../../support/zones.ts";

describe("clocks", () => {
  test.each([
    ["UTC", "2026-07-01T12:00Z", "2026-07-01T12:00Z"],
    ["Europe/Berlin", "2026-01-01T12:00Z", "2026-01-01T13:00Z"],
    ["Europe/Berlin", "2026-07-01T12:00Z", "2026-07-01T14:00Z"],
    ["Asia/Kolkata", "2026-07-01T12:00Z", "2026-07-01T17:30Z"],
    ["America/St_Johns", "2026-01-01T12:00Z", "2026-01-01T08:30Z"],
    ["Pacific/Apia", "2011-12-31T00:00Z", "2011-12-31T14:00Z"],
  ])("in %s at %s show %s", (zone, instant, shown) => {
    expect(localTimeAt(zone, Date.parse(instant))).toBe(Date.parse(shown));
  });

  test("show what Intl says they show, in every zone", () => {
    const every = Intl.supportedValuesOf("timeZone");
    fc.assert(
      fc.property(
        fc.constantFrom(...every),
        fc.integer({ min: 0, max: Date.UTC(2040) / 1000 }),
        (zone, s) => {
          const format = new Intl.DateTimeFormat("sv-SE", {
            timeZone: zone,
            dateStyle: "short",
            timeStyle: "medium",
          });
          const shown = new Date(localTimeAt(zone, s * 1000)).toISOString().slice(0, 19).replace("T", " ");
          expect(shown).toBe(format.format(s * 1000));
        },
      ),
    );
  });
});

describe("a time that clocks show", () => {
  test.each([
    ["is found", "Europe/Berlin", "2026-07-01T14:00Z", "2026-07-01T12:00Z"],
    ["is found on the day of a change", "Europe/Berlin", "2026-03-29T06:00Z", "2026-03-29T04:00Z"],
    ["comes with the change where it is skipped", "Europe/Berlin", "2026-03-29T02:30Z", "2026-03-29T01:00Z"],
    ["comes first where it comes twice", "Europe/Berlin", "2026-10-25T02:30Z", "2026-10-25T00:30Z"],
    [
      "comes with the change where a day is skipped",
      "Pacific/Apia",
      "2011-12-30T12:00Z",
      "2011-12-30T10:00Z",
    ],
  ])("%s", (_, zone, shown, instant) => {
    expect(new Date(firstInstantOf(zone, Date.parse(shown))).toISOString()).toBe(
      new Date(instant).toISOString(),
    );
  });

  test("has not come before its first instant", () => {
    fc.assert(
      fc.property(instants(), ({ zone, ms }) => {
        const shown = localTimeAt(zone, ms);
        const first = firstInstantOf(zone, shown);
        expect(first).toBeLessThanOrEqual(ms);
        expect(localTimeAt(zone, first)).toBe(shown);
        expect(localTimeAt(zone, first - 1)).toBeLessThan(shown);
      }),
    );
  });
});

test("the instant at which clocks are changed is found to the millisecond", () => {
  const [from, to] = [Date.parse("2026-10-24T12:00Z"), Date.parse("2026-10-25T12:00Z")];
  expect(nextShift("Europe/Berlin", from, to)).toBe(Date.parse("2026-10-25T01:00Z"));
  expect(nextShift("Asia/Tokyo", from, to)).toBeUndefined();
});

test("zones are known by their names", () => {
  expect([...ZONES, "europe/berlin", "CET"].filter((zone) => !isTimeZone(zone))).toEqual([]);
  expect(["", "Europe/Berln", "Mars/Olympus", "GMT+25"].filter(isTimeZone)).toEqual([]);
});
