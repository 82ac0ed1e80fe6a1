/** What one small transfer asks of the file system: the difference between a run with many of them and one with few. */

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Bench, serveRecording } from "../support/bench.ts";
import { type Calls, countCalls } from "../support/calls.ts";
import { alone, type Row } from "../support/rows.ts";

const [FEW, MANY] = [1, 21];
const FILES = { files: 3, bytes: 10 * 1024 };
const SYNCS = ["fsync", "fdatasync"];

export async function measureCalls(bench: Bench): Promise<Row[]> {
  const [few, many] = [await count(bench, FEW), await count(bench, MANY)];
  const perTransfer = (name: string) => ((many.get(name) ?? 0) - (few.get(name) ?? 0)) / (MANY - FEW);
  const names = [...many.keys()].toSorted((one, other) => perTransfer(other) - perTransfer(one));
  const sum = (which: readonly string[]) => which.reduce((total, name) => total + perTransfer(name), 0);
  const what = "a transfer of 3 files of 10 KiB";
  return [
    alone(`${what}: all calls`, "calls", sum(names), [60, 45]),
    alone(`${what}: \`fsync\` and \`fdatasync\``, "fsyncs", sum(SYNCS), [12, 10]),
    ...names.filter((name) => perTransfer(name) >= 0.5).map((name) => only(`\`${name}\``, perTransfer(name))),
  ];
}

async function count(bench: Bench, transfers: number): Promise<Calls> {
  const folder = join(bench.folder, String(transfers));
  mkdirSync(folder);
  const content = { ...FILES, transfers };
  await using served = await serveRecording({ ...bench, folder }, content);
  return await countCalls(bench, { url: served.nginx.url }, content);
}

/** Nothing is demanded of it. */
function only(what: string, calls: number): Row {
  return { what, unit: "calls", ours: calls, value: calls };
}
