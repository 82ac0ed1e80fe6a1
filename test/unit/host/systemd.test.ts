/** Notifications to systemd, recorded by a stand-in for systemd-notify; test/systemd runs the real one. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Fault } from "../../../src/base/faults.ts";
import { describeInOneLine, type Host, openHost, type Vitals } from "../../../src/host/systemd.ts";
import { type DaemonEvent, listenTo } from "../../../src/model/events.ts";
import type { Status } from "../../../src/model/status.ts";
import { Board } from "../../../src/observe/board.ts";
import { FACTS, shownMailbox } from "../../support/board.ts";
import { pollFailed } from "../../support/events.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";

test("is ready after the first poll, not before, and reports its stop", async () => {
  const { host, sent } = await setUp();
  const vitals = new TestVitals();
  const stop = new AbortController();
  const reporting = host?.startReporting(vitals, stop.signal);
  await host?.reloading(async () => {});
  await expect.poll(sent).toEqual(["STATUS=0 mailboxes are polled"]);
  vitals.ready = true;
  vitals.change();
  await expect.poll(sent).toHaveLength(2);
  expect((await sent())[1]).toBe("READY=1 STATUS=0 mailboxes are polled");
  stop.abort();
  await expect.poll(async () => (await sent()).at(-1)).toMatch(/^STOPPING=1 STATUS=Stopping/);
  vitals.change();
  await reporting?.close();
  expect(await sent()).toHaveLength(3);
});

test("reports the start and end of a reload, even of refused settings", async () => {
  const { host, sent } = await setUp();
  report(host, true);
  await expect.poll(sent).toEqual([expect.stringContaining("READY=1 ")]);
  const order: string[] = [];
  await host?.reloading(async () => {
    order.push(...(await sent()));
  });
  expect(order.slice(1)).toEqual([expect.stringMatching(/^RELOADING=1 MONOTONIC_USEC=\d+$/)]);
  expect((await sent()).at(-1)).toBe("READY=1");
  await expect(host?.reloading(() => Promise.reject(new Error("no")))).rejects.toThrow("no");
  expect((await sent()).at(-1)).toBe("READY=1");
});

test("feeds the watchdog while work makes progress, and reports each stall once", async () => {
  const { host, sent, events } = await setUp({ WATCHDOG_USEC: "90000", WATCHDOG_PID: String(process.pid) });
  const vitals = report(host);
  const fed = async () => (await sent()).filter((line) => line === "WATCHDOG=1").length;
  const expected: string[] = [];
  for (const stalls of [["t1"], ["t1"], ["t2", "t1"]]) {
    const before = await fed();
    vitals.silent = undefined;
    await expect.poll(fed).toBeGreaterThan(before + 1);
    for (const work of stalls) {
      vitals.silent = work;
      expected.push(`stuck: ${work}`);
      await expect.poll(() => events).toEqual(expected);
    }
  }
  // Some notifications may be pending.
  const fedMore = async () => {
    const before = await fed();
    await new Promise((resolve) => setTimeout(resolve, 200));
    return (await fed()) - before;
  };
  await expect.poll(fedMore).toBe(0);
  expect(events).toEqual(expected);
});

test("feeds no watchdog of another process", async () => {
  const { host, sent } = await setUp({ WATCHDOG_USEC: "30000", WATCHDOG_PID: "1" });
  const reporting = host?.startReporting(new TestVitals(), SIGNAL);
  await expect.poll(sent).not.toEqual([]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await reporting?.close();
  expect(await sent()).not.toContain("WATCHDOG=1");
});

test("reports once that systemd cannot be notified", async () => {
  const events: string[] = [];
  const env = { NOTIFY_SOCKET: "/nowhere", PATH: await makeFolder() };
  const host = openHost(env, listenTo({ "supervisor-unreachable": ({ reason }) => events.push(reason) }));
  report(host);
  await expect.poll(() => events).toEqual(["systemd-notify was not found"]);
});

test("is undefined without systemd", () => {
  expect(openHost({}, () => {})).toBe(undefined);
});

class TestVitals implements Vitals {
  ready = false;
  silent: string | undefined;
  change: () => void = () => {};

  status(): Status {
    const totals = { attention: 0, downloading: 0, queued: 0 };
    return { troubles: [], totals, mailboxes: [], recent: [], downloading: [] } as unknown as Status;
  }

  isReady(): boolean {
    return this.ready;
  }

  stuck(): string | undefined {
    return this.silent;
  }

  onChange(listener: () => void): () => void {
    this.change = listener;
    return () => {
      this.change = () => {};
    };
  }
}

/** Until the test ends. */
function report(host: Host | undefined, ready = false): TestVitals {
  const vitals = Object.assign(new TestVitals(), { ready });
  const reporting = host?.startReporting(vitals, SIGNAL);
  onTestFinished(() => reporting?.close());
  return vitals;
}

async function setUp(env: Readonly<Record<string, string>> = {}) {
  const folder = await makeFolder();
  const note = join(folder, "sent");
  const bin = join(folder, "bin");
  await mkdir(bin);
  await writeFile(join(bin, "systemd-notify"), `#!/bin/sh\necho "$*" >> '${note}'\n`, { mode: 0o755 });
  const events: string[] = [];
  const host = openHost(
    { NOTIFY_SOCKET: join(folder, "socket"), PATH: bin, ...env },
    listenTo({
      "supervisor-unreachable": ({ reason }) => events.push(`deaf: ${reason}`),
      "work-stuck": ({ work }) => events.push(`stuck: ${work}`),
    }),
  );
  const sent = async () => (await readFile(note, "utf8").catch(() => "")).split("\n").filter(Boolean);
  return { host, sent, events };
}

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
