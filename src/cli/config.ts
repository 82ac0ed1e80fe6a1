/** `config`: checks the configuration, and shows its effective values. Asks neither the service nor the daemon. */
import type { Command } from "commander";
import { asFault, detailOf, Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { describeMissingKey, type EffectiveValue, readEffective } from "../config/effective.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { explainPermission } from "../host/permission.ts";
import { addExitCodes, type Context, invalid, type Outcome, type Run } from "./command.ts";
import { addUnit, runInUnit, type UnitOptions } from "./in-unit.ts";
import { addConfig } from "./options.ts";
import { type Column, printable, printJson, printRows, say } from "./printing.ts";

interface ConfigOptions extends UnitOptions {
  /** Commander's name for `--no-secrets`. */
  readonly secrets?: boolean;
}

const CHECK_HELP = `
It prints one line for each problem: the place, the key, and the allowed values. Secrets in files, variables and
credentials are read; commands are not run. Where only the daemon can read them, let root name its unit, or add
--no-secrets. To check everything else too, use inlet doctor.

  sudo inlet config check --unit inlet
  inlet config check --no-secrets`;

const SHOW_HELP = `
Each line has a key, its value, and the source of the value: the line of a file, a variable, or the default. For each
mailbox and each route, it lists all keys that apply there, wherever they are set. Secrets are not shown.

  inlet config show
  inlet config show limits
  inlet config show mailboxes[0].routes[0].handoff`;

export function define(config: Command, run: Run): void {
  const checking = config.command("check").description("check the configuration");
  addConfig(checking.option("--no-secrets", "do not read secrets")).option(
    "--json",
    "print the result as JSON",
  );
  addUnit(checking, "check").addHelpText("after", CHECK_HELP).action(run(check));
  addExitCodes(checking, {
    fine: "the configuration is valid",
    usage: "it is not valid",
    denied: "this user may not read the file, or a secret",
  });
  addConfig(
    config
      .command("show")
      .description("show the effective values, and the source of each")
      .argument("[key]", "only this key, or the keys of this group"),
  )
    .option("--json", "print the values as JSON")
    .addHelpText("after", SHOW_HELP)
    .action(run(show));
}

async function check(context: Context, options: ConfigOptions): Promise<Outcome> {
  const { config: path, json } = options;
  const ignoreSecrets = options.secrets === false;
  if (options.unit !== undefined) {
    const others = ignoreSecrets ? ["--no-secrets"] : [];
    return runInUnit(context, options.unit, ["config", "check"], options, others);
  }
  const result = await loadSettings({ env: context.env, path, ignoreSecrets }).catch((error: unknown) =>
    explainPermission(asFault(error)),
  );
  if (result instanceof Fault && result.code !== "CONFIG_INVALID") throw result;
  if (result instanceof Fault) {
    const problems = problemsOf(result);
    if (json) printJson(context, { valid: false, problems, warnings: [] });
    else for (const problem of problems) context.stdout.write(`${printable(problem)}\n`);
    return "usage";
  }
  const { source, warnings } = result;
  if (json) printJson(context, { valid: true, source, problems: [], warnings });
  else {
    for (const warning of warnings) say(context, `Warning: ${warning}`);
    say(context, describeSettings(result));
  }
  return "fine";
}

/** `/etc/inlet/inlet.yaml is valid: 2 mailboxes (1 paused), embedded queue`. */
export function describeSettings({ source, mailboxes, queue }: Settings): string {
  const paused = mailboxes.filter((mailbox) => mailbox.paused).length;
  const count = formatCount(mailboxes.length, "mailbox", "mailboxes");
  const engine = queue === "embedded" ? "embedded queue" : "queue on Redis";
  return `${source} is valid: ${count}${paused > 0 ? ` (${paused} paused)` : ""}, ${engine}`;
}

/** The lines of a fault about the configuration: with several problems, the first line is their number. */
export function problemsOf(fault: Fault): string[] {
  const [, ...problems] = fault.message.split("\n");
  return problems.length > 0 ? problems : [detailOf(fault)];
}

const COLUMNS: readonly Column<EffectiveValue>[] = [
  { title: "KEY", value: ({ key }) => key },
  {
    title: "VALUE",
    value: ({ value }) => (typeof value === "object" ? JSON.stringify(value) : String(value)),
  },
  { title: "FROM", value: ({ from }) => from },
];

async function show(context: Context, wanted: string | undefined, options: ConfigOptions): Promise<Outcome> {
  const all = await readEffective({ env: context.env, path: options.config });
  const isWanted = ({ key }: EffectiveValue) =>
    wanted === undefined || key === wanted || key.startsWith(`${wanted}.`) || key.startsWith(`${wanted}[`);
  const values = all.filter(isWanted);
  if (values.length === 0 && wanted !== undefined) throw invalid(describeMissingKey(wanted));
  printRows(context, options, COLUMNS, values);
  return "fine";
}
