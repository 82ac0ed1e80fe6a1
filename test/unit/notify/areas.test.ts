/** The table of faults says where each fault is counted. */
import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { DaemonEvent } from "../../../src/model/events.ts";
import { changesOfEvent } from "../../../src/notify/notices.ts";
import { AREAS } from "../../support/fault-areas.ts";

const POLL = { type: "poll-failed", mailbox: "a@example.com", isFirst: true, waitMs: 0, tookMs: 1 } as const;
const POLL_FAILED = (fault: Fault): DaemonEvent => ({ ...POLL, token: undefined, fault });

test.each([
  ["service", POLL_FAILED(new Fault("ACCESS_REFUSED"))],
  ["mailbox", POLL_FAILED(new Fault("SECRET_UNREADABLE"))],
  ["disk", { type: "disk-failed", fault: new Fault("DISK_FULL") }],
  ["queue", { type: "queue-lost", fault: new Fault("QUEUE_UNREACHABLE") }],
] as const)("a fault of the area %s has a notification of its kind", (area, event) => {
  const context = { nowMs: 1, blipMs: 0, process: "p", serviceOf: () => "https://example.com/" };
  const [change] = changesOfEvent(event as DaemonEvent, context);
  expect(AREAS[area].notices).toContain(change?.begin[0]?.kind);
});

test.each(["DISK_FULL", "QUEUE_UNREACHABLE", "QUEUE_REFUSED"] as const)(
  "a poll that fails with %s is no trouble of the service",
  (code) => {
    const context = { nowMs: 1, blipMs: 0, process: "p", serviceOf: () => "https://example.com/" };
    expect(changesOfEvent(POLL_FAILED(new Fault(code)), context)).toEqual([]);
  },
);

test("every metric of the table is documented", async () => {
  const page = await readFile(new URL("../../../docs/operating.md", import.meta.url), "utf8");
  for (const { metric } of Object.values(AREAS)) {
    if (metric !== undefined) expect(page).toContain(`\`${metric}`);
  }
});
