/** Formats the figures as tables, for a terminal and for the page. */

import type { Machine } from "../support/machine.ts";
import { type Columns, formatTable, grouped } from "../support/markdown.ts";
import { formatBudget } from "./budget.ts";
import type { Downloads, Waiting } from "./download.ts";
import type { Polled } from "./polls.ts";

export interface FleetMachine extends Machine {
  /** The version. */
  readonly redis: string;
  /** To Redis and back; the median of many. */
  readonly roundTripMs: number;
}

export interface Figures {
  readonly machine: FleetMachine;
  readonly waiting?: Waiting;
  readonly download?: readonly Downloads[];
  readonly slow?: readonly Downloads[];
  readonly mailboxes?: readonly Downloads[];
  readonly polls?: readonly Polled[];
}

/** A core, or all cores, used to this share are the limit. */
const FULL = 0.9;

/** By the name of the place in the page. Tables of cases that did not run are missing. */
export function formatTables(figures: Figures): Record<string, string> {
  const { machine, download, slow, mailboxes, polls } = figures;
  const budget = formatBudget(figures);
  return {
    machine: formatMachine(machine),
    ...(download && { download: formatSpeed(download, "1 worker", machine.cores) }),
    ...(slow && { slow: formatSpeed(slow, "1 worker", machine.cores) }),
    ...(mailboxes && { mailboxes: formatSpeed(mailboxes, mailboxes[0]?.title, machine.cores) }),
    ...(polls && { polls: formatTable(polls, POLLS) }),
    ...(budget && { budget }),
  };
}

function formatMachine(machine: FleetMachine): string {
  const facts: readonly (readonly [string, string])[] = [
    ["processor", `${machine.processor}, ${machine.cores} cores`],
    ["memory", `${machine.memoryGib.toFixed(1)} GiB`],
    ["Node", machine.node],
    ["Redis", `${machine.redis}, on the same machine, without persistence`],
    ["a round trip to Redis", `${machine.roundTripMs.toFixed(2)} ms`],
    ["a small file created and synced", `${machine.fsyncMs.toFixed(2)} ms`],
  ];
  return formatTable(facts, { what: ([what]) => what, here: ([, here]) => here });
}

/** `compared`: the title of the row that the others are compared with. */
function formatSpeed(rows: readonly Downloads[], compared: string | undefined, cores: number): string {
  const base = rows.find(({ title }) => title === compared)?.perSecond ?? Number.NaN;
  const busy = ({ cpuSeconds, downloadSeconds }: Downloads) =>
    Object.values(cpuSeconds).reduce((sum, seconds) => sum + seconds, 0) / downloadSeconds;
  return formatTable(rows, {
    processes: ({ title }) => title,
    transfers: ({ transfers }) => grouped(transfers),
    "per s": ({ perSecond }) => perSecond.toFixed(1),
    "×": ({ perSecond }) => (perSecond / base).toFixed(2),
    "workers' CPU s": ({ cpuSeconds }) => cpuSeconds.worker.toFixed(1),
    [`busy cores of ${cores}`]: (row) => busy(row).toFixed(2),
    "limited by": (row) => limitOf(row, busy(row), cores),
  });
}

function limitOf({ busiest, cpuSeconds, downloadSeconds }: Downloads, busy: number, cores: number): string {
  if (busiest.share >= FULL) return `the ${busiest.part}'s thread`;
  if (busy < FULL * cores) return "waiting";
  const others = cpuSeconds.others / downloadSeconds;
  return others > busy - others ? "other programs" : "the cores";
}

const POLLS: Columns<Polled> = {
  processes: ({ title }) => title,
  mailboxes: ({ mailboxes }) => grouped(mailboxes),
  every: ({ everySeconds }) => `${everySeconds} s`,
  "polls per min wanted": ({ wantedPerMinute }) => grouped(wantedPerMinute),
  "polls per min": ({ polledPerMinute }) => grouped(polledPerMinute),
  "longest gap": ({ longestGapSeconds }) => `${longestGapSeconds.toFixed(0)} s`,
  "all polled after a start, s": ({ start }) => start.polledSeconds.toFixed(1),
  "polling process, MiB": ({ peakMib }) => (peakMib.scheduler || peakMib.worker).toFixed(0),
};
