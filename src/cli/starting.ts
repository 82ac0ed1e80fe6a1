/** What `run` and `once` have in common before the daemon starts: options, settings and the log. */
import { type Command, Option } from "commander";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { createLog, type Log } from "../observe/log.ts";
import type { Context } from "./context.ts";

/** What runs has so long to end after a first signal; a second one ends it at once. */
export const GRACE_MS = 20_000;

export interface DaemonCommandOptions {
  readonly config?: string;
  readonly logLevel: string;
}

export function addDaemonOptions(command: Command, level: string): Command {
  return command
    .option("--config <file>", "the configuration (default: INLET_CONFIG, else /etc/inlet/inlet.yaml)")
    .addOption(
      new Option("--log-level <level>", "what to log")
        .choices(["debug", "info", "warn", "error"])
        .default(level),
    );
}

/** Reads the settings, and begins the log with what should be mended in them. */
export async function prepareDaemon(
  context: Context,
  { config: path, logLevel }: DaemonCommandOptions,
  output: NodeJS.WriteStream,
): Promise<{ settings: Settings; log: Log }> {
  const settings = await loadSettings({ env: context.env, ...(path === undefined ? {} : { path }) });
  const log = createLog(output, logLevel);
  for (const warning of settings.warnings) log.warn({ warning }, "the configuration should be mended");
  return { settings, log };
}
