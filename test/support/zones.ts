/** Time zones with unusual rules, and instants near the changes of their clocks. */
import fc from "fast-check";

/** Changes by half an hour, at midnight or a minute later, a skipped day, interrupted summer time, odd offsets. */
const CHANGES: Readonly<Record<string, readonly string[]>> = {
  UTC: [],
  "Europe/Berlin": ["2026-03-29T01:00Z", "2026-10-25T01:00Z"],
  "America/New_York": ["2026-03-08T07:00Z", "2026-11-01T06:00Z"],
  "America/St_Johns": ["2010-03-14T03:31Z", "2010-11-07T02:31Z"],
  "America/Sao_Paulo": ["2018-11-04T03:00Z", "2019-02-17T02:00Z"],
  "Australia/Lord_Howe": ["2026-04-04T15:00Z", "2026-10-03T15:30Z"],
  "Africa/Casablanca": ["2026-02-15T02:00Z", "2026-03-22T02:00Z"],
  "Pacific/Apia": ["2011-12-30T10:00Z", "2012-03-31T14:00Z"],
  "Asia/Kathmandu": [],
  "Pacific/Chatham": ["2026-04-04T14:00Z", "2026-09-26T14:00Z"],
};

export const ZONES = Object.keys(CHANGES);

const WEEK_MINUTES = 7 * 24 * 60;

/** Whole minutes, half of them within a week of a change. */
export function instants(): fc.Arbitrary<{ readonly zone: string; readonly ms: number }> {
  return fc.constantFrom(...ZONES).chain((zone) => {
    const changes = (CHANGES[zone] ?? []).map((text) => Date.parse(text));
    const near = fc
      .tuple(
        fc.constantFrom(...changes, Date.UTC(2026)),
        fc.integer({ min: -WEEK_MINUTES, max: WEEK_MINUTES }),
      )
      .map(([change, minutes]) => change + minutes * 60_000);
    const anywhere = fc
      .integer({ min: Date.UTC(2000) / 60_000, max: Date.UTC(2040) / 60_000 })
      .map((minutes) => minutes * 60_000);
    return fc.oneof(near, anywhere).map((ms) => ({ zone, ms }));
  });
}
