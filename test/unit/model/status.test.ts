import { expect, test } from "vitest";
import { headlineOf, type MailboxStatus, type Status, type Trouble } from "../../../src/model/status.ts";

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
