/** `status`: mailboxes and transfers now, from the running daemon, else from the work folder. */
import { type Command, Option } from "commander";
import { asFault, type Fault } from "../base/faults.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { findLastAddress, type LoadOptions, loadHttp, loadSettings } from "../config/load.ts";
import type { HttpSettings } from "../config/settings.ts";
import { DEFAULT_PATH } from "../config/source.ts";
import { explainPermission } from "../host/permission.ts";
import type { Status } from "../model/status.ts";
import { askHealth, askStatus, type Reading, readStatus } from "../operate/status.ts";
import { addExitCodes, type Context, type Outcome, outcomeOfFault, type Runner } from "./command.ts";
import { addConfig, type CommonOptions } from "./options.ts";
import { printJson, say } from "./printing.ts";
import { fitStatus, formatStatus } from "./status-text.ts";

interface StatusOptions extends CommonOptions {
  readonly watch?: boolean;
  readonly health?: "ready" | "alive";
}

const HELP = `
Without a daemon, it shows the state in the work folder, and live is false in JSON. While the configuration is not valid,
it shows the status of the running daemon, and the problem.`;

export function define(command: Command, run: Runner): void {
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
      return async () => (await read()) ?? Promise.reject(fault);
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
  const advice = `The daemon keeps its old settings, and does not start again with this file. Correct it, and check it with inlet config check.`;
  const trouble = { what: "configuration", since: status.at, code, message, advice };
  const troubles = isReported ? status.troubles : [trouble, ...status.troubles];
  return { status: { ...status, troubles }, instead: undefined };
}

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

const REDRAW_MS = 1_000;
const [CTRL_C, CTRL_D] = ["\u0003", "\u0004"];

/** Switch to the alternate screen without a cursor and without wrapped lines, and back. */
const BEGIN = "\u001b[?1049h\u001b[?25l\u001b[?7l";
const END = "\u001b[?7h\u001b[?25h\u001b[?1049l";

/** The status on the whole screen, until q or Ctrl-C. */
export async function watchStatus(context: Context, read: () => Promise<Reading>): Promise<Outcome> {
  const { stdin, stdout, stop } = context;
  const keys = new AbortController();
  const ended = AbortSignal.any([stop, keys.signal]);
  let outcome: Outcome = "interrupted";
  const onKey = (key: Buffer) => {
    const typed = key.toString();
    const isQuit = /[qQ]/.test(typed) || typed.includes(CTRL_D);
    if (isQuit && !typed.includes(CTRL_C)) outcome = "fine";
    if (isQuit || typed.includes(CTRL_C)) keys.abort();
  };
  const restore = () => void stdout.write(END);
  let last: Reading | undefined;
  const draw = () => {
    if (last === undefined || ended.aborted) return;
    const { status, instead } = last;
    const lines = fitStatus(status, instead, stdout);
    stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K`).join("\r\n")}\u001b[J`);
  };
  process.once("exit", restore);
  stdout.write(BEGIN);
  stdout.on("resize", draw);
  // Without a terminal to type on, a signal ends it.
  if (stdin.isTTY) stdin.setRawMode(true).on("data", onKey).resume();
  try {
    while (!ended.aborted) {
      last = await read();
      draw();
      await pauseOrAbort(REDRAW_MS, ended);
    }
    return outcome;
  } finally {
    process.removeListener("exit", restore);
    stdout.off("resize", draw);
    if (stdin.isTTY) stdin.off("data", onKey).setRawMode(false).pause();
    restore();
  }
}
