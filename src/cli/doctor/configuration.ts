/** The configuration: whether it is valid, what should be mended in it, and whether its secrets can be read. */
import { access, constants, stat } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { FAULT_CODES } from "../../base/fault-codes.ts";
import { Fault } from "../../base/faults.ts";
import { formatCount } from "../../base/phrases.ts";
import type { SecretSource } from "../../base/secret.ts";
import { loadSettings } from "../../config/load.ts";
import type { Settings } from "../../config/settings.ts";
import type { Context } from "../context.ts";
import type { Findings } from "./findings.ts";

const AREA = "configuration";
const DAY_MS = 24 * 60 * 60_000;

/** `undefined` where there are no settings to go on with. */
export async function checkConfiguration(
  findings: Findings,
  context: Context,
  path: string | undefined,
): Promise<Settings | undefined> {
  try {
    const settings = await loadSettings({ env: context.env, path });
    findings.ok(AREA, "file", describe(settings));
    for (const warning of settings.warnings) findings.warn(AREA, "file", warning);
    await checkSecrets(findings, settings, context.stop);
    await checkCommand(findings, settings);
    findings.ok(AREA, "keep", describeKeep(settings));
    return settings;
  } catch (error) {
    if (!(error instanceof Fault) || error.code === "STOPPED") throw error;
    // Several problems stand on lines of their own, below one that counts them.
    const [first = "", ...rest] = error.message.split("\n");
    const alone = first.slice(FAULT_CODES[error.code].happened.length).replace(/^: /, "");
    for (const problem of rest.length > 0 ? rest : [alone]) findings.fail(AREA, "file", "usage", problem);
    return undefined;
  }
}

function describe({ source, mailboxes, queue }: Settings): string {
  const paused = mailboxes.filter((mailbox) => mailbox.paused).length;
  const count = formatCount(mailboxes.length, "mailbox", "mailboxes");
  const engine = queue === "embedded" ? "embedded queue" : "queue on Redis";
  return `${source} is valid: ${count}${paused > 0 ? ` (${paused} paused)` : ""}, ${engine}`;
}

function describeKeep({ keep: { ledgerMs, historyMs } }: Settings): string {
  const days = (ms: number) => formatCount(Math.round(ms / DAY_MS), "day", "days");
  const records = ledgerMs === undefined ? "for ever" : `for ${days(ledgerMs)} after a transfer expired`;
  const history = historyMs === undefined ? "for ever" : `for ${days(historyMs)}`;
  return `records are kept ${records}, history ${history}`;
}

/** Commands are run too, which loading does not do: here somebody is there to see that one asks for something. */
async function checkSecrets(findings: Findings, settings: Settings, signal: AbortSignal): Promise<void> {
  const secrets = new Map(secretsOf(settings).map((source) => [source.described, source]));
  let readable = 0;
  for (const source of secrets.values()) {
    try {
      await source.read(signal);
      readable++;
    } catch (error) {
      if (!(error instanceof Fault) || error.code === "STOPPED") throw error;
      findings.failWith(AREA, "secrets", error);
    }
  }
  if (readable === secrets.size) {
    findings.ok(AREA, "secrets", readable === 0 ? "none are needed" : `${readable} can be read`);
  }
}

/** The first delivery would find out too late. */
async function checkCommand(findings: Findings, { handoff }: Settings): Promise<void> {
  if (handoff.command === undefined) return;
  const { argv, env } = handoff.command;
  const [program] = argv;
  const folders = program.includes("/") ? [""] : (env["PATH"] ?? "").split(delimiter);
  for (const folder of folders) {
    const path = join(folder, program);
    const isProgram = await access(path, constants.X_OK).then(
      async () => (await stat(path)).isFile(),
      () => false,
    );
    if (isProgram) return findings.ok(AREA, "handoff.command", `${path} can be run`);
  }
  const where = program.includes("/") ? "is no program that can be run" : "is in no folder of PATH";
  findings.fail(AREA, "handoff.command", "usage", `${program} ${where}`);
}

function secretsOf({ mailboxes, queue, handoff, http }: Settings): SecretSource[] {
  const redis = queue === "embedded" ? [] : [queue.password, queue.sentinelPassword];
  return [
    ...mailboxes.flatMap(({ service, passwords }) => [
      service.clientId,
      service.token,
      ...passwords.map((rule) => rule.password),
    ]),
    ...redis,
    handoff.webhook?.secret,
    http?.token,
  ].filter((source) => source !== undefined);
}
