/** `run`: the daemon, until it is told to stop. */
import type { Command } from "commander";
import { runDaemon } from "../daemon.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { addDaemonOptions, type DaemonCommandOptions, GRACE_MS, prepareDaemon } from "./starting.ts";
import { tellLog } from "./telling.ts";

export function define(command: Command, run: Run): void {
  addDaemonOptions(command, "info").action((options: DaemonCommandOptions) =>
    run((context) => serve(context, options)),
  );
}

async function serve(context: Context, options: DaemonCommandOptions): Promise<Outcome> {
  const { settings, log } = await prepareDaemon(context, options, context.stdout);
  const { source: config, inbox, mailboxes } = settings;
  log.info({ config, inbox, mailboxes: mailboxes.length }, "starting");
  context.stop.addEventListener("abort", () => log.info({ graceMs: GRACE_MS }, "stopping"), { once: true });
  await runDaemon(settings, { mode: "run", stop: context.stop, graceMs: GRACE_MS, watch: tellLog(log) });
  log.info("stopped");
  return "fine";
}
