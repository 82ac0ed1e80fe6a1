/** `run`: the daemon, until a signal stops it. `once`: one poll of every mailbox and its downloads, for cron. */
import { type Command, Option } from "commander";
import { describeFault, Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { followSettings } from "../config/watch.ts";
import { type DaemonOptions, runDaemon } from "../daemon.ts";
import { type Host, openHost } from "../host/systemd.ts";
import type { Emit } from "../model/events.ts";
import { isUnwanted, type TransferRecord } from "../model/record.ts";
import { PLANS } from "../model/views.ts";
import { createLog, isJournal, type Log, limitLog } from "../observe/log.ts";
import { addExitCodes, type Context, type Outcome, outcomeOfFault, type Runner } from "./command.ts";
import { logEvents } from "./event-log.ts";
import { addUnit } from "./in-unit.ts";
import { addConfig, type CommonOptions } from "./options.ts";
import { printJson, say } from "./printing.ts";

interface RunOptions extends CommonOptions {
  readonly logLevel?: string;
  readonly dryRun?: boolean;
}

/** The log level if neither the command line nor the configuration sets one. */
const DEFAULT_LEVEL = { run: "info", once: "warn" } as const;

/** After a first signal, running work has this long to finish; a second signal exits at once. */
const GRACE_MS = 20_000;

export function define(command: Command, run: Runner): void {
  const name = command.name() as keyof typeof DEFAULT_LEVEL;
  addConfig(command).addOption(
    new Option(
      "--log-level <level>",
      `how much to log (default: log.level of the configuration, else ${DEFAULT_LEVEL[name]})`,
    ).choices(["debug", "info", "warn", "error"]),
  );
  if (name === "once") {
    command
      .option("--json", "print the resulting state of each transfer as JSON")
      .option(
        "--dry-run",
        "only read the lists, and print what would be downloaded, where to, and which passwords are missing",
      )
      .addHelpText("after", DRY_RUN)
      .action(run(addUnit(command, runOnce)));
    addExitCodes(command, {
      fine: "every mailbox was polled, and nothing needs attention",
      attention: "a transfer needs attention, or the service refuses a mailbox",
      unreachable: "a mailbox could not be polled for another reason",
    });
  } else {
    command
      .addHelpText("after", "\nSIGTERM stops it. SIGHUP, or a change of the file, reloads the configuration.")
      .action(run(serve));
  }
}

async function serve(context: Context, options: RunOptions): Promise<Outcome> {
  // A SIGHUP before the settings can be reloaded must not stop the daemon.
  const early = { isWanted: false };
  context.onReload(() => {
    early.isWanted = true;
  });
  if (!context.stdout.isTTY) reportInLog(context, context.stdout);
  const prepared = await prepare(context, options, context.stdout, DEFAULT_LEVEL.run);
  const { settings, log } = prepared;
  const { source: config, inbox, mailboxes } = settings;
  log.info({ config, inbox, mailboxes: mailboxes.length }, "starting");
  context.stop.addEventListener("abort", () => log.info({ graceMs: GRACE_MS }, "stopping"), { once: true });
  const limited = limitLog(log);
  const onEvent = logEvents(limited);
  const host = openHost(context.env, onEvent);
  const follow = followWith(context, prepared, host, early, onEvent);
  try {
    await runDaemon(settings, { mode: "run", stop: context.stop, graceMs: GRACE_MS, onEvent, host, follow });
  } finally {
    limited.close();
  }
  log.info("stopped");
  return "fine";
}

const DRY_RUN = `
With --dry-run, no password is sent, and the first column says what would happen with each transfer:
${Object.entries(PLANS)
  .map(([plan, meaning]) => `  ${plan.padEnd(10)}${meaning}`)
  .join("\n")}`;

/** The keys of each transfer in the JSON of `once`. */
const PRINTED = ["mailbox", "trackingId", "sender", "state", "reason", "folder", "inbox", "until"] as const;

async function runOnce(context: Context, options: RunOptions): Promise<Outcome> {
  if (options.dryRun) return (await import("./dry-run.ts")).dryRun(context, options);
  // In systemd's journal, among lines of other programs, the reason of a failure needs a priority.
  if (isJournal(context.stderr, context.env["JOURNAL_STREAM"])) reportInLog(context, context.stderr);
  const { settings, log } = await prepare(context, options, context.stderr, DEFAULT_LEVEL.once);
  const last = new Map<string, TransferRecord>();
  let unreachable = 0;
  const limited = limitLog(log);
  const logEvent = logEvents(limited);
  const { failedPolls, unsettled } = await runDaemon(settings, {
    mode: "once",
    stop: context.stop,
    graceMs: GRACE_MS,
    onEvent(event) {
      logEvent(event);
      if (event.type === "poll-failed" && outcomeOfFault(event.fault) === "unreachable") unreachable++;
      if (event.type !== "transfer-changed") return;
      const { record } = event;
      last.set(`${record.mailbox}\0${record.trackingId}`, record);
    },
  }).finally(() => limited.close());
  const ended = [...last.values()];
  const count = (state: string) => ended.filter((record) => record.state === state).length;
  const ignored = ended.filter(isUnwanted).length;
  const gone = count("gone") - ignored;
  if (options.json) {
    const facts = ended.map((record) => Object.fromEntries(PRINTED.map((key) => [key, record[key]])));
    printJson(context, facts);
  } else {
    const kept = `${count("delivered")} delivered, ${count("waiting")} waiting, ${count("quarantined")} quarantined`;
    say(context, `${kept}, ${gone} gone${ignored === 0 ? "" : `, ${ignored} left out`}.`);
  }
  if (context.stop.aborted) throw new Fault("STOPPED");
  const others = unsettled - count("waiting") - count("quarantined");
  if (others > 0 && !options.json) {
    const more = formatCount(others, "more is", "more are");
    say(context, `${more} open, from earlier runs or after delivery: see inlet status.`);
  }
  if (unreachable > 0) return "unreachable";
  return failedPolls + unsettled + gone > 0 ? "attention" : "fine";
}

/** Logs a fault that ends the program. A person at a terminal also gets it on standard error. */
function reportInLog(context: Context, output: NodeJS.WriteStream): void {
  const log = openLog(context, output, "fatal");
  context.onFault((fault) => {
    const stack = fault.code === "UNEXPECTED" ? { stack: (fault.cause as Error | undefined)?.stack } : {};
    log.fatal({ fault, ...stack }, "ended by a fault");
    if (!context.stderr.isTTY || output === context.stderr) return;
    for (const line of `inlet: ${describeFault(fault)}`.split("\n")) say(context, line);
  });
}

function openLog({ env }: Context, output: NodeJS.WriteStream, level: string): Log {
  return createLog(output, level, isJournal(output, env["JOURNAL_STREAM"]));
}

type Prepared = Awaited<ReturnType<typeof prepare>>;

/** Reads the settings, opens the log, and logs the warnings about the settings. `load`: how to read the settings again. */
async function prepare(
  context: Context,
  { config: path, logLevel }: RunOptions,
  output: NodeJS.WriteStream,
  defaultLevel: string,
) {
  const load = { env: context.env, ...(path === undefined ? {} : { path }) };
  const settings = await loadSettings(load);
  const levelOf = (current: Settings) => logLevel ?? current.logLevel ?? defaultLevel;
  const log = openLog(context, output, levelOf(settings));
  for (const warning of settings.warnings) log.warn({ warning }, "the configuration should be corrected");
  return { settings, log, load, levelOf };
}

function followWith(
  context: Context,
  { settings, log, load, levelOf }: Prepared,
  host: Host | undefined,
  early: { isWanted: boolean },
  emit: Emit,
): NonNullable<DaemonOptions["follow"]> {
  const file = load.path === undefined && settings.source === "the environment" ? undefined : settings.source;
  // The daemon follows the file anew after each loss of its disk.
  let { digest } = settings;
  return async (apply, refused) => {
    const followed = await followSettings(file, digest, load, {
      async changed(next) {
        await apply(next);
        digest = next.digest;
        log.level = levelOf(next);
      },
      refused,
      unwatchable: (fault) => emit({ type: "folder-unwatchable", fault }),
    });
    const reload = () => void (host?.reloading(() => followed.reload()) ?? followed.reload());
    context.onReload(reload);
    if (early.isWanted) reload();
    early.isWanted = false;
    return followed;
  };
}
