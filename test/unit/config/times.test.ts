import { afterEach, describe, expect, test, vi } from "vitest";
import { isWithin, type Timetable } from "../../../src/base/timetable.ts";
import { config, load } from "./stage.ts";

const HOUR_MS = 3_600_000;

/** In July Berlin is two hours ahead of UTC, New York four behind. */
const NOON_MS = Date.parse("2026-07-06T10:00Z");

function isOn(timetable: Timetable | undefined, ms: number): boolean | undefined {
  return timetable === undefined ? undefined : isWithin(timetable, ms);
}

describe("keys that depend on the time of day", () => {
  const text = (zone: string) =>
    config(`timezone: ${zone}
mailboxes:
  - email: a@example.com
    quiet: ["mon-fri 11:00-13:00", "sat"]
    expect:
      - { sender: "*@bank.example", by: 06:00, days: mon-fri, within: 12h }
      - { sender: lab@example.org, by: "18:30" }
limits:
  bandwidth:
    - { at: "mon-fri 11:00-13:00", rate: 2MiB/s }
    - { at: "sat,sun", rate: 500 KiB/s }
    - { rate: none }
`);

  test("apply as written, in the time zone", async () => {
    for (const [zone, isNoon] of [
      ["Europe/Berlin", true],
      ["America/New_York", false],
    ] as const) {
      const { mailboxes, limits } = await load(text(zone));
      expect(isOn(mailboxes[0]?.quiet, NOON_MS)).toBe(isNoon);
      expect(limits.bandwidth?.map(({ at }) => isOn(at, NOON_MS))).toEqual([isNoon, false, undefined]);
      expect(limits.bandwidth?.map(({ bytesPerSecond }) => bytesPerSecond)).toEqual([
        2_097_152,
        512_000,
        undefined,
      ]);
      expect(mailboxes[0]?.expect).toEqual([
        {
          sender: "*@bank.example",
          by: { zone, days: [0, 1, 2, 3, 4], timeMs: 6 * HOUR_MS },
          withinMs: 12 * HOUR_MS,
          described: "*@bank.example by 06:00 mon-fri within 12h",
        },
        {
          sender: "lab@example.org",
          by: { zone, days: [0, 1, 2, 3, 4, 5, 6], timeMs: 18.5 * HOUR_MS },
          withinMs: undefined,
          described: "lab@example.org by 18:30 daily",
        },
      ]);
    }
  });
});

describe("the default time zone", () => {
  const systemZone = vi.spyOn(Intl.DateTimeFormat.prototype, "resolvedOptions");
  const pretend = (timeZone: string) =>
    systemZone.mockReturnValue({ timeZone } as Intl.ResolvedDateTimeFormatOptions);
  afterEach(() => void systemZone.mockReset());
  const withKeys = (mailbox: string, more = "") =>
    config(`mailboxes: [{ email: a@example.com, ${mailbox} }]\n${more}`);

  test("is the system's", async () => {
    pretend("Asia/Tokyo");
    const { mailboxes } = await load(withKeys("expect: [{ sender: x, by: '06:00' }]"));
    expect(mailboxes[0]?.expect?.[0]?.by.zone).toBe("Asia/Tokyo");
  });

  test.each([
    ["paused: true", "", 0],
    ["since: now", "", 0],
    ["since: 2026-02-01", "", 1],
    ["quiet: [sat]", "", 1],
    ["expect: [{ sender: x, by: '06:00' }]", "", 1],
    ["paused: true", "limits: { bandwidth: 1MiB/s }", 0],
    ["paused: true", "limits: { bandwidth: [{ at: sat, rate: none }] }", 1],
  ])(
    "is looked up only if a key needs it, and is UTC with a warning if the system has none: %s %s",
    async (mailbox, more, count) => {
      pretend("Etc/Unknown");
      const { warnings } = await load(withKeys(mailbox, more));
      expect(warnings.filter((warning) => warning.startsWith("timezone:"))).toHaveLength(count);
      expect(systemZone).toHaveBeenCalledTimes(count);
    },
  );
});
