/** Formats the figures as tables, for a terminal and for the page. */

import type { Machine } from "../support/machine.ts";
import { type Columns, fixed, formatTable, grouped } from "../support/markdown.ts";
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
  const { machine, waiting, download, slow, mailboxes, polls } = figures;
  const budget = formatBudget(figures);
  return {
    machine: formatMachine(machine),
    ...(download && {
      download: formatSpeed(download, "1 worker", machine.cores),
      "download-taken": formatTable(download, TAKEN),
    }),
    ...(waiting && { waiting: formatTable([waiting], WAITING) }),
    ...(slow && {
      slow: formatSpeed(slow, "1 worker", machine.cores),
      "slow-taken": formatTable(slow, TAKEN),
    }),
    ...(mailboxes && {
      mailboxes: formatSpeed(mailboxes, mailboxes[0]?.title, machine.cores),
      "mailboxes-taken": formatTable(mailboxes, TAKEN),
    }),
    ...(polls && {
      start: formatTable(polls, START),
      polls: formatTable(polls, POLLS),
      "polls-taken": formatTable(polls, POLLS_TAKEN),
    }),
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
    "in s": ({ downloadSeconds }) => downloadSeconds.toFixed(1),
    "per s": ({ perSecond }) => perSecond.toFixed(1),
    "×": ({ perSecond }) => (perSecond / base).toFixed(2),
    "workers' CPU s": ({ cpuSeconds }) => cpuSeconds.worker.toFixed(1),
    "scheduler's CPU s": ({ cpuSeconds }) => cpuSeconds.scheduler.toFixed(1),
    "Redis's CPU s": ({ cpuSeconds }) => cpuSeconds.Redis.toFixed(1),
    "service's CPU s": ({ cpuSeconds }) => cpuSeconds.service.toFixed(1),
    "others' CPU s": ({ cpuSeconds }) => cpuSeconds.others.toFixed(1),
    [`busy cores of ${cores}`]: (row) => busy(row).toFixed(2),
    "busiest thread": ({ busiest }) => `${busiest.part} ${Math.round(busiest.share * 100)} %`,
    "limited by": (row) => limitOf(row, busy(row), cores),
  });
}

function limitOf({ busiest, cpuSeconds, downloadSeconds }: Downloads, busy: number, cores: number): string {
  if (busiest.share >= FULL) return `the ${busiest.part}'s thread`;
  if (busy < FULL * cores) return "waiting for answers and the disk";
  const others = cpuSeconds.others / downloadSeconds;
  return others > busy - others ? "other programs" : "the cores";
}

const TAKEN: Columns<Downloads> = {
  processes: ({ title }) => title,
  "a worker, MiB": ({ peakMib }) => peakMib.worker.toFixed(0),
  "scheduler, MiB": ({ peakMib }) => fixed(peakMib.scheduler, 0),
  "Redis, MiB": ({ peakMib }) => fixed(peakMib.Redis, 0),
  "service, MiB": ({ peakMib }) => peakMib.service.toFixed(0),
  "requests per transfer": ({ requests }) => requests.toFixed(1),
  "Redis commands per transfer": ({ redis }) => fixed(redis?.commands, 1),
  "scripts per transfer": ({ redis }) => fixed(redis?.scripts, 1),
  "Redis traffic per transfer, KiB": ({ redis }) => fixed(redis && redis.networkBytes / 1024, 1),
};

const WAITING: Columns<Waiting> = {
  transfers: ({ transfers }) => grouped(transfers),
  "discovered in s": ({ discoverSeconds }) => discoverSeconds.toFixed(1),
  "per s": ({ transfers, discoverSeconds }) => (transfers / discoverSeconds).toFixed(0),
  "scheduler's CPU s": ({ schedulerSeconds }) => schedulerSeconds.toFixed(1),
  "bytes of Redis per waiting transfer": ({ bytes }) => grouped(bytes),
};

const START: Columns<Polled> = {
  processes: ({ title }) => title,
  mailboxes: ({ mailboxes }) => grouped(mailboxes),
  every: ({ everySeconds }) => `${everySeconds} s`,
  "configuration read after s": ({ start }) => start.readSeconds.toFixed(1),
  "ready after s": ({ start }) => start.readySeconds.toFixed(1),
  "all polled after s": ({ start }) => start.polledSeconds.toFixed(1),
  requests: ({ start }) => grouped(start.requests),
  "requests in the busiest second": ({ start }) => grouped(start.busiestSecond),
  "bytes of Redis per mailbox": ({ bytesPerMailbox }) =>
    bytesPerMailbox === undefined ? "" : grouped(bytesPerMailbox),
};

const POLLS: Columns<Polled> = {
  processes: ({ title }) => title,
  mailboxes: ({ mailboxes }) => grouped(mailboxes),
  every: ({ everySeconds }) => `${everySeconds} s`,
  "polls per min wanted": ({ wantedPerMinute }) => grouped(wantedPerMinute),
  "polls per min": ({ polledPerMinute }) => grouped(polledPerMinute),
  "longest gap": ({ longestGapSeconds }) => `${longestGapSeconds.toFixed(0)} s`,
  "requests per s": ({ averageSecond }) => averageSecond.toFixed(0),
  "requests in the busiest second": ({ busiestSecond }) => grouped(busiestSecond),
  "busiest ÷ average": ({ busiestSecond, averageSecond }) => (busiestSecond / averageSecond).toFixed(1),
};

const POLLS_TAKEN: Columns<Polled> = {
  processes: ({ title }) => title,
  "polls per min": ({ polledPerMinute }) => grouped(polledPerMinute),
  "polling process, cores": ({ cores }) => (cores.scheduler || cores.worker).toFixed(2),
  "Redis, cores": ({ cores }) => fixed(cores.Redis, 2),
  "service, cores": ({ cores }) => cores.service.toFixed(2),
  "others, cores": ({ cores }) => cores.others.toFixed(2),
  "polling process, MiB": ({ peakMib }) => (peakMib.scheduler || peakMib.worker).toFixed(0),
  "idle worker, MiB": ({ peakMib, redis }) => fixed(redis && peakMib.worker, 0),
  "Redis, MiB": ({ peakMib }) => fixed(peakMib.Redis, 0),
  "Redis commands per s": ({ redis, polls, polledPerMinute }) =>
    redis === undefined ? "" : grouped(((redis.commands / polls) * polledPerMinute) / 60),
  "Redis commands per poll": ({ redis, polls }) => fixed(redis && redis.commands / polls, 1),
  "scripts per poll": ({ redis, polls }) => fixed(redis && redis.scripts / polls, 1),
  "Redis traffic per poll, KiB": ({ redis, polls }) => fixed(redis && redis.networkBytes / polls / 1024, 1),
};
