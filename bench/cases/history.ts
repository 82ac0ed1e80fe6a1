/** The cost of a long history at a start, and for a command without a daemon. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Bench, serveRecording, writeConfig } from "../support/bench.ts";
import { inventDelivered, writeJournal, writeOutbox, writeRecords } from "../support/past.ts";
import { alone, besides, type Row } from "../support/rows.ts";
import { median, timeCommands } from "../support/timing.ts";
import { timeStart } from "./daemon.ts";

const MAILBOX = "mailbox-1";

export async function measureHistory(bench: Bench): Promise<Row[]> {
  await using served = await serveRecording(bench, { transfers: 0, files: 0, bytes: 0 });
  const { url } = served.nginx;
  const ended = Math.round(200_000 * bench.scale);
  const waiting = Math.round(60_000 * bench.scale);
  const [young, old, full] = [0, ended, 0].map((past) => prepare(bench, past)) as [string, string, string];
  writeRecords(join(full, "work"), MAILBOX, inventDelivered(waiting));
  writeOutbox(join(full, "work"), MAILBOX, inventDelivered(waiting));
  const seconds: Record<"young" | "old" | "status", number[]> = { young: [], old: [], status: [] };
  for (let round = 0; round < bench.rounds; round++) {
    seconds.young.push(await timeStart(bench, young, url));
    seconds.old.push(await timeStart(bench, old, url));
    seconds.status.push(await timeStatus(bench, full, url));
    bench.log(
      `  ${seconds.young.at(-1)?.toFixed(2)} s  ${seconds.old.at(-1)?.toFixed(2)} s until it is ready`,
    );
  }
  const past = `start to ready with ${ended.toLocaleString("en")} ended transfers, and as many lines in the journal of this month`;
  const status = `\`inlet status\` without a daemon, ${waiting.toLocaleString("en")} deliveries not picked up`;
  return [
    besides(past, "with none", "s", [median(seconds.old), median(seconds.young)], [1.1, 1]),
    alone(status, "s", median(seconds.status), [1, 0.6]),
  ];
}

function prepare({ folder }: Bench, past: number): string {
  const own = join(folder, `history-${crypto.randomUUID()}`);
  mkdirSync(own);
  if (past > 0) {
    writeRecords(join(own, "work"), MAILBOX, inventDelivered(past));
    writeJournal(join(own, "work"), MAILBOX, [...inventDelivered(past)]);
  }
  return own;
}

async function timeStatus({ launcher, tools, stop }: Bench, folder: string, url: string): Promise<number> {
  const config = writeConfig(folder, { url });
  // It exits with 4, because no daemon answers.
  const status = [process.execPath, launcher, "status", "--config", config];
  const command = { program: "sh", args: ["-c", '"$@"; [ $? -eq 4 ]', "sh", ...status] };
  return (await timeCommands(tools, folder, [command], stop)).seconds;
}
