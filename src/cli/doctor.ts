/** `doctor`: checks everything that the daemon depends on, and reports problems with advice. */
import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { styleText } from "node:util";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import type { SecretSource } from "../base/secret.ts";
import { loadSettings } from "../config/load.ts";
import { handoffsOf, type Settings } from "../config/settings.ts";
import { LIMITER } from "../handoff/content-check.ts";
import { explainPermission } from "../host/permission.ts";
import type { HandoffCommand } from "../model/mailbox.ts";
import { withDaemonsState } from "../operate/local.ts";
import { addExitCodes, type Context, type Outcome, type Runner } from "./command.ts";
import { describeSettings, problemsOf } from "./config.ts";
import { checkDaemon } from "./doctor/daemon.ts";
import { AREAS, type Area, type Finding, Findings } from "./doctor/findings.ts";
import { checkFileSystem, checkFolders, checkGroups } from "./doctor/folders.ts";
import { checkNotify, checkQueue, checkServices } from "./doctor/network.ts";
import { addUnit } from "./in-unit.ts";
import { addConfig, type CommonOptions } from "./options.ts";
import { printFinding, printJson, say } from "./printing.ts";

const HELP = `
It checks the configuration and its secrets, the folders, the file system, the queue, the service, the mail servers of
notifications, and a running daemon. It needs the permissions and the secrets of the daemon:

  sudo inlet doctor --unit inlet
  sudo -u inlet inlet doctor

Warnings do not change the exit code. It sends no mail, opens no transfer and delivers nothing. It keeps a verification
token that it obtains for the daemon.`;

export function define(command: Command, run: Runner): void {
  addConfig(command).option("--json", "print the findings as JSON").addHelpText("after", HELP);
  command.action(run(addUnit(command, examine)));
  addExitCodes(command, {
    fine: "no check failed",
    usage: "correct the configuration or the set-up",
    attention: "act as advised: register a client id, verify an address, free space",
    unreachable: "make the service or the queue reachable",
    denied: "run it with the rights of the daemon",
  });
}

async function examine(context: Context, options: CommonOptions): Promise<Outcome> {
  const all: Finding[] = [];
  const print = printerFor(context);
  const findings = new Findings(AREAS[0], (finding) => {
    all.push(finding);
    if (!options.json) print(finding);
  });
  await checkAll(findings, context, options.config);
  if (context.stop.aborted) throw new Fault("STOPPED");
  const { outcome } = findings;
  if (options.json) printJson(context, { outcome, findings: all });
  else say(context, summaryOf(all));
  return outcome;
}

async function checkAll(findings: Findings, context: Context, path: string | undefined): Promise<void> {
  const configured = await checkConfiguration(findings, context, path);
  if (configured === undefined) {
    for (const area of AREAS.slice(1)) findings.in(area).skip("all", "the configuration could not be loaded");
    return;
  }
  const settings = await withDaemonsState(configured);
  const of = (area: Area) => ({ findings: findings.in(area), settings, signal: context.stop });
  const inFolders = findings.in("folders");
  // A service manager may set the state folder for the daemon only.
  if (settings.state !== configured.state) {
    inFolders.warn(
      "state",
      `the daemon keeps its state in ${settings.state}, which is checked here; this user and environment would use ${configured.state}`,
      `Set state: ${settings.state} in the configuration, so that it is the same for all users.`,
    );
  }
  const folders = await checkFolders(inFolders, settings);
  if (folders === undefined) findings.in("file system").skip("all", "a folder is not usable");
  else {
    await checkGroups(of("folders"), folders.get("work") ?? settings.work);
    await checkFileSystem(of("file system"), folders);
  }
  await checkQueue(of("queue"));
  await checkServices(of("service"));
  await checkNotify(of("notifications"));
  await checkDaemon(of("daemon"));
}

const COLOURS = { ok: "green", warning: "yellow", failed: "red", skipped: "gray" } as const;

/** A terminal also gets a title per area. */
function printerFor(context: Context): (finding: Finding) => void {
  const { stdout } = context;
  let last: Area | undefined;
  return ({ area, check, status, detail, advice }) => {
    if (stdout.isTTY && area !== last) stdout.write(`${styleText("bold", area, { stream: stdout })}\n`);
    last = area;
    printFinding(context, COLOURS[status], [status, area, check, detail], `${check}: ${detail}`, advice);
  };
}

function summaryOf(findings: readonly Finding[]): string {
  const count = (wanted: Finding["status"]) => findings.filter(({ status }) => status === wanted).length;
  const [failed, warnings] = [count("failed"), count("warning")];
  const warned = formatCount(warnings, "warning", "warnings");
  const others = warnings === 0 ? "" : `, ${warned}`;
  if (failed > 0) return `${formatCount(failed, "check", "checks")} failed${others}.`;
  return warnings === 0 ? "All is well." : `Inlet can run, with ${warned}.`;
}

/** `undefined` if the configuration could not be loaded. */
async function checkConfiguration(
  findings: Findings,
  context: Context,
  path: string | undefined,
): Promise<Settings | undefined> {
  try {
    const settings = await loadSettings({ env: context.env, path });
    findings.ok("file", describeSettings(settings));
    for (const warning of settings.warnings) findings.warn("file", warning);
    await checkSecrets(findings, settings, context.stop);
    await checkCommands(findings, settings, context.env);
    return settings;
  } catch (error) {
    if (!(error instanceof Fault) || error.code === "STOPPED") throw error;
    const fault = await explainPermission(error);
    if (fault !== error) findings.failWith("file", fault);
    else for (const problem of problemsOf(error)) findings.fail("file", "usage", problem);
    return undefined;
  }
}

/** Runs commands too, unlike the loader: on a terminal, the user sees their prompts. */
async function checkSecrets(findings: Findings, settings: Settings, signal: AbortSignal): Promise<void> {
  const secrets = new Map(secretsIn(settings).map((source) => [source.described, source]));
  let readable = 0;
  for (const source of secrets.values()) {
    const secret = await findings.attempt("secrets", () => source.read(signal));
    if (secret !== undefined) readable++;
  }
  if (readable === secrets.size) {
    findings.ok("secrets", readable === 0 ? "none needed" : `${readable} can be read`);
  }
}

/** Otherwise a wrong command would show only at the first delivery. */
async function checkCommands(findings: Findings, settings: Settings, env: NodeJS.ProcessEnv): Promise<void> {
  const { mailboxes } = settings;
  const rules = mailboxes.flatMap(({ passwords }) => passwords);
  const checks = mailboxes.flatMap(({ check }) => check ?? []);
  const limited = checks.find(({ memoryBytes }) => memoryBytes !== undefined);
  const programs: Readonly<Record<string, readonly Program[]>> = {
    "handoff.command": handoffsOf(settings).flatMap(({ command }) => command ?? []),
    "passwords.command": rules.flatMap(({ password }) =>
      "ask" in password ? [{ argv: [password.program], env: { PATH: env["PATH"] ?? "" } }] : [],
    ),
    "check.command": checks,
    "check.memory": limited === undefined ? [] : [{ ...limited, argv: [LIMITER] }],
  };
  for (const [key, all] of Object.entries(programs)) {
    for (const each of new Map(all.map((it) => [JSON.stringify(it.argv), it])).values())
      await checkProgram(findings, key, each);
  }
}

type Program = Pick<HandoffCommand, "argv" | "env">;

async function checkProgram(
  findings: Findings,
  key: string,
  { argv: [program], env }: Program,
): Promise<void> {
  const folders = program.includes("/") ? [""] : (env["PATH"] ?? "").split(delimiter);
  for (const folder of folders) {
    const path = join(folder, program);
    const isProgram = await access(path, constants.X_OK).then(
      async () => (await stat(path)).isFile(),
      () => false,
    );
    if (isProgram) return findings.ok(key, `${path} is executable`);
  }
  const where = program.includes("/") ? "is not an executable program" : "is not in PATH";
  findings.fail(key, "usage", `${program} ${where}`);
}

/** Every secret, wherever it is in the settings. */
function secretsIn(value: unknown): SecretSource[] {
  if (typeof value !== "object" || value === null) return [];
  if ("described" in value && "read" in value) return [value as SecretSource];
  const parts: unknown[] = value instanceof Map ? [...value.values()] : Object.values(value);
  return parts.flatMap(secretsIn);
}
