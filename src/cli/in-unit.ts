/**
 * Runs a command as a systemd unit would run it: with its user, credentials, environment, folders and view of the file
 * system. For that, root starts a transient unit with the same settings.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { describeStartFailure } from "../base/system-program.ts";
import { type Context, invalid, type Outcome, outcomeOfCode } from "./command.ts";

const RUN = "systemd-run";

/** Exit codes from this one on are systemd's own: the program was not started. */
const FIRST_OF_SYSTEMD = 200;
const SYSTEMD_CODES: Readonly<Record<number, string>> = {
  216: "a group of Group= or SupplementaryGroups= does not exist",
  217: "the user of User= does not exist",
  226: "a path of ReadWritePaths= or of another setting does not exist",
  243: "a file of LoadCredential= cannot be read",
};

/** The settings that decide what a process may read and write, and which secrets it gets. */
const COPIED: ReadonlySet<string> = new Set(
  `User Group SupplementaryGroups DynamicUser UMask WorkingDirectory RootDirectory
  Environment EnvironmentFile PassEnvironment UnsetEnvironment
  LoadCredential LoadCredentialEncrypted SetCredential SetCredentialEncrypted ImportCredential
  StateDirectory StateDirectoryMode CacheDirectory LogsDirectory RuntimeDirectory RuntimeDirectoryMode
  ConfigurationDirectory ConfigurationDirectoryMode
  ReadWritePaths ReadOnlyPaths InaccessiblePaths ExecPaths NoExecPaths BindPaths BindReadOnlyPaths
  TemporaryFileSystem ProtectSystem ProtectHome PrivateTmp PrivateMounts PrivateUsers
  SystemCallFilter SystemCallErrorNumber
  PrivateNetwork NetworkNamespacePath IPAddressAllow IPAddressDeny`.split(/\s+/),
);

/**
 * Parses the output of `systemctl cat`: the unit and its drop-ins. An empty value resets a list. `command`: the words of
 * `ExecStart`.
 */
export function parseUnit(unit: string, files: string) {
  let properties: [name: string, value: string][] = [];
  let command: string[] = [];
  let section = "";
  for (const line of files.replace(/\\\n/g, " ").split("\n")) {
    section = /^\s*\[(.*)\]\s*$/.exec(line)?.[1] ?? section;
    const [, name = "", value = ""] = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? [];
    if (section !== "Service" || name === "") continue;
    if (name === "ExecStart") command = wordsOf(expand(value, unit));
    if (!COPIED.has(name)) continue;
    if (value === "") properties = properties.filter(([other]) => other !== name);
    else properties.push([name, expand(value, unit)]);
  }
  return { properties, command };
}

/** The arguments of `systemd-run`, for the program of the unit with `words` instead of `run …`. */
export function planRun(
  { properties, command }: ReturnType<typeof parseUnit>,
  name: string,
  words: readonly string[],
  ownProgram: readonly string[],
): string[] {
  const verbAt = command.findIndex((word) => word === "run" || word === "once");
  const configAt = command.findIndex((word) => /^--config(=|$)/.test(word));
  const needsConfig = configAt >= 0 && !words.includes("--config");
  return [
    ...["--pipe", "--wait", "--quiet", "--collect", `--unit=${name}`],
    ...properties.map(([property, value]) => `--property=${property}=${value}`),
    // Otherwise a running daemon's folder would be removed at the end of this unit.
    "--property=RuntimeDirectoryPreserve=yes",
    "--",
    // The unit's program may be another version than this one.
    ...(verbAt > 0 ? command.slice(0, verbAt) : ownProgram),
    ...words,
    ...(needsConfig ? command.slice(configAt, configAt + (command[configAt] === "--config" ? 2 : 1)) : []),
  ];
}

/** Adds `--unit`, for commands that need the secrets of the daemon. Returns the action: `work`, here or in that unit. */
export function addUnit<Args extends unknown[]>(
  command: Command,
  work: (context: Context, ...args: Args) => Promise<Outcome>,
): (context: Context, ...args: Args) => Promise<Outcome> {
  command.option(
    "--unit <name>",
    "use the user, credentials, configuration and folders of this systemd unit; needs root",
  );
  return (context, ...args) => {
    const { unit } = command.opts<{ readonly unit?: string }>();
    return unit === undefined ? work(context, ...args) : runInUnit(context, unit, command);
  };
}

async function runInUnit({ stop }: Context, unit: string, command: Command): Promise<Outcome> {
  if (!/^[\w@.:-]+$/.test(unit) || unit.startsWith("-"))
    throw invalid(`${JSON.stringify(unit)} is not the name of a unit`);
  const words = wordsFor(command);
  if (process.geteuid?.() !== 0) {
    throw invalid(
      `--unit needs root, to get the credentials of the unit: sudo inlet ${words.join(" ")} --unit ${unit}`,
    );
  }
  const settings = parseUnit(unit, await readUnit(unit));
  const name = `inlet-${words[0]}-${randomBytes(4).toString("hex")}`;
  const ownProgram = [process.execPath, process.argv[1] ?? ""];
  const child = spawn(RUN, planRun(settings, name, words, ownProgram), { stdio: "inherit" });
  // If systemctl cannot be started, there is no unit to stop.
  const end = () => void spawn("systemctl", ["stop", name], { stdio: "ignore" }).on("error", () => {});
  stop.addEventListener("abort", end, { once: true });
  const code = await exitOf(child);
  stop.removeEventListener("abort", end);
  if (stop.aborted) throw new Fault("STOPPED");
  if (code < FIRST_OF_SYSTEMD) return outcomeOfCode(code);
  const why = SYSTEMD_CODES[code] ?? "the journal says why";
  throw invalid(`systemd could not start it (exit code ${code}): ${why}: journalctl --unit ${name}`);
}

/** The typed words without `--unit`. Paths become absolute: the unit runs in another folder. */
function wordsFor(command: Command): string[] {
  const names: string[] = [];
  for (let it = command; it.parent !== null; it = it.parent) names.unshift(it.name());
  const options = command.options.flatMap((option) => {
    const key = option.attributeName();
    if (key === "unit" || command.getOptionValueSource(key) !== "cli") return [];
    const value: unknown = command.getOptionValue(key);
    if (typeof value === "boolean") return [option.long ?? ""];
    const isPath = option.flags.endsWith("<file>") && value !== "-";
    return [option.long ?? "", isPath ? resolve(String(value)) : String(value)];
  });
  return [...names, ...command.args, ...options];
}

async function readUnit(unit: string): Promise<string> {
  const child = spawn("systemctl", ["cat", "--no-pager", unit], { stdio: ["ignore", "pipe", "ignore"] });
  const files = text(child.stdout);
  if ((await exitOf(child)) !== 0)
    throw invalid(`systemd has no unit ${unit}: systemctl list-unit-files 'inlet*' lists the names`);
  return files;
}

async function exitOf(child: ChildProcess): Promise<number> {
  const [code] = await once(child, "exit").catch((error: NodeJS.ErrnoException) => {
    throw invalid(`${child.spawnfile} ${describeStartFailure(error)}`, error);
  });
  return Number(code);
}

/** Expands specifiers such as `%n`: a transient unit takes its settings as they are, and has another name. */
function expand(value: string, unit: string): string {
  const name = unit.replace(/\.service$/, "");
  const [prefix = "", instance = ""] = name.split("@");
  const meanings: Readonly<Record<string, string>> = {
    "%": "%",
    n: `${name}.service`,
    N: name,
    p: prefix,
    i: instance,
    I: instance,
    S: "/var/lib",
    C: "/var/cache",
    L: "/var/log",
    E: "/etc",
    t: "/run",
  };
  return value.replace(/%([%\w])/g, (all, letter: string) => meanings[letter] ?? all);
}

/** Without the special characters before the program. */
function wordsOf(command: string): string[] {
  const words = command.replace(/^[-@:+!|]+/, "").match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
  return words.map((word) => word.replace(/^(["'])(.*)\1$/, "$2"));
}
