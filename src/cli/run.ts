/** `run`: the daemon, until it is told to stop. */
import type { Command } from "commander";
import { loadSettings } from "../config/load.ts";
import { runDaemon } from "../daemon.ts";
import { createLog } from "../observe/log.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { tellLog } from "./telling.ts";

/** What runs has so long to end after a first signal; a second one ends it at once. */
const GRACE_MS = 20_000;

export function define(command: Command, run: Run): void {
  command
    .option("--config <file>", "the configuration (default: INLET_CONFIG, else /etc/inlet/inlet.yaml)")
    .option("--log-level <level>", "debug, info, warn or error", "info")
    .action((options: { readonly config?: string; readonly logLevel: string }) =>
      run((context) => serve(context, options)),
    );
}

async function serve(
  context: Context,
  options: { readonly config?: string; readonly logLevel: string },
): Promise<Outcome> {
  const { config: path } = options;
  const settings = await loadSettings({ env: context.env, ...(path === undefined ? {} : { path }) });
  const log = createLog(context.stdout, options.logLevel);
  for (const warning of settings.warnings) log.warn({ warning }, "the configuration should be mended");
  log.info(
    { config: settings.source, inbox: settings.inbox, mailboxes: settings.mailboxes.length },
    "starting",
  );
  context.stop.addEventListener("abort", () => log.info({ graceMs: GRACE_MS }, "stopping"), { once: true });
  await runDaemon(settings, { mode: "run", stop: context.stop, graceMs: GRACE_MS, watch: tellLog(log) });
  log.info("stopped");
  return "fine";
}
