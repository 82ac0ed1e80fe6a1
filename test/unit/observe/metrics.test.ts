/** Metrics for alerts: none is missing, and none is wrong. */
import { expect, test } from "vitest";
import { createMonitor, type DaemonParts, openConsole } from "../../../src/daemon/console.ts";
import { LiveSettings } from "../../../src/daemon/live-settings.ts";
import { Events, listenTo } from "../../../src/model/events.ts";
import type { Expectation } from "../../../src/model/mailbox.ts";
import { Board } from "../../../src/observe/board.ts";
import { Metrics } from "../../../src/observe/metrics.ts";
import { FACTS, shownMailbox } from "../../support/board.ts";
import { pollSucceeded } from "../../support/events.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { mailboxSettings, pageSettings, settingsIn } from "../../support/settings.ts";

const START_MS = Date.UTC(2026, 2, 1, 8);
const ONE = shownMailbox("m");

test("every end state has a series before the first transfer ends in it, also after a reload, and every refused password is counted", async () => {
  const { metrics, grep } = open();
  expect(await grep("inlet_passwords")).toEqual(['inlet_passwords_refused_total{mailbox="m"} 0']);
  for (const _ of [1, 2]) metrics.listener({ type: "password-refused", record: makeRecord() });
  expect(await grep("inlet_passwords")).toEqual(['inlet_passwords_refused_total{mailbox="m"} 2']);
  expect(await grep("inlet_ended_total")).toEqual([
    'inlet_ended_total{mailbox="m",state="delivered"} 0',
    'inlet_ended_total{mailbox="m",state="quarantined"} 0',
    'inlet_ended_total{mailbox="m",state="gone"} 0',
  ]);
  metrics.listener({ type: "transfer-changed", record: makeRecord({ state: "gone" }) });
  metrics.listener({ type: "settings-reloaded", mailboxes: [ONE, { ...ONE, name: "n" }], needsRestart: [] });
  expect(await grep("inlet_ended_total")).toEqual(
    expect.arrayContaining([
      'inlet_ended_total{mailbox="m",state="gone"} 1',
      'inlet_ended_total{mailbox="n",state="gone"} 0',
    ]),
  );
});

test("a paused mailbox has no overdue poll", async () => {
  const { board, metrics, grep, pass } = open();
  board.listener(pollSucceeded({ mailbox: "m", listed: 0 }));
  pass(60_000);
  expect(await grep("inlet_mailbox_")).toEqual([
    'inlet_mailbox_up{mailbox="m"} 1',
    'inlet_mailbox_last_success_seconds{mailbox="m"} 60',
    'inlet_mailbox_poll_interval_seconds{mailbox="m"} 60',
    'inlet_mailbox_verification_ends{mailbox="m"} 0',
  ]);
  board.listener({ type: "settings-reloaded", mailboxes: [{ ...ONE, paused: true }], needsRestart: [] });
  metrics.listener({ type: "settings-reloaded", mailboxes: [ONE], needsRestart: [] });
  pass(7_200_000);
  expect(await grep("inlet_mailbox_")).toEqual([]);
});

test("an unreadable disk does not hide other metrics", async () => {
  const folder = await makeFolder();
  const mailbox = mailboxSettings({ url: "http://127.0.0.1:9", clientId: "c" });
  const live = new LiveSettings(settingsIn(folder, [mailbox], { http: pageSettings() }));
  const clock = { now: () => START_MS };
  const monitor = await createMonitor(live.now, true, clock, new Events());
  await using scope = new AsyncDisposableStack();
  const address = Promise.withResolvers<string>();
  const emit = listenTo({ "console-opened": (event) => address.resolve(event.address) });
  const refuse = () => Promise.reject(new Error("ENOENT"));
  const parts = { inbox: { freeBytes: refuse }, queue: { depth: refuse } } as unknown as DaemonParts;
  await openConsole({ live, monitor, clock, emit, stop: SIGNAL, parts: () => parts }, scope);
  const answer = await fetch(new URL("/metrics", await address.promise));
  const figures = await answer.text();
  expect([answer.status, figures]).toEqual([200, expect.stringContaining("inlet_build_info")]);
  expect(figures).not.toMatch(/^inlet_(free_bytes|queue_depth)/m);
});

test("counts the expected transfers of a mailbox that did not arrive, until they do", async () => {
  const { board, grep } = open(["m", "n"]);
  const overdue = ["06:00", "12:00"].map((time) => ({
    mailbox: "m",
    expectation: { described: `*@bank.example by ${time}` } as Expectation,
    dueMs: START_MS,
  }));
  board.listener({ type: "overdue-listed", overdue });
  expect(await grep("inlet_expected_missing")).toEqual([
    'inlet_expected_missing{mailbox="m"} 2',
    'inlet_expected_missing{mailbox="n"} 0',
  ]);
  board.listener({ type: "overdue-listed", overdue: [] });
  expect((await grep("inlet_expected_missing"))[0]).toBe('inlet_expected_missing{mailbox="m"} 0');
});

function open(names: readonly string[] = ["m"]) {
  let nowMs = START_MS;
  const clock = { now: () => nowMs };
  const mailboxes = names.map((name) => shownMailbox(name));
  const board = new Board(FACTS, mailboxes, clock);
  const metrics = new Metrics(mailboxes, "1", () => board.read(), clock);
  return {
    board,
    metrics,
    async grep(name: string) {
      const text = await metrics.text({ freeBytes: 1, queueDepth: 0 });
      return text.split("\n").filter((line) => line.startsWith(name));
    },
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}
