/** The log: JSON lines, or readable lines on a terminal. Messages are constant; facts are fields. */
import { type Logger, pino } from "pino";
import { escapeJson } from "../base/phrases.ts";
import { Secret } from "../base/secret.ts";

export type Log = Logger;

const LEVEL_WORDS: Readonly<Record<number, string>> = {
  10: "trace",
  20: "debug",
  30: "",
  40: "WARN",
  50: "ERROR",
  60: "FATAL",
};

/** Fields with these names are never written. */
const HIDDEN = [
  "password",
  "token",
  "clientId",
  "href",
  "downloadUrl",
  "*.password",
  "*.token",
  "*.clientId",
  "*.href",
];

export function createLog(output: NodeJS.WritableStream & { readonly isTTY?: boolean }, level: string): Log {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: HIDDEN, censor: "[secret]" },
    serializers: { fault: describe },
  };
  // Both may be read on a terminal, and fields hold untrusted text.
  const format = output.isTTY === true ? formatLine : String;
  return pino(options, { write: (line: string) => void output.write(escapeJson(format(line))) });
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

function formatLine(line: string): string {
  const { level, time, msg, ...facts } = JSON.parse(line) as { level: number; time: string; msg: string };
  const fields = Object.entries(facts).map(([name, value]) => `${name}=${formatValue(value)}`);
  const word = LEVEL_WORDS[level] ?? "";
  return `${time.slice(11, 19)} ${word === "" ? "" : `${word} `}${msg}  ${fields.join(" ")}`
    .trimEnd()
    .concat("\n");
}

function formatValue(value: unknown): string {
  if (value instanceof Secret) return String(value);
  return typeof value === "string" && /^[\w@.:/+-]+$/.test(value) ? value : JSON.stringify(value);
}
