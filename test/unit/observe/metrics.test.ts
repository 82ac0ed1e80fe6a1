/** Figures that alerts rest on: none is missing, and none says what is not so. */
import { expect, test } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import { Scope } from "../../../src/base/scope.ts";
import { createDesk } from "../../../src/daemon/desk.ts";
import type { Inbox } from "../../../src/inbox/port.ts";
import { Board } from "../../../src/observe/board.ts";
import { Metrics } from "../../../src/observe/metrics.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { mailboxSettings, pageSettings, settingsIn, watchWith } from "../../support/settings.ts";

const START_MS = Date.UTC(2026, 2, 1, 8);
const FACTS = { program: "1", host: "h", pid: 1, queue: "embedded", role: "all", inbox: "/inbox" } as const;
const ONE = { name: "m", email: "m@example.com", pollMs: 60_000, paused: false };

test("every way in which transfers end has a series before the first one ends so, also after a reload", async () => {
  const { metrics, grep } = open();
  expect(await grep("inlet_ended_total")).toEqual([
    'inlet_ended_total{mailbox="m",state="delivered"} 0',
    'inlet_ended_total{mailbox="m",state="quarantined"} 0',
    'inlet_ended_total{mailbox="m",state="gone"} 0',
  ]);
  metrics.stateChanged(makeRecord({ state: "gone" }));
  metrics.setMailboxes(["m", "n"]);
  expect(await grep("inlet_ended_total")).toEqual(
    expect.arrayContaining([
      'inlet_ended_total{mailbox="m",state="gone"} 1',
      'inlet_ended_total{mailbox="n",state="gone"} 0',
    ]),
  );
});

test("a mailbox that is paused has no poll that it lacks", async () => {
  const { board, metrics, grep, pass } = open();
  board.polled("m", 0);
  pass(60_000);
  expect(await grep("inlet_mailbox_")).toEqual([
    'inlet_mailbox_up{mailbox="m"} 1',
    'inlet_mailbox_last_success_seconds{mailbox="m"} 60',
    'inlet_mailbox_poll_interval_seconds{mailbox="m"} 60',
  ]);
  board.setMailboxes([{ ...ONE, paused: true }]);
  metrics.setMailboxes(["m"]);
  pass(7_200_000);
  expect(await grep("inlet_mailbox_")).toEqual([]);
});

test("every refused password is counted", async () => {
  const { metrics, grep } = open();
  expect(await grep("inlet_passwords")).toEqual(['inlet_passwords_refused_total{mailbox="m"} 0']);
  metrics.passwordRefused(makeRecord());
  metrics.passwordRefused(makeRecord());
  expect(await grep("inlet_passwords")).toEqual(['inlet_passwords_refused_total{mailbox="m"} 2']);
});

test("a disk that cannot be asked keeps no other figure back", async () => {
  const folder = await makeFolder();
  const mailbox = mailboxSettings({ url: "http://127.0.0.1:9", clientId: "c" });
  const settings = settingsIn(folder, [mailbox], { http: pageSettings() });
  const desk = await createDesk(settings, { now: () => START_MS });
  await using scope = new Scope();
  const address = Promise.withResolvers<string>();
  const watch = watchWith({ pageOpened: address.resolve });
  const inbox = { freeBytes: () => Promise.reject(new Error("ENOENT")) } as unknown as Inbox;
  await desk.open(inbox, scope, watch, SIGNAL);
  const answer = await fetch(new URL("/metrics", await address.promise));
  const figures = await answer.text();
  expect([answer.status, figures]).toEqual([200, expect.stringContaining("inlet_build_info")]);
  expect(figures).not.toMatch(/^inlet_(free_bytes|queue_depth)/m);
});

test("tells how many expected transfers of a mailbox did not come, and that they came after all", async () => {
  const mailboxes = ["m", "n"].map((name) => ({ name, email: name, pollMs: 60_000, paused: false }));
  const board = new Board(FACTS, mailboxes, systemClock);
  const gauged = { status: () => board.read(), freeBytes: async () => 0, queueDepth: async () => 0 };
  const metrics = new Metrics(["m", "n"], "1", gauged, systemClock);
  const read = async () => (await metrics.text()).match(/^inlet_expected_missing\{.*$/gm);
  board.missed("m", "*@bank.example by 06:00", Date.now());
  board.missed("m", "*@bank.example by 12:00", Date.now());
  expect(await read()).toEqual([
    'inlet_expected_missing{mailbox="m"} 2',
    'inlet_expected_missing{mailbox="n"} 0',
  ]);
  board.arrived("m", "*@bank.example by 06:00");
  board.arrived("m", "*@bank.example by 12:00");
  expect((await read())?.[0]).toBe('inlet_expected_missing{mailbox="m"} 0');
});

function open() {
  let nowMs = START_MS;
  const clock = { now: () => nowMs };
  const board = new Board(FACTS, [ONE], clock);
  const gauged = { status: () => board.read(), freeBytes: async () => 1, queueDepth: async () => 0 };
  const metrics = new Metrics(["m"], "1", gauged, clock);
  return {
    board,
    metrics,
    grep: async (name: string) => (await metrics.text()).split("\n").filter((line) => line.startsWith(name)),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}
