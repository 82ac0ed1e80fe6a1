/** How long an administrator waits for a command, beside an empty program of Node. */
import { join } from "node:path";
import { type Bench, inFolder, serveRecording, writeConfig } from "../support/bench.ts";
import { startLive } from "../support/live.ts";
import { inventDelivered, writeRecords } from "../support/past.ts";
import { besides, type Row } from "../support/rows.ts";
import { median, timeCommands } from "../support/timing.ts";

/** What a person takes for immediate. */
const LIMIT_SECONDS = 0.25;
const MAILBOX = "mailbox-1";
const TRANSFERS = 1_000;

export async function measureCommands(bench: Bench): Promise<Row[]> {
  await using served = await serveRecording(bench, { transfers: 0, files: 0, bytes: 0 });
  return await inFolder(bench, (folder) => measureIn(bench, folder, served.nginx.url));
}

async function measureIn(bench: Bench, folder: string, url: string): Promise<Row[]> {
  const { launcher, tools, stop, rounds } = bench;
  writeRecords(join(folder, "work"), MAILBOX, inventDelivered(TRANSFERS));
  const config = writeConfig(folder, { url, poll: "60s" });
  await using live = await startLive(launcher, config, folder, stop);
  const listen = `unix:${live.socket}`;
  const commands = [
    ["`inlet --help`", ["--help"]],
    ["`inlet status`, with a daemon", ["status", "--config", config]],
    [`\`inlet list\`, ${TRANSFERS.toLocaleString("en")} transfers`, ["list", "--config", config]],
    ["`inlet show`", ["show", "--config", config, inventDelivered(1).next().value?.trackingId ?? ""]],
  ] as const;
  const time = async (args: readonly string[]) => {
    const env = { INLET_HTTP__LISTEN: listen };
    return (await timeCommands(tools, folder, [{ program: process.execPath, args, env }], stop)).seconds;
  };
  const seconds = commands.map((): number[] => []);
  const empty: number[] = [];
  for (let round = 0; round < 2 * rounds; round++) {
    empty.push(await time(["-e", "0"]));
    for (const [at, [, args]] of commands.entries()) seconds[at]?.push(await time([launcher, ...args]));
    bench.log(`  ${seconds.map((all) => all.at(-1)?.toFixed(2)).join("  ")} s`);
  }
  await live.daemon.stop();
  return commands.map(([what], at) => {
    const row = besides(what, "`node -e 0`", "s", [median(seconds[at] ?? []), median(empty)]);
    return { ...row, value: row.ours, must: LIMIT_SECONDS, aim: LIMIT_SECONDS / 2 };
  });
}
