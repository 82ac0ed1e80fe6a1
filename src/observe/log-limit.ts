/**
 * Limits warnings and errors. For each message and cause, the first few lines of a minute are logged as they come. One line
 * at the end of the minute says how many more there were, and shows the last. Other levels are not limited.
 */
import type { Log } from "./log.ts";

/** Facts that say where something happened, not why. Their values may be part of other texts too. */
const PLACES = ["trackingId", "sender", "mailbox", "folder", "file"];
/** Facts that differ from line to line. */
const DETAILS = ["until", "expires", "due", "output"];

type Level = "debug" | "info" | "warn" | "error";

type Facts = Readonly<Record<string, unknown>>;

/** The part of a log that events are written to. */
export type EventLines = Readonly<Record<Level, (facts: Facts, message: string) => void>>;

const EVERY_MS = 60_000;
const FIRST = 20;
/** Beyond this number of causes in a minute, lines with one message and one fault code count as one cause. */
const MAX_CAUSES = 1_000;
const LONGEST_CAUSE = 1_000;

interface Counted {
  readonly level: "warn" | "error";
  readonly message: string;
  lines: number;
  last: Facts;
}

/** `close` writes the open summaries, and ends the timer. */
export function limitLog(log: Log): EventLines & { close(): void } {
  const causes = new Map<string, Counted>();
  const write = (level: "warn" | "error", facts: Facts, message: string) => {
    const exact = causeOf(level, facts, message);
    const key = causes.has(exact) || causes.size < MAX_CAUSES ? exact : coarseCauseOf(level, facts, message);
    const counted = causes.get(key) ?? { level, message, lines: 0, last: facts };
    causes.set(key, counted);
    counted.lines++;
    counted.last = facts;
    if (counted.lines <= FIRST) log[level](facts, message);
  };
  const summarize = () => {
    for (const { level, message, lines, last } of causes.values()) {
      const more = lines - FIRST;
      const { fault, ...example } = last;
      const shown = { more, like: message, example, ...(fault === undefined ? {} : { fault }) };
      if (more > 0) log[level](shown, "more like this in the last minute");
    }
    causes.clear();
  };
  const timer = setInterval(summarize, EVERY_MS).unref();
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

/** The same for all lines that say the same about different transfers, mailboxes, times and sizes. */
function causeOf(level: Level, facts: Facts, message: string): string {
  const places = PLACES.map((name) => facts[name]).filter((it) => typeof it === "string" && it !== "");
  const clean = (text: string) =>
    places.reduce<string>((rest, place) => rest.replaceAll(String(place), "…"), text).replace(/\d+/g, "#");
  const texts = Object.entries(facts).flatMap(([name, value]) => {
    if (PLACES.includes(name) || DETAILS.includes(name)) return [];
    if (value instanceof Error) return [`${name} ${codeOf(value)} ${clean(value.message)}`];
    return typeof value === "string" ? [`${name} ${clean(value)}`] : [];
  });
  return [level, message, ...texts].join("\n").slice(0, LONGEST_CAUSE);
}

/** Built from words of which there are only a few. */
function coarseCauseOf(level: Level, { fault, reason }: Facts, message: string): string {
  const word = typeof reason === "string" && /^[\w-]{1,40}$/.test(reason) ? reason : "";
  return [level, message, codeOf(fault), word].join("\n");
}

function codeOf(fault: unknown): string {
  return fault instanceof Error && "code" in fault ? String(fault.code) : "";
}
