/** The measured figures: saved as a file, and formatted as tables for a terminal and for pages. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { Profile } from "./cases/profiles.ts";
import type { Machine } from "./support/machine.ts";
import { formatTable } from "./support/markdown.ts";
import { GROUPS } from "./support/profile.ts";
import { type Row, resultOf } from "./support/rows.ts";

const FILE = resolve(import.meta.dirname, "figures.json");

export interface Figures {
  readonly machine: Machine & { readonly tools: Readonly<Record<string, string>> };
  readonly rounds: number;
  /** By name of the case. */
  readonly cases: Readonly<Record<string, readonly Row[]>>;
  readonly profiles: readonly Profile[];
}

/** The file is part of the project. */
export function readFigures(): Figures {
  return JSON.parse(readFileSync(FILE, "utf8")) as Figures;
}

export function writeFigures(figures: Figures): void {
  writeFileSync(FILE, `${JSON.stringify(figures, roundedNumbers, 2)}\n`);
}

/** Further digits would be noise. */
function roundedNumbers(_key: string, value: unknown): unknown {
  return typeof value === "number" ? Number(value.toPrecision(4)) : value;
}

/** By the name of their place in the page. */
export function formatFigures({ machine, rounds, cases, profiles }: Figures): Record<string, string> {
  const facts: readonly (readonly [string, string])[] = [
    ["processor", `${machine.processor}, ${machine.cores} cores`],
    ["memory", `${machine.memoryGib.toFixed(1)} GiB`],
    ["a small file created and synced", `${machine.fsyncMs.toFixed(2)} ms`],
    ["a small file removed", `${machine.removeMs.toFixed(2)} ms`],
    ["Node", machine.node],
    ...Object.entries(machine.tools),
    ["rounds of each comparison", String(rounds)],
  ];
  const tables = Object.entries(cases).map(([name, rows]) => [name, formatRows(rows)]);
  return {
    machine: formatTable(facts, { what: ([what]) => what, here: ([, here]) => here }),
    ...Object.fromEntries(tables),
    profiles: formatProfiles(profiles),
  };
}

/** One column for each profile, in shares of the time. */
export function formatProfiles(profiles: readonly Profile[]): string {
  const groups = Object.keys(GROUPS) as (keyof typeof GROUPS)[];
  const columns = profiles.map(({ what, shares }) => [
    what,
    (group: keyof typeof GROUPS) => `${(shares[group] * 100).toFixed(0)} %`,
  ]);
  return formatTable(groups, {
    "the main thread's time": (group) => GROUPS[group],
    ...Object.fromEntries(columns),
  });
}

/** The most important comparisons with other programs, without a delay. */
export function formatSummary({ cases }: Figures): Record<string, string> {
  const rows = ["large-file", "many-files", "many-transfers", "polls"]
    .flatMap((name) => cases[name] ?? [])
    .filter(
      ({ unit, beside }) =>
        (unit === "s" || unit === "ms") &&
        beside !== undefined &&
        !/^with|^Inlet before|^the same, then|alone/.test(beside),
    );
  return {
    summary: formatTable(rows, {
      what: ({ what }) => what,
      "compared with": ({ beside = "" }) => beside,
      "Inlet takes": (row) =>
        `${(isRatio(row) ? row.value : row.ours / (row.theirs ?? Number.NaN)).toFixed(2)} × the time`,
    }),
  };
}

/** One row for each task, with the seconds of each program. */
export function formatLink({ cases }: Figures): Record<string, string> {
  const tasks = Object.entries(Object.groupBy(cases["real-link"] ?? [], ({ what }) => what));
  const secondsOf = (rows: readonly Row[] = [], program: string) => {
    const { theirs } = rows.find(({ beside = "" }) => beside.includes(program)) ?? {};
    return theirs === undefined ? "" : `${rounded(theirs)} s`;
  };
  const programs = ["script", "rclone", "aria2", "curl"].map((program) => [
    program,
    ([, rows]: (typeof tasks)[number]) => secondsOf(rows, program),
  ]);
  return {
    "real-link": formatTable(tasks, {
      what: ([what]) => what,
      Inlet: ([, rows]) => `${rounded(rows?.[0]?.ours ?? Number.NaN)} s`,
      ...Object.fromEntries(programs),
    }),
  };
}

export function formatRows(rows: readonly Row[]): string {
  return formatTable(rows, {
    what: ({ what }) => what,
    "compared with": ({ beside = "" }) => beside,
    Inlet: ({ ours, unit }) => `${rounded(ours)} ${unit}`,
    other: ({ theirs, unit }) => (theirs === undefined ? "" : `${rounded(theirs)} ${unit}`),
    ratio: (row) => (isRatio(row) ? `${row.value.toFixed(2)} ×` : ""),
    must: (row) => limit(row, row.must),
    aim: (row) => limit(row, row.aim),
    verdict: resultOf,
  });
}

/** Otherwise the limits apply to our own figure. */
function isRatio({ value, ours }: Row): boolean {
  return value !== ours;
}

function limit(row: Row, value: number | undefined): string {
  if (value === undefined) return "";
  return isRatio(row) ? `${value} ×` : String(value);
}

function rounded(value: number): string {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
