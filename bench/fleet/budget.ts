/** The needs of a large fleet for Redis, hosts and service, computed from the measured figures. */

import { formatTable, grouped } from "../support/markdown.ts";
import type { Downloads, Waiting } from "./download.ts";
import type { Polled } from "./polls.ts";

/** The fleet of the example. */
const FLEET = { transfersPerSecond: 100, waiting: 1_000_000, mailboxes: 50_000, everySeconds: 60 };
const POLLS_PER_SECOND = FLEET.mailboxes / FLEET.everySeconds;

/** A scheduler with this share of the wanted polls is not at its limit. */
const ENOUGH = 0.95;

interface Measured {
  readonly waiting?: Waiting;
  readonly download?: readonly Downloads[];
  readonly polls?: readonly Polled[];
}

interface Line {
  readonly what: string;
  readonly computed: string;
  readonly needs: string;
}

/** `undefined` unless all cases were measured. */
export function formatBudget({ waiting, download = [], polls = [] }: Measured): string | undefined {
  const worker = download.find(({ title }) => title === "1 worker");
  const scheduler = polls.find(({ title }) => title === "1 scheduler");
  const slow = polls.find(({ title }) => title === "1 scheduler, slow lists");
  if (waiting === undefined || worker === undefined || scheduler === undefined) return undefined;
  const lines = [
    ...redisLines(waiting, worker, scheduler),
    ...hostLines(waiting, worker, scheduler),
    ...(slow === undefined ? [] : slowLines(slow)),
  ];
  return formatTable(lines, {
    what: ({ what }) => what,
    "computed from the measured figures": ({ computed }) => computed,
    needs: ({ needs }) => needs,
  });
}

function redisLines(waiting: Waiting, worker: Downloads, scheduler: Polled): Line[] {
  if (worker.redis === undefined || scheduler.redis === undefined) return [];
  const perPoll = (total: number) => total / scheduler.polls;
  const bytesPerMailbox = Math.round(scheduler.bytesPerMailbox ?? 0);
  const bytesPerTransfer = Math.round(waiting.bytes);
  const bytes = FLEET.waiting * bytesPerTransfer + FLEET.mailboxes * bytesPerMailbox;
  return [
    line("Redis commands per s", { each: worker.redis.commands, poll: perPoll(scheduler.redis.commands) }),
    line("cores for Redis", {
      each: millisecondsEach(worker, "Redis"),
      poll: millisecondsPerPoll(scheduler, "Redis"),
      ...MILLISECONDS,
    }),
    line("Redis's network, MiB per s", {
      each: worker.redis.networkBytes / 1024,
      poll: perPoll(scheduler.redis.networkBytes) / 1024,
      unit: " KiB",
      perResult: 1024,
    }),
    {
      what: "Redis's memory, MiB",
      computed:
        `${grouped(FLEET.waiting)} waiting transfers × ${grouped(bytesPerTransfer)} bytes + ` +
        `${grouped(FLEET.mailboxes)} mailboxes × ${grouped(bytesPerMailbox)} bytes`,
      needs: grouped(bytes / 1024 ** 2),
    },
  ];
}

function hostLines(waiting: Waiting, worker: Downloads, scheduler: Polled): Line[] {
  const discover = (waiting.schedulerSeconds / waiting.transfers) * 1000;
  const pollsPerSecond = scheduler.polledPerMinute / 60;
  return [
    line("cores for schedulers", {
      each: discover,
      poll: millisecondsPerPoll(scheduler, "scheduler"),
      ...MILLISECONDS,
    }),
    line("cores for workers", { each: millisecondsEach(worker, "worker"), poll: 0, ...MILLISECONDS }),
    line("requests per s to the service", {
      each: worker.requests,
      poll: scheduler.averageSecond / pollsPerSecond,
    }),
  ];
}

/** Only a scheduler at its limit shows how much one can do. */
function slowLines({ polledPerMinute, wantedPerMinute }: Polled): Line[] {
  if (polledPerMinute > wantedPerMinute * ENOUGH) return [];
  const wanted = POLLS_PER_SECOND * 60;
  return [
    {
      what: "schedulers, where lists are slow",
      computed: `${grouped(wanted)} polls per min ÷ ${grouped(polledPerMinute)} per scheduler`,
      needs: String(Math.ceil(wanted / polledPerMinute)),
    },
  ];
}

const MILLISECONDS = { unit: " ms", perResult: 1000 };

function millisecondsEach({ cpuSeconds, transfers }: Downloads, part: "worker" | "Redis"): number {
  return (cpuSeconds[part] / transfers) * 1000;
}

function millisecondsPerPoll({ cores, polledPerMinute }: Polled, part: "scheduler" | "Redis"): number {
  return (cores[part] / (polledPerMinute / 60)) * 1000;
}

interface Terms {
  /** Per transfer. */
  readonly each: number;
  readonly poll: number;
  readonly unit?: string;
  /** Units per unit of the result. */
  readonly perResult?: number;
}

/** Multiplies the rounded figures, so that readers can check the result. */
function line(what: string, { each, poll, unit = "", perResult = 1 }: Terms): Line {
  const { transfersPerSecond } = FLEET;
  const [shownEach, shownPoll, shownPolls] = [each.toFixed(2), poll.toFixed(2), POLLS_PER_SECOND.toFixed(0)];
  const terms = [`${transfersPerSecond} transfers × ${shownEach}${unit}`];
  if (poll > 0) terms.push(`${shownPolls} polls × ${shownPoll}${unit}`);
  const total = transfersPerSecond * Number(shownEach) + Number(shownPolls) * Number(shownPoll);
  const result = total / perResult;
  return { what, computed: terms.join(" + "), needs: result >= 100 ? grouped(result) : result.toFixed(2) };
}
