/** `status`: mailboxes and transfers now, from the daemon that runs, or else from what stands on the disk. */
import { setTimeout as pause } from "node:timers/promises";
import { type Command, Option } from "commander";
import { asFault } from "../base/faults.ts";
import { type LoadOptions, loadHttp, loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { Status, Trouble } from "../model/status.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { askDaemon } from "./daemon-api.ts";
import { addConfig } from "./options.ts";
import { printJson, say, widthOf } from "./printing.ts";
import { peekStatus } from "./status-peek.ts";
import { parseHealth, parseStatus } from "./status-shape.ts";
import { formatStatus } from "./status-text.ts";

interface StatusOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly health?: "ready" | "alive";
}

const REDRAW_MS = 1_000;
const NOBODY = "No daemon answers at http.listen.";

export function define(command: Command, run: Run): void {
  addConfig(command)
    .option("--json", "print it as JSON")
    .option("--watch", "stay, and draw it again every second")
    .addOption(
      new Option(
        "--health [what]",
        "only say, by exit code 0 or 1, whether a daemon is able to work (ready), or at least gets on (alive)",
      )
        .choices(["ready", "alive"])
        .preset("ready"),
    )
    .addHelpText(
      "after",
      "\nExit code 0: a daemon answers, and all is well; 3: a transfer, the disk or the configuration needs a person; 4: a mailbox or the queue cannot be reached, or no daemon answers.\nWithout a daemon it tells what stands on the disk; then live is false in JSON.",
    )
    .action((options: StatusOptions) => run((context) => show(context, options)));
}

async function show(context: Context, options: StatusOptions): Promise<Outcome> {
  const { config: path } = options;
  const load = { env: context.env, path, ignoreSecrets: true };
  if (options.health !== undefined) return showHealth(context, load, options.health);
  const settings = await loadSettings(load);
  if (options.watch && context.stdout.isTTY) return watch(context, settings);
  const { status, instead } = await readStatus(settings, context.stop);
  if (options.json) printJson(context, status);
  else context.stdout.write(`${formatStatus(status, instead, context.stdout)}\n`);
  return outcomeOf(status);
}

/** For the health checks of containers: what it prints is shown beside them, and it is 0 or 1 whatever happens. */
async function showHealth(context: Context, load: LoadOptions, what: "ready" | "alive"): Promise<Outcome> {
  const http = await loadHttp(load).catch((error: unknown) => {
    say(context, asFault(error).message);
    return "wrong" as const;
  });
  if (http === "wrong") return "failed";
  if (http === undefined) {
    say(context, "http.listen is false: a daemon that has no address cannot be asked how it is.");
    return "failed";
  }
  const answer = await askDaemon(http, what === "ready" ? "/readyz" : "/healthz", context.stop);
  const health = answer === undefined ? undefined : parseHealth(answer.body);
  if (health === undefined) {
    say(context, answer === undefined ? NOBODY : "What answers at http.listen is no Inlet daemon.");
    return "failed";
  }
  say(context, JSON.stringify(health));
  return answer?.status === 200 ? "fine" : "failed";
}

/** Until Ctrl-C, which is how it is meant to end. */
async function watch(context: Context, settings: Settings): Promise<Outcome> {
  const { stdout, stop } = context;
  while (!stop.aborted) {
    const { status, instead } = await readStatus(settings, stop);
    if (stop.aborted) break;
    const lines = fitInto(stdout, formatStatus(status, instead, stdout).split("\n"));
    stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
    await pause(REDRAW_MS, undefined, { signal: stop }).catch(() => {});
  }
  return "fine";
}

/** As many lines as there is room for: a long one takes several rows. */
function fitInto({ rows, columns }: NodeJS.WriteStream, lines: readonly string[]): readonly string[] {
  let left = (rows || 25) - 1;
  const end = lines.findIndex((line) => {
    left -= Math.max(1, Math.ceil(widthOf(line) / (columns || 80)));
    return left < 0;
  });
  return end < 0 ? lines : lines.slice(0, end);
}

interface Reading {
  readonly status: Status;
  /** Where no daemon said it: who answers instead, if anybody. A sentence. */
  readonly instead: string | undefined;
}

async function readStatus(settings: Settings, signal: AbortSignal): Promise<Reading> {
  const { http, inbox } = settings;
  const answer = await askDaemon(http, "/api/status", signal);
  const status = answer?.status === 200 ? parseStatus(answer.body) : undefined;
  if (status?.daemon.inbox === inbox) return { status, instead: undefined };
  return { status: await peekStatus(settings), instead: describeOther(http !== undefined, answer, status) };
}

function describeOther(isAsked: boolean, answer: unknown, status: Status | undefined): string {
  if (!isAsked) return "No daemon can be asked, because http.listen is false.";
  if (answer === undefined) return NOBODY;
  return status === undefined
    ? "No daemon answers: something else listens at http.listen."
    : `No daemon of this inbox answers: at http.listen there is one of ${status.daemon.inbox}.`;
}

/** Troubles that do not keep the service from being reached. */
const FOR_PEOPLE: ReadonlySet<string> = new Set(["DISK_FULL", "ARRIVAL_MISSED", "ENTRIES_UNUSABLE"]);

function outcomeOf({ live, troubles, totals }: Status): Outcome {
  const isForPeople = ({ what, code }: Trouble) => what === "configuration" || FOR_PEOPLE.has(code);
  if (!troubles.every(isForPeople)) return "unreachable";
  if (totals.attention > 0 || troubles.length > 0) return "attention";
  return live ? "fine" : "unreachable";
}
