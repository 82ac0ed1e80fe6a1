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
