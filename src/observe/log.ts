/** The log: JSON lines, or readable lines on a terminal. Messages are constant; facts are fields. Repetitions are counted. */
import { fstatSync } from "node:fs";
import { type Logger, pino } from "pino";
import { escapeJson, printable } from "../base/phrases.ts";
import { Secret } from "../base/secret.ts";

export type Log = Logger;

export interface LogOutput extends NodeJS.WritableStream {
  readonly isTTY?: boolean;
  readonly fd?: number;
}

/** The priorities of syslog, by which `journalctl -p` selects. */
const PRIORITIES: Readonly<Record<string, number>> = { fatal: 2, error: 3, warn: 4, info: 6 };
const DEBUG_PRIORITY = 7;

/** Fields with these names are never written. */
const HIDDEN = ["password", "token", "clientId", "href", "downloadUrl"];

/** `isJournal`: each line begins with its priority, which the journal of systemd removes. */
export function createLog(output: LogOutput, level: string, isJournal = false): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (name: string) => ({ level: name }) },
    redact: { paths: HIDDEN.flatMap((name) => [name, `*.${name}`]), censor: "[secret]" },
    serializers: { fault: describe },
  };
  const format = output.isTTY === true ? formatLine : isJournal ? withPriority : String;
  // Any format may be read on a terminal, and fields hold untrusted text.
  return pino(options, { write: (line: string) => void output.write(escapeJson(format(line))) });
}

/** Whether a stream is connected to the journal. `journalStream`: the variable JOURNAL_STREAM, which systemd sets. */
export function isJournal({ fd }: LogOutput, journalStream: string | undefined): boolean {
  if (fd === undefined || journalStream === undefined) return false;
  try {
    const { dev, ino } = fstatSync(fd);
    return journalStream === `${dev}:${ino}`;
  } catch {
    return false;
  }
}

function describe(fault: unknown): unknown {
  if (!(fault instanceof Error)) return fault;
  const { message } = fault;
  return {
    ...("code" in fault ? { code: fault.code } : {}),
    message,
    ...("advice" in fault ? { advice: fault.advice } : {}),
  };
}

function withPriority(line: string): string {
  const [, level = ""] = /^\{"level":"(\w+)"/.exec(line) ?? [];
  return `<${PRIORITIES[level] ?? DEBUG_PRIORITY}>${line}`;
}

interface TerminalLine {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly fault?: { readonly code: string; readonly message: string; readonly advice?: string };
}

/** A fault has its own lines: what happened, and what to do. */
function formatLine(line: string): string {
  const { level, time, msg, fault, ...facts } = JSON.parse(line) as TerminalLine;
  const fields = Object.entries(facts).map(([name, value]) => `${name}=${formatValue(value)}`);
  const word = level in PRIORITIES ? level.toUpperCase() : level;
  const first =
    `${time.slice(11, 19)} ${level === "info" ? "" : `${word} `}${msg}  ${fields.join(" ")}`.trimEnd();
  const { code, message, advice } = fault ?? {};
  const texts = [message && `${code}: ${message}`, advice].filter((text) => text !== undefined);
  // Indented: no text of the service looks like a line of the log.
  const lines = texts.flatMap((text) => text.split("\n").map((line) => `  ${printable(line)}`));
  return `${[first, ...lines].join("\n")}\n`;
}

function formatValue(value: unknown): string {
  if (value instanceof Secret) return String(value);
  return typeof value === "string" && /^[\w@.:/+-]+$/.test(value) ? value : JSON.stringify(value);
}

type Level = "debug" | "info" | "warn" | "error";

type Facts = Readonly<Record<string, unknown>>;

/** The part of a log that events are written to. */
export type EventLines = Readonly<Record<Level, (facts: Facts, message: string) => void>>;

const LIMIT_EVERY_MS = 60_000;
/** Lines of one cause that are logged as they come in this time. */
const MAX_LOGGED = 20;

interface Counted {
  readonly level: "warn" | "error";
  readonly message: string;
  lines: number;
  last: Facts;
}

/**
 * Limits warnings and errors. For each message, code of a fault and reason, the first few lines of a minute are logged as
 * they come. One line at the end of the minute says how many more there were, and shows the last. Other levels are not
 * limited. `close` writes the open summaries, and ends the timer.
 */
export function limitLog(log: Log): EventLines & { close(): void } {
  const causes = new Map<string, Counted>();
  const write = (level: "warn" | "error", facts: Facts, message: string) => {
    const key = causeOf(level, facts, message);
    const counted = causes.get(key) ?? { level, message, lines: 0, last: facts };
    causes.set(key, counted);
    counted.lines++;
    counted.last = facts;
    if (counted.lines <= MAX_LOGGED) log[level](facts, message);
  };
  const summarize = () => {
    for (const { level, message, lines, last } of causes.values()) {
      const more = lines - MAX_LOGGED;
      const { fault, ...example } = last;
      const shown = { more, like: message, example, ...(fault === undefined ? {} : { fault }) };
      if (more > 0) log[level](shown, "more like this in the last minute");
    }
    causes.clear();
  };
  const timer = setInterval(summarize, LIMIT_EVERY_MS).unref();
  return {
    debug: (facts, message) => log.debug(facts, message),
    info: (facts, message) => log.info(facts, message),
    warn: (facts, message) => write("warn", facts, message),
    error: (facts, message) => write("error", facts, message),
    close() {
      clearInterval(timer);
      summarize();
    },
  };
}

/** Built from words of which there are only a few. */
function causeOf(level: Level, { fault, reason }: Facts, message: string): string {
  const word = typeof reason === "string" && /^[\w-]{1,40}$/.test(reason) ? reason : "";
  const code = fault instanceof Error && "code" in fault ? String(fault.code) : "";
  return [level, message, code, word].join("\n");
}
