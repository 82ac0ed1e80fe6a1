import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import { describeInOneLine } from "../../../src/host/systemd.ts";
import type { DaemonEvent } from "../../../src/model/events.ts";
import { Board } from "../../../src/observe/board.ts";
import { FACTS, shownMailbox } from "../../support/board.ts";
import { pollFailed } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

const FAILED = { type: "disk-failed", fault: new Fault("DISK_FULL", { detail: "/srv" }) } as const;
const record = makeRecord({ state: "downloading" });
const quarantined = makeRecord({ state: "quarantined", reason: "CHECKSUM_MISMATCH" });
const progress = { doneBytes: 500_000, totalBytes: 2_000_000, receivedBytes: 500_000 };

function unreachable(detail: string): DaemonEvent {
  return pollFailed({ mailbox: "m1", fault: new Fault("SERVICE_UNREACHABLE", { detail }) });
}

test.each<[string, DaemonEvent[], RegExp]>([
  ["the number of polled mailboxes if all is well", [], /^2 mailboxes are polled$/],
  [
    "problems, then transfers that need attention",
    [unreachable("no\nanswer"), FAILED, { type: "transfer-discovered", record: quarantined }],
    /^disk: .*; 1 more problem; 1 transfer needs attention; 2 mailboxes are polled$/,
  ],
  [
    "the progress of downloads",
    [
      { type: "transfer-changed", record },
      { type: "transfer-progressed", record, ...progress },
    ],
    /^1 transfer downloading, 488 KiB of 1.9 MiB; /,
  ],
  ["one line, whatever the message", [unreachable(`a\nREADY=1\n${"b".repeat(1_000)}`)], /^.{300}$/],
])("the line of systemctl status shows %s", (_what, events, line) => {
  const board = makeBoard();
  for (const event of events) board.listener(event);
  expect(describeInOneLine(board.read())).toMatch(line);
});

function makeBoard(): Board {
  const mailboxes = ["m1", "m2", "m3"].map((name) => shownMailbox(name, { paused: name === "m3" }));
  return new Board(FACTS, mailboxes, systemClock);
}
