/**
 * Limits warnings and errors. For each message, code of a fault and reason, the first few lines of a minute are logged as
 * they come. One line at the end of the minute says how many more there were, and shows the last. Other levels are not limited.
 */
import type { Log } from "./log.ts";

type Level = "debug" | "info" | "warn" | "error";

type Facts = Readonly<Record<string, unknown>>;

/** The part of a log that events are written to. */
export type EventLines = Readonly<Record<Level, (facts: Facts, message: string) => void>>;

const EVERY_MS = 60_000;
const FIRST = 20;

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
    const key = causeOf(level, facts, message);
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

/** Built from words of which there are only a few. */
function causeOf(level: Level, { fault, reason }: Facts, message: string): string {
  const word = typeof reason === "string" && /^[\w-]{1,40}$/.test(reason) ? reason : "";
  const code = fault instanceof Error && "code" in fault ? String(fault.code) : "";
  return [level, message, code, word].join("\n");
}
