/** `status`: mailboxes and transfers now, from the daemon that runs, or else from what stands on the disk. */
import { setTimeout as pause } from "node:timers/promises";
import { type Command, Option } from "commander";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import type { Status } from "../model/status.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { askDaemon } from "./daemon-api.ts";
import { addConfig } from "./options.ts";
import { printJson, say } from "./printing.ts";
import { peekStatus } from "./status-peek.ts";
import { formatStatus } from "./status-text.ts";

interface StatusOptions {
  readonly config?: string;
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly health?: "ready" | "alive";
}

const REDRAW_MS = 1_000;

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
      "\nExit code 0: all is well; 3: a transfer needs a person; 4: a mailbox or the queue cannot be reached.",
    )
    .action((options: StatusOptions) => run((context) => show(context, options)));
}

async function show(context: Context, options: StatusOptions): Promise<Outcome> {
  const { config: path } = options;
  const settings = await loadSettings({ env: context.env, ...(path === undefined ? {} : { path }) });
  if (options.health !== undefined) return showHealth(context, settings, options.health);
  if (options.watch && context.stdout.isTTY) return watch(context, settings);
  const { status, isLive } = await readStatus(settings, context.stop);
  if (options.json) printJson(context, status);
  else context.stdout.write(`${formatStatus(status, isLive, context.stdout)}\n`);
  return outcomeOf(status);
}

/** For the health checks of containers: what it prints is shown beside them. */
async function showHealth(context: Context, settings: Settings, what: "ready" | "alive"): Promise<Outcome> {
  const answer = await askDaemon(settings.http, what === "ready" ? "/readyz" : "/healthz", context.stop);
  say(context, answer?.body.trim() ?? "No daemon answers at http.listen.");
  return answer?.status === 200 ? "fine" : "failed";
}

/** Until Ctrl-C, which is how it is meant to end. */
async function watch(context: Context, settings: Settings): Promise<Outcome> {
  const { stdout, stop } = context;
  while (!stop.aborted) {
    const { status, isLive } = await readStatus(settings, stop);
    if (stop.aborted) break;
    const lines = formatStatus(status, isLive, stdout)
      .split("\n")
      .slice(0, (stdout.rows || 25) - 1);
    stdout.write(`\u001b[H${lines.map((line) => `${line}\u001b[K\n`).join("")}\u001b[J`);
    await pause(REDRAW_MS, undefined, { signal: stop }).catch(() => {});
  }
  return "fine";
}

async function readStatus(
  settings: Settings,
  signal: AbortSignal,
): Promise<{ readonly status: Status; readonly isLive: boolean }> {
  const answer = await askDaemon(settings.http, "/api/status", signal);
  if (answer?.status === 200) {
    const status = JSON.parse(answer.body) as Status;
    // Somebody else's daemon may have the address.
    if (status.daemon?.inbox === settings.inbox) return { status, isLive: true };
  }
  return { status: await peekStatus(settings), isLive: false };
}

function outcomeOf({ troubles, attention }: Status): Outcome {
  if (troubles.some(({ code }) => code !== "DISK_FULL" && code !== "ARRIVAL_MISSED")) return "unreachable";
  return attention.length > 0 || troubles.length > 0 ? "attention" : "fine";
}
