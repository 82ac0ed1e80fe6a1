/** `once`: polls every mailbox once, collects all that can be collected, and ends. For cron and timers. */
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { type DaemonWatch, runDaemon } from "../daemon.ts";
import type { TransferRecord } from "../model/record.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { printJson, say } from "./printing.ts";
import { addDaemonOptions, type DaemonCommandOptions, GRACE_MS, prepareDaemon } from "./starting.ts";
import { tellLog } from "./telling.ts";

interface OnceOptions extends DaemonCommandOptions {
  readonly json?: boolean;
}

const USUAL_LEVEL = "warn";

export function define(command: Command, run: Run): void {
  addDaemonOptions(command, USUAL_LEVEL)
    .option("--json", "print what became of each transfer as JSON")
    .action((options: OnceOptions) => run((context) => collectOnce(context, options)));
}

async function collectOnce(context: Context, options: OnceOptions): Promise<Outcome> {
  const { settings, log } = await prepareDaemon(context, options, context.stderr, USUAL_LEVEL);
  const last = new Map<string, TransferRecord>();
  const { failedPolls, unsettled } = await runDaemon(settings, {
    mode: "once",
    stop: context.stop,
    graceMs: GRACE_MS,
    watch: remembering(tellLog(log), last),
  });
  const ended = [...last.values()];
  const count = (state: string) => ended.filter((record) => record.state === state).length;
  if (options.json) {
    printJson(
      context,
      ended.map(({ mailbox, trackingId, sender, state, reason, folder, until }) => ({
        mailbox,
        trackingId,
        sender,
        state,
        reason,
        folder,
        until,
      })),
    );
  } else {
    say(
      context,
      `${count("delivered")} delivered, ${count("waiting")} waiting, ${count("quarantined")} quarantined, ${count("gone")} gone.`,
    );
  }
  if (context.stop.aborted) throw new Fault("STOPPED");
  const before = unsettled - count("waiting") - count("quarantined");
  if (before > 0 && !options.json) {
    say(context, `${before} more not settled, of earlier runs or after their delivery: see inlet status.`);
  }
  if (failedPolls > 0) return "unreachable";
  return unsettled + count("gone") > 0 ? "attention" : "fine";
}

/** The last state of every transfer that was touched. */
function remembering(watch: DaemonWatch, last: Map<string, TransferRecord>): DaemonWatch {
  return {
    ...watch,
    stateChanged(record, fault) {
      last.set(`${record.mailbox}\0${record.trackingId}`, record);
      watch.stateChanged(record, fault);
    },
  };
}
