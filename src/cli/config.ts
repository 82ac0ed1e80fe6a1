/** `config`: the configuration, its effective values and its schema. Asks neither the service nor the daemon. */
import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { asFault, describeFault, detailOf, Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { describeMissingKey, type EffectiveValue, readEffective } from "../config/effective.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { EDITOR_SCHEMA } from "../config/source.ts";
import { explainPermission } from "../host/permission.ts";
import { findRefusal } from "../operate/records.ts";
import { addExitCodes, type Context, invalid, type Outcome, type Runner } from "./command.ts";
import { addUnit } from "./in-unit.ts";
import { addConfig, type CommonOptions } from "./options.ts";
import { type Column, printable, printJson, printRows, say } from "./printing.ts";

interface CheckOptions extends CommonOptions {
  /** Commander's name for `--no-secrets`. */
  readonly secrets?: boolean;
}

const CHECK_HELP = `
It prints one line for each problem, and a warning if a start would wait for inlet adopt or inlet anew. Secrets in files,
variables and credentials are read; commands are not run. To check everything else too, use inlet doctor.

  sudo inlet config check --unit inlet
  inlet config check --no-secrets`;

const SHOW_HELP = `
The source of a value is the line of a file, a variable, or the default. For each mailbox and each route, it lists all
keys that apply there, wherever they are set. Secrets are not shown.

  inlet config show mailboxes[0].routes[0].handoff`;

const SCHEMA_HELP = `
  inlet config schema > inlet.schema.json

An editor uses this file for a configuration that begins with:
  # yaml-language-server: $schema=./inlet.schema.json`;

export function define(config: Command, run: Runner): void {
  const checking = config.command("check").description("check the configuration");
  addConfig(checking.option("--no-secrets", "do not read secrets"))
    .option("--json", "print the result as JSON")
    .addHelpText("after", CHECK_HELP);
  checking.action(run(addUnit(checking, check)));
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
  config
    .command("schema")
    .description("print the JSON schema of the configuration, for editors and other tools")
    .addHelpText("after", SCHEMA_HELP)
    .action(run(printSchema));
}

async function check(context: Context, { config: path, json, secrets }: CheckOptions): Promise<Outcome> {
  const load = { env: context.env, path, ignoreSecrets: secrets === false };
  const result = await loadSettings(load).catch((error: unknown) => explainPermission(asFault(error)));
  if (result instanceof Fault) {
    if (result.code !== "CONFIG_INVALID") throw result;
    const problems = problemsOf(result);
    if (json) printJson(context, { valid: false, problems, warnings: [] });
    else for (const problem of problems) context.stdout.write(`${printable(problem)}\n`);
    return "usage";
  }
  // A user who may not read the folders checks the configuration alone.
  const refusal = await findRefusal(result).catch(() => undefined);
  const warnings = [...result.warnings, ...(refusal ? [describeFault(refusal)] : [])];
  if (json) printJson(context, { valid: true, source: result.source, problems: [], warnings });
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

async function show(context: Context, wanted: string | undefined, options: CommonOptions): Promise<Outcome> {
  const all = await readEffective({ env: context.env, path: options.config });
  const isWanted = ({ key }: EffectiveValue) =>
    wanted === undefined || key === wanted || key.startsWith(`${wanted}.`) || key.startsWith(`${wanted}[`);
  const values = all.filter(isWanted);
  if (values.length === 0 && wanted !== undefined) throw invalid(describeMissingKey(wanted));
  printRows(context, options, COLUMNS, values);
  return "fine";
}

async function printSchema(context: Context): Promise<Outcome> {
  context.stdout.write(await readFile(EDITOR_SCHEMA, "utf8"));
  return "fine";
}
