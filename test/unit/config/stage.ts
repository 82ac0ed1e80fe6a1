/** Writes and loads configuration files in temporary folders. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Fault } from "../../../src/base/faults.ts";
import type { Environment } from "../../../src/config/draft.ts";
import { loadSettings } from "../../../src/config/load.ts";
import type { Settings } from "../../../src/config/settings.ts";
import { makeFolder } from "../../support/program.ts";

export const CLIENT_ID = "C".repeat(64);

/** The smallest valid configuration. */
export const SMALLEST = `
service: { baseUrl: https://transfer.example.com }
inbox: /srv/inbox
mailboxes: [{ email: orders@example.com }]
`;

/** A complete configuration. Each line replaces its key, or is added as the fourth line. */
export function config(lines: string): string {
  const keys = new Map([
    ["service", "service: { baseUrl: https://transfer.example.com }"],
    ["inbox", "inbox: /srv/inbox"],
    ["mailboxes", "mailboxes: [{ email: orders@example.com }]"],
  ]);
  for (const line of lines.split(/\n(?! )/)) keys.set(/^"?\w*/.exec(line)?.[0] ?? "", line);
  return `${[...keys.values()].join("\n")}\n`;
}

/** Lines of a configuration, and an indented line with what follows from them. Blank lines are for the reader. */
export function casesOf(table: string): [lines: string, expected: string][] {
  const cases = table
    .trim()
    .split(/\n+(?=\S)/)
    .join("\n")
    .split(/(?<=\n {2}.*)\n/);
  return cases.map((text) => text.split("\n  ") as [string, string]);
}

/** A path without a file. */
export const NOWHERE = "/nonexistent/inlet.yaml";

export async function writeConfig(text: string, mode: number = 0o600): Promise<string> {
  const file = join(await makeFolder(), "inlet.yaml");
  await writeFile(file, text, { mode });
  return file;
}

export async function load(text: string, env: Environment = {}): Promise<Settings> {
  return loadSettings({ path: await writeConfig(text), env });
}

/** The lines of the problems, without the folder of the file. */
export async function problemsOf(text: string, env: Environment = {}): Promise<string[]> {
  const path = await writeConfig(text);
  const message = await faultMessage(loadSettings({ path, env }));
  return message
    .replaceAll(path, "inlet.yaml")
    .replace(/^[^:]*: (\d+ problems\n)?/, "")
    .split("\n");
}

/** The message of a `CONFIG_INVALID`. */
export async function faultMessage(loading: Promise<unknown>): Promise<string> {
  const fault = await loading.then(
    () => undefined,
    (error: Fault) => error,
  );
  if (fault?.code !== "CONFIG_INVALID") throw fault ?? new Error("the configuration was accepted");
  return fault.message;
}
