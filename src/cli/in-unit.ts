/**
 * Runs a command as a systemd unit would run it: with its user, credentials, environment, folders and view of the file
 * system. Root has systemd do that, in a transient unit with the same settings.
 */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { describeStartFailure } from "../base/system-program.ts";
import type { Context } from "./context.ts";
import { type Outcome, outcomeOfCode } from "./exit-codes.ts";
import { invalid } from "./options.ts";

const RUN = "systemd-run";

/** The settings that decide what a process may read and write, and which secrets it gets. */
const COPIED: ReadonlySet<string> = new Set([
  "User",
  "Group",
  "SupplementaryGroups",
  "DynamicUser",
  "UMask",
  "WorkingDirectory",
  "RootDirectory",
  "Environment",
  "EnvironmentFile",
  "PassEnvironment",
  "UnsetEnvironment",
  "LoadCredential",
  "LoadCredentialEncrypted",
  "SetCredential",
  "SetCredentialEncrypted",
  "ImportCredential",
  "StateDirectory",
  "StateDirectoryMode",
  "CacheDirectory",
  "LogsDirectory",
  "RuntimeDirectory",
  "RuntimeDirectoryMode",
  "ConfigurationDirectory",
  "ConfigurationDirectoryMode",
  "ReadWritePaths",
  "ReadOnlyPaths",
  "InaccessiblePaths",
  "ExecPaths",
  "NoExecPaths",
  "BindPaths",
  "BindReadOnlyPaths",
  "TemporaryFileSystem",
  "ProtectSystem",
  "ProtectHome",
  "PrivateTmp",
  "PrivateMounts",
  "PrivateUsers",
  "SystemCallFilter",
  "SystemCallErrorNumber",
  "PrivateNetwork",
  "NetworkNamespacePath",
  "IPAddressAllow",
  "IPAddressDeny",
]);

export interface UnitSettings {
  /** In the order of the unit's files: `LoadCredential`, `secret:/etc/inlet/secrets`. */
  readonly properties: readonly (readonly [name: string, value: string])[];
  /** The words of `ExecStart`. */
  readonly command: readonly string[];
}

/** Parses the output of `systemctl cat`: the unit and its drop-ins. An empty value resets a list. */
export function parseUnit(unit: string, files: string): UnitSettings {
  const properties: (readonly [string, string])[] = [];
  let command: string[] = [];
  let section = "";
  for (const line of files
    .replace(/\\\n/g, " ")
    .split("\n")
    .map((it) => it.trim())) {
    const [, title] = /^\[(.*)\]$/.exec(line) ?? [];
    if (title !== undefined) section = title;
    const [, name = "", value = ""] = /^(\w+)\s*=\s*(.*)$/.exec(line) ?? [];
    if (section !== "Service" || name === "") continue;
    if (name === "ExecStart") command = wordsOf(expand(value, unit));
    if (!COPIED.has(name)) continue;
    if (value === "") {
      const kept = properties.filter(([other]) => other !== name);
      properties.splice(0, properties.length, ...kept);
    } else properties.push([name, expand(value, unit)]);
  }
  return { properties, command };
}

/** The arguments of `systemd-run`, for the program of the unit with `words` instead of `run …`. */
export function planRun(
  { properties, command }: UnitSettings,
  name: string,
  words: readonly string[],
  ownProgram: readonly string[],
): string[] {
  const at = command.findIndex((word) => word === "run" || word === "once");
  // The unit's program may be another version than this one.
  const program = at > 0 ? command.slice(0, at) : ownProgram;
  const config = command.findIndex((word) => word === "--config" || word.startsWith("--config="));
  const configured =
    command[config] === "--config" ? command.slice(config, config + 2) : command.slice(config, config + 1);
  const isNamed = words.some((word) => word.startsWith("--config"));
  return [
    "--pipe",
    "--wait",
    "--quiet",
    "--collect",
    `--unit=${name}`,
    ...properties.map(([property, value]) => `--property=${property}=${value}`),
    // Otherwise a running daemon's folder would be removed at the end of this unit.
    "--property=RuntimeDirectoryPreserve=yes",
    "--",
    ...program,
    ...words,
    ...(config < 0 || isNamed ? [] : configured),
  ];
}

/** Adds `--unit`, for commands that need the secrets of the daemon. */
export function addUnit(command: Command): Command {
  return command.option(
    "--unit <name>",
    "check with the user, credentials, configuration and folders of this systemd unit; needs root",
  );
}

/** `words`: the command and its options, without `--unit`. */
export async function runInUnit(context: Context, unit: string, words: readonly string[]): Promise<Outcome> {
  if (!/^[\w@.:-]+$/.test(unit) || unit.startsWith("-"))
    throw invalid(`${JSON.stringify(unit)} is not the name of a unit`);
  if (process.geteuid?.() !== 0) {
    const command = words
      .slice(
        0,
        [...words, "-"].findIndex((word) => word.startsWith("-")),
      )
      .join(" ");
    throw invalid(
      `--unit needs root, to get the credentials of the unit: sudo inlet ${command} --unit ${unit}`,
    );
  }
  const settings = parseUnit(unit, await readUnit(unit));
  const name = `inlet-${words[0]}-${randomBytes(4).toString("hex")}`;
  const [, script = ""] = process.argv;
  const args = planRun(settings, name, words, [process.execPath, script]);
  const child = spawn(RUN, args, { stdio: "inherit" });
  // Without systemctl there is no unit.
  const stop = () => void spawn("systemctl", ["stop", name], { stdio: "ignore" }).on("error", () => {});
  context.stop.addEventListener("abort", stop, { once: true });
  try {
    const [code] = await once(child, "exit").catch((error: NodeJS.ErrnoException) => {
      throw invalid(`${RUN} ${describeStartFailure(error)}`, error);
    });
    if (context.stop.aborted) throw new Fault("STOPPED");
    return outcomeOfCode(Number(code));
  } finally {
    context.stop.removeEventListener("abort", stop);
  }
}

async function readUnit(unit: string): Promise<string> {
  const child = spawn("systemctl", ["cat", "--no-pager", unit], { stdio: ["ignore", "pipe", "ignore"] });
  const files = text(child.stdout);
  const [code] = await once(child, "exit").catch((error: NodeJS.ErrnoException) => {
    throw invalid(`systemctl ${describeStartFailure(error)}`, error);
  });
  if (code !== 0)
    throw invalid(`systemd has no unit ${unit}: systemctl list-unit-files 'inlet*' lists the names`);
  return files;
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
