/** `run`: the daemon, until it is told to stop. */
import type { Command } from "commander";
import { followSettings } from "../config/watch.ts";
import { type DaemonOptions, type DaemonWatch, runDaemon } from "../daemon.ts";
import { type Host, openHost } from "../host/systemd.ts";
import type { Context, Outcome, Run } from "./context.ts";
import {
  addDaemonOptions,
  type DaemonCommandOptions,
  GRACE_MS,
  type Prepared,
  prepareDaemon,
} from "./starting.ts";
import { tellHost, tellLog } from "./telling.ts";

const USUAL_LEVEL = "info";

export function define(command: Command, run: Run): void {
  addDaemonOptions(command, USUAL_LEVEL)
    .addHelpText(
      "after",
      "\nSIGTERM stops it; SIGHUP, or a change of the file, has it read the configuration again.",
    )
    .action((options: DaemonCommandOptions) => run((context) => serve(context, options)));
}

async function serve(context: Context, options: DaemonCommandOptions): Promise<Outcome> {
  // From the start: one that comes before there is anything to reload must not stop it.
  const early = { isWanted: false };
  context.onReload(() => {
    early.isWanted = true;
  });
  const prepared = await prepareDaemon(context, options, context.stdout, USUAL_LEVEL);
  const { settings, log } = prepared;
  const { source: config, inbox, mailboxes } = settings;
  log.info({ config, inbox, mailboxes: mailboxes.length }, "starting");
  context.stop.addEventListener("abort", () => log.info({ graceMs: GRACE_MS }, "stopping"), { once: true });
  const watch = tellLog(log);
  const host = openHost(context.env, tellHost(log));
  const follow = followWith(context, prepared, host, early, watch);
  await runDaemon(settings, { mode: "run", stop: context.stop, graceMs: GRACE_MS, watch, host, follow });
  log.info("stopped");
  return "fine";
}

function followWith(
  context: Context,
  { settings, log, load, levelOf }: Prepared,
  host: Host | undefined,
  early: { isWanted: boolean },
  watch: Pick<DaemonWatch, "unwatchable">,
): NonNullable<DaemonOptions["follow"]> {
  const file = load.path === undefined && settings.source === "the environment" ? undefined : settings.source;
  return async (apply, refused) => {
    const followed = await followSettings(file, settings.digest, load, {
      async changed(next) {
        await apply(next);
        log.level = levelOf(next);
      },
      refused,
      unwatchable: watch.unwatchable,
    });
    const reload = () => void (host?.reloading(() => followed.reload()) ?? followed.reload());
    context.onReload(reload);
    if (early.isWanted) reload();
    early.isWanted = false;
    return followed;
  };
}
