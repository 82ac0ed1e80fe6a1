/** What `run` and `once` have in common before the daemon starts: options, settings and the log. */
import { type Command, Option } from "commander";
import { type LoadOptions, loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { createLog, type Log } from "../observe/log.ts";
import type { Context } from "./context.ts";
import { addConfig } from "./options.ts";

/** What runs has so long to end after a first signal; a second one ends it at once. */
export const GRACE_MS = 20_000;

export interface DaemonCommandOptions {
  readonly config?: string;
  readonly logLevel?: string;
}

/** `usual`: what is logged where neither the command line nor the configuration says. */
export function addDaemonOptions(command: Command, usual: string): Command {
  return addConfig(command).addOption(
    new Option(
      "--log-level <level>",
      `what to log (default: log.level of the configuration, else ${usual})`,
    ).choices(["debug", "info", "warn", "error"]),
  );
}

export interface Prepared {
  readonly settings: Settings;
  readonly log: Log;
  /** How the settings were read, to read them again in the same way. */
  readonly load: LoadOptions;
  /** The level that these settings mean. */
  levelOf(settings: Settings): string;
}

/** Reads the settings, and begins the log with what should be mended in them. */
export async function prepareDaemon(
  context: Context,
  { config: path, logLevel }: DaemonCommandOptions,
  output: NodeJS.WriteStream,
  usual: string,
): Promise<Prepared> {
  const load = { env: context.env, ...(path === undefined ? {} : { path }) };
  const settings = await loadSettings(load);
  const levelOf = (current: Settings) => logLevel ?? current.logLevel ?? usual;
  const log = createLog(output, levelOf(settings));
  for (const warning of settings.warnings) log.warn({ warning }, "the configuration should be mended");
  return { settings, log, load, levelOf };
}
