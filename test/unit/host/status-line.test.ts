import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import { describeInOneLine } from "../../../src/host/systemd.ts";
import { Board } from "../../../src/observe/board.ts";
import { pollFailed } from "../../support/events.ts";
import { makeRecord } from "../../support/record.ts";

describe("the line of systemctl status", () => {
  test("shows the number of polled mailboxes if all is well", () => {
    expect(describeInOneLine(makeBoard().read())).toBe("2 mailboxes are polled");
  });

  test("starts with problems, then transfers that need attention", () => {
    const board = makeBoard();
    board.listener(
      pollFailed({ mailbox: "m1", fault: new Fault("SERVICE_UNREACHABLE", { detail: "no\nanswer" }) }),
    );
    board.listener({ type: "disk-failed", fault: new Fault("DISK_FULL", { detail: "/srv" }) });
    board.listener({
      type: "transfer-discovered",
      record: makeRecord({ state: "quarantined", reason: "CHECKSUM_MISMATCH" }),
    });
    const line = describeInOneLine(board.read());
    expect(line).toMatch(/^disk: .*; 1 more problem; 1 transfer needs attention; 2 mailboxes are polled$/);
  });

  test("shows the progress of downloads", () => {
    const board = makeBoard();
    const record = makeRecord({ state: "downloading" });
    board.listener({ type: "transfer-changed", record: record });
    board.listener({
      type: "transfer-progressed",
      record: record,
      doneBytes: 500_000,
      totalBytes: 2_000_000,
      receivedBytes: 500_000,
    });
    expect(describeInOneLine(board.read())).toContain("1 transfer downloading, 488 KiB of 1.9 MiB; ");
  });

  test("is one line, whatever the message", () => {
    const board = makeBoard();
    board.listener(
      pollFailed({
        mailbox: "m1",
        fault: new Fault("SERVICE_UNREACHABLE", { detail: `a\nREADY=1\n${"b".repeat(1_000)}` }),
      }),
    );
    const line = describeInOneLine(board.read());
    expect(line).not.toMatch(/\n/);
    expect(line.length).toBeLessThanOrEqual(300);
  });
});

function makeBoard(): Board {
  const facts = { program: "1", host: "h", pid: 1, queue: "embedded", role: "all", inbox: "/inbox" } as const;
  const mailboxes = ["m1", "m2", "m3"].map((name) => ({
    name,
    email: `${name}@example.org`,
    pollMs: 60_000,
    paused: name === "m3",
    service: { baseUrl: new URL("https://transfer.example.com/") },
  }));
  return new Board(facts, mailboxes, systemClock);
}
