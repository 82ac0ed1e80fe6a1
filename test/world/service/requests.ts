/** Requests as a service of a world reads them, and as the judge of the world sees them. */
import { ServiceError } from "../../../simulator/errors.ts";
import { parseFields, type Selection } from "../../../simulator/fields.ts";
import type { Process } from "../ground/process.ts";
import type { Mood } from "../plan/sent.ts";
import { Refusal } from "./answers.ts";

export type Operation =
  | "list"
  | "token"
  | "information"
  | "files"
  | "file"
  | "zip"
  | "eml"
  | "checksums"
  | "status"
  | "other";

/** What the service decided about a password. `unsupported`: no password opens this transfer. */
type Verdict = "accepted" | "refused" | "locked" | "deleted" | "unsupported";

/** One request for the judge of a world, and what became of it. Its secrets are as the service reads them. */
export interface RequestEntry {
  readonly atMs: number;
  readonly process: Process;
  /** The number of the service. */
  readonly service: number;
  readonly origin: string;
  readonly method: string;
  /** As sent, without the query. */
  readonly path: string;
  readonly query: string;
  readonly operation: Operation;
  readonly transferId?: string | undefined;
  readonly trackingId?: string | undefined;
  readonly address?: string | undefined;
  readonly fields?: string | undefined;
  readonly password?: string | undefined;
  readonly token?: string | undefined;
  readonly clientId?: string | undefined;
  /** Missing: no weather changed what the service did. */
  mood?: Mood;
  /** Missing: the service decided nothing about a password. */
  verdict?: Verdict;
  /** Its checksums are not those of the files. */
  isFalse?: boolean;
  /** The service counted a wrong password, whatever it answered. */
  isWrong?: boolean;
  /** Of the answer that was sent. */
  status?: number;
  errorCode?: number;
  /** Of the answer that was sent. */
  retryAfter?: string;
  /**
   * `own`: in the service's format, complete except for the content of files. `foreign`: any other answer. `none`: the
   * request failed. Missing: not yet, or the process died before.
   */
  answered?: "own" | "foreign" | "none";
}

/** A request as it arrives. */
export interface Incoming {
  readonly process: Process;
  readonly origin: string;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A request that is being answered. */
export interface Call {
  readonly entry: RequestEntry;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly query: URLSearchParams;
  /** Decoded, after `/api`. */
  readonly segments: readonly string[];
}

/** Empty for a path that is not below `/api`, or not valid. */
export function segmentsOf(path: string, basePath: string): readonly string[] {
  try {
    const segments = path.split("/").map(decodeURIComponent);
    const start = [...basePath.split("/"), "api"];
    // The base path may be spelled with encoded letters.
    return start.every((segment, at) => segments[at] === segment) ? segments.slice(start.length) : [];
  } catch {
    return [];
  }
}

const SPECIAL: Readonly<Record<string, "zip" | "eml" | "checksums">> = {
  zip: "zip",
  eml: "eml",
  checksums: "checksums",
};

/** `hasBelowFiles`: `zip` and the like may be below `files`, where they would be ids of files otherwise. */
export function operationOf(
  method: string,
  [area, , third, fourth, ...more]: readonly string[],
  hasBelowFiles: boolean,
): Operation {
  if (area === "status" && third === undefined) return "status";
  if (area === "users" && third === "transfers" && fourth === "received-transfers") return "list";
  if (area === "users" && third === "verification" && fourth === "token" && method === "POST") return "token";
  if (area !== "transfers" || more.length > 0 || method !== "GET") return "other";
  if (third === undefined) return "information";
  if (fourth === undefined) return third === "files" ? "files" : (SPECIAL[third] ?? "other");
  if (third !== "files") return "other";
  return (hasBelowFiles ? SPECIAL[fourth] : undefined) ?? "file";
}

export function passwordOf(headers: Call["headers"], query: URLSearchParams): string | undefined {
  const sent = headers["x-cs-password"];
  if (sent === undefined) return query.get("password") ?? undefined;
  try {
    return decodeURIComponent(sent);
  } catch {
    return sent;
  }
}

const selections = new Map<string, Selection>();

export function selectionOf(fields: string, refusesOthers: boolean): Selection {
  const key = `${refusesOthers} ${fields}`;
  const known = selections.get(key);
  if (known !== undefined) return known;
  try {
    const selection = parseFields(fields, refusesOthers ? "refuse" : "select");
    selections.set(key, selection);
    return selection;
  } catch (error) {
    if (error instanceof ServiceError) throw new Refusal("badValue");
    throw error;
  }
}

export function parseInteger(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Refusal("badValue");
  return Number(text);
}

export function integerOf(query: URLSearchParams, name: string, fallback: number): number {
  const text = query.get(name);
  const value = text === null ? fallback : parseInteger(text);
  if (value < 1) throw new Refusal("badValue");
  return value;
}

export function booleanOf(query: URLSearchParams, name: string): boolean | undefined {
  const text = query.get(name);
  if (text === null) return undefined;
  if (text !== "true" && text !== "false") throw new Refusal("badValue");
  return text === "true";
}
