/** `status`: mailboxes and transfers now, from the running daemon, else from the work folder. */
import { type Command, Option } from "commander";
import { asFault, type Fault } from "../base/faults.ts";
import { findLastAddress } from "../config/last-address.ts";
import { type LoadOptions, loadHttp, loadSettings } from "../config/load.ts";
import { DEFAULT_PATH, type HttpSettings } from "../config/settings.ts";
import { explainPermission } from "../host/permission.ts";
import type { Status } from "../model/status.ts";
import { askHealth, askStatus, type Reading, readStatus } from "../operate/status.ts";
import {
  addConfig,
  addExitCodes,
  type CommonOptions,
  type Context,
  type Outcome,
  outcomeOfFault,
  type Run,
} from "./command.ts";
import { printJson, say } from "./printing.ts";
import { formatStatus } from "./status-text.ts";
import { watchStatus } from "./status-watch.ts";

interface StatusOptions extends CommonOptions {
  readonly watch?: boolean;
  readonly health?: "ready" | "alive";
}

const HELP = `
Without a daemon, it shows the state in the work folder, and live is false in JSON. While the configuration is not valid,
it shows the status of the running daemon, and the problem.`;

export function define(command: Command, run: Run): void {
  addConfig(command)
    .option("--json", "print the status as JSON")
    .option("--watch", "show it on the whole screen, and redraw every second, until q or Ctrl-C")
    .addOption(
      new Option(
        "--health [what]",
        "only check the daemon, and exit with 0 or 1; ready (the default): it can do its work; alive: it is not stuck",
      )
        .choices(["ready", "alive"])
        .preset("ready"),
    )
    .addHelpText("after", HELP)
    .action(run(show));
  addExitCodes(command, {
    fine: "a daemon answers, and nothing needs attention",
    attention: "a transfer, a mailbox, the disk or the configuration needs a person",
    denied: "this user may not read the configuration, the work folder or the socket",
    unreachable: "no daemon answers, whatever waits; or the service or the queue cannot be reached",
  });
}

async function show(context: Context, options: StatusOptions): Promise<Outcome> {
  const { config: path } = options;
  const load = { env: context.env, path, ignoreSecrets: true };
  if (options.health !== undefined) return showHealth(context, load, options.health);
  const read = await openReader(load, context.stop);
  if (options.watch && context.stdout.isTTY) return watchStatus(context, read);
  const { status, instead } = await read();
  if (options.json) printJson(context, status);
  else context.stdout.write(`${formatStatus(status, instead, context.stdout)}\n`);
  return outcomeOf(status);
}

/** Throws `CONFIG_INVALID` if the configuration is not valid, and no daemon that was started with it answers. */
async function openReader(load: LoadOptions, signal: AbortSignal): Promise<() => Promise<Reading>> {
  try {
    const settings = await loadSettings(load);
    return () => readStatus(settings, signal);
  } catch (error) {
    const fault = await explainPermission(asFault(error));
    if (fault.code !== "CONFIG_INVALID") throw fault;
    const { file, addresses } = await findLastAddress(load);
    for (const http of addresses) {
      const read = () => readOldStatus(http, file, fault, signal);
      if ((await read()) === undefined) continue;
      return async () => {
        const reading = await read();
        if (reading === undefined) throw fault;
        return reading;
      };
    }
    throw fault;
  }
}

/** The status of a daemon that keeps the settings it had before the file became invalid; `undefined` without one. */
async function readOldStatus(
  http: HttpSettings,
  file: string,
  fault: Fault,
  signal: AbortSignal,
): Promise<Reading | undefined> {
  const status = await askStatus(http, signal);
  if (status === undefined || (status.daemon.config ?? DEFAULT_PATH) !== file) return undefined;
  const isReported = status.troubles.some(({ what }) => what === "configuration");
  const { code, message } = fault;
  const advice = `The daemon keeps its old settings, and does not start again with this file. ${FIX_IT}`;
  const trouble = { what: "configuration", since: status.at, code, message, advice };
  const troubles = isReported ? status.troubles : [trouble, ...status.troubles];
  return { status: { ...status, troubles }, instead: undefined };
}

const FIX_IT = "Correct it, and check it with inlet config check.";

/** For health checks of containers, which show the printed line. The exit code is always 0 or 1. */
async function showHealth(context: Context, load: LoadOptions, what: "ready" | "alive"): Promise<Outcome> {
  try {
    const { isGood, text } = await askHealth(await loadHttp(load), what, context.stop);
    say(context, text);
    return isGood ? "fine" : "failed";
  } catch (error) {
    say(context, (await explainPermission(asFault(error))).message);
    return "failed";
  }
}

export function outcomeOf({ live, troubles, totals }: Pick<Status, "live" | "troubles" | "totals">): Outcome {
  if (!live || troubles.some((trouble) => outcomeOfFault(trouble) === "unreachable")) return "unreachable";
  return totals.attention > 0 || troubles.length > 0 ? "attention" : "fine";
}
