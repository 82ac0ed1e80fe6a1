/** What records, tokens, links and the headline of a status say. */
import { expect, test } from "vitest";
import { Secret } from "../../../src/base/secret.ts";
import { beginWait, LONGEST_MS } from "../../../src/base/waits.ts";
import {
  expiryOf,
  modeOf,
  modeText,
  UNKNOWN_EXPIRY_MS,
  waitIdOf,
  waitLeftMs,
  withRightUntil,
} from "../../../src/model/record.ts";
import { headlineOf, type MailboxStatus, type Status, type Trouble } from "../../../src/model/status.ts";
import { findRenewal } from "../../../src/model/token.ts";
import { passwordOfLink, takesAnyPassword } from "../../../src/model/transfer.ts";
import { Clocks } from "../../support/clocks.ts";

const NOW_MS = Date.parse("2026-03-01T00:00:00Z");
const KEY = { mailbox: "m", trackingId: "t" };

test.each([
  ["2026-03-01T12:00:00Z", 12 * 3_600_000],
  ["2026-02-28T00:00:00Z", undefined],
  // Recorded while the clock was wrong: the cap counts.
  ["2036-03-01T00:00:00Z", 24 * 3_600_000],
  ["no time at all", undefined],
  [undefined, undefined],
])("a transfer that waits until %s is kept back for %s ms", (until, leftMs) => {
  expect(waitLeftMs({ ...KEY, state: "waiting", reason: "locked", until }, NOW_MS)).toBe(leftMs);
  expect(waitLeftMs({ ...KEY, state: "discovered", reason: undefined, until }, NOW_MS)).toBeUndefined();
});

test.each([
  ["was set back", -5 * 3_600_000, 10 * 60_000],
  ["was set forward", 5 * 3_600_000, 10 * 60_000],
  ["runs on", 60_000, 9 * 60_000],
])("the end of a wait is noted again after the clock %s", (_, byMs, leftMs) => {
  const clocks = new Clocks(NOW_MS);
  const until = clocks.run(() => beginWait(waitIdOf(KEY), 10 * 60_000, clocks.wallMs));
  const record = { ...KEY, state: "waiting", reason: "locked", until } as const;
  if (byMs === 60_000) clocks.pass(byMs);
  else clocks.wallMs += byMs;
  const right = clocks.run(() => withRightUntil(record, clocks.wallMs));
  expect(Date.parse(right.until) - clocks.wallMs).toBe(leftMs);
  expect(clocks.run(() => waitLeftMs(right, clocks.wallMs))).toBe(leftMs);
});

test("runs of `once` after a clock that was years ahead wait for one cap together", () => {
  const clocks = new Clocks(NOW_MS);
  const until = new Date(NOW_MS + 3_650 * DAY).toISOString();
  let record = { ...KEY, state: "waiting" as const, reason: "retry", until };
  let waitedMs = 0;
  while (clocks.run(() => waitLeftMs(record, clocks.wallMs)) !== undefined && waitedMs < DAY) {
    record = clocks.run(() => withRightUntil(record, clocks.wallMs));
    clocks.pass(300_000);
    clocks.restart();
    waitedMs += 300_000;
  }
  expect(waitedMs).toBeLessThanOrEqual(LONGEST_MS.attempt);
});

test("an unknown expiry is after every known one, and still a date", () => {
  expect(expiryOf({ expires: "2026-03-01T00:00:00Z" })).toBe(NOW_MS);
  expect(expiryOf({ expires: undefined })).toBe(UNKNOWN_EXPIRY_MS);
  expect(new Date(UNKNOWN_EXPIRY_MS).toISOString()).toBe("+275760-09-13T00:00:00.000Z");
});

const DAY = 86_400_000;

/** Days before the end of a token that lives so many days, and the reminder that is due. */
test.each([
  [90, 7.1, undefined],
  [90, 7, "first"],
  [90, 1.1, "first"],
  [90, 1, "last"],
  [90, 0.01, "last"],
  [90, 0, undefined],
  [20, 5.1, undefined],
  [20, 5, "first"],
  [4, 1.1, undefined],
  [4, 1, "first"],
  [1, 0.3, undefined],
  [1, 0.25, "first"],
  [1, 0.01, "first"],
])("of a token for %d days, %d days before its end: %s", (lifeDays, leftDays, due) => {
  const token = { obtainedMs: 1_000, validUntilMs: 1_000 + lifeDays * DAY, isByCode: true };
  const nowMs = token.validUntilMs - leftDays * DAY;
  const renewal = findRenewal(token, nowMs);
  expect(renewal && (renewal.isLastDay ? "last" : "first")).toBe(due);
  expect(findRenewal({ ...token, isByCode: false }, nowMs)).toBeUndefined();
});

test.each([
  ["https://s.example/download?id=x&password=a%20b%3Bc", "a b;c"],
  ["https://s.example/download;jsessionid=1F.n1?id=x&password=a%20b%3Bc", "a b;c"],
  ["https://s.example/download?id=x&password=a%20b%3Bc;jsessionid=1F.n1", "a b;c"],
  ["/download?password=a%20b%3Bc;JSESSIONID=1F&id=x", "a b;c"],
  ["/download;jsessionid=password=1?id=x", undefined],
])("the password of the link %s is %s", (link, password) => {
  expect(passwordOfLink(new Secret(link))?.reveal()).toBe(password);
});

test.each([
  // No list has named it.
  [undefined, false],
  // The service names none.
  ["", true],
  ["ONE_TIME_PASSWORD", true],
  ["oneTimePassword", true],
  ["one-time password", true],
  ["QUICK", false],
  ["ONE_TIME_PASSWORD_AND_EID", false],
  ["unknown", false],
])("the security mode %j takes a password of a rule: %s", (securityMode, isTaken) => {
  const mode = modeOf({ securityMode });
  expect([takesAnyPassword(mode), modeText(mode)]).toEqual([isTaken, securityMode]);
});

const trouble = { what: "disk" } as Trouble;
const mailbox = (lastSuccess: string | undefined, paused = false) =>
  ({ lastSuccess, paused }) as MailboxStatus;
const polled = mailbox("2026-03-01T00:00:00Z");

test.each<[troubles: number, attention: number, mailboxes: MailboxStatus[], queue: string, words: string]>([
  [2, 5, [polled], "embedded", "2 problems, and 5 transfers need attention"],
  [0, 1, [polled], "embedded", "1 transfer needs attention"],
  [0, 0, [polled, mailbox(undefined)], "embedded", "Starting: 1 mailbox is not polled yet"],
  [0, 0, [polled, mailbox(undefined, true)], "embedded", "All is well"],
  [0, 0, [mailbox(undefined)], "redis", "All is well"],
])(
  "with %i problems and %i that need attention (%j, %s) the headline says %s",
  (troubles, attention, mailboxes, queue, words) => {
    const totals = { attention, downloading: 0, queued: 0 };
    const status = {
      troubles: Array.from({ length: troubles }, () => trouble),
      totals,
      mailboxes,
      daemon: { queue },
    };
    expect(headlineOf(status as unknown as Status).words).toBe(words);
  },
);
