/** `once`: polls every mailbox once, collects all that can be collected, and ends. For cron and timers. */
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { loadSettings } from "../config/load.ts";
import { type DaemonWatch, runDaemon } from "../daemon.ts";
import type { Receipt } from "../model/receipt.ts";
import { createLog } from "../observe/log.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { printJson, say } from "./printing.ts";
import { tellLog } from "./telling.ts";

const GRACE_MS = 20_000;

interface OnceOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly logLevel: string;
}

export function define(command: Command, run: Run): void {
  command
    .option("--config <file>", "the configuration (default: INLET_CONFIG, else /etc/inlet/inlet.yaml)")
    .option("--json", "print what became of each transfer as JSON")
    .option("--log-level <level>", "debug, info, warn or error", "warn")
    .action((options: OnceOptions) => run((context) => collectOnce(context, options)));
}

async function collectOnce(context: Context, options: OnceOptions): Promise<Outcome> {
  const { config: path } = options;
  const settings = await loadSettings({ env: context.env, ...(path === undefined ? {} : { path }) });
  const log = createLog(context.stderr, options.logLevel);
  for (const warning of settings.warnings) log.warn({ warning }, "the configuration should be mended");
  const last = new Map<string, Receipt>();
  const { failedPolls, unsettled } = await runDaemon(settings, {
    mode: "once",
    stop: context.stop,
    graceMs: GRACE_MS,
    watch: remembering(tellLog(log), last),
  });
  const ended = [...last.values()];
  const count = (state: string) => ended.filter((receipt) => receipt.state === state).length;
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
  if (failedPolls > 0) return "unreachable";
  return unsettled + count("gone") > 0 ? "attention" : "fine";
}

/** The last state of every transfer that was touched. */
function remembering(watch: DaemonWatch, last: Map<string, Receipt>): DaemonWatch {
  return {
    ...watch,
    stateChanged(receipt) {
      last.set(`${receipt.mailbox}\0${receipt.trackingId}`, receipt);
      watch.stateChanged(receipt);
    },
  };
}
