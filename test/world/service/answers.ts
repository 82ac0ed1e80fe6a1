/** Answers of the services of a world, and how they may be spoilt on their way. */
import type { RequestEntry } from "./requests.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  readonly isOwn: boolean;
  readonly errorCode?: number;
  /** The content of a file, which arrives in two parts. */
  readonly isContent?: boolean;
}

/** What becomes of a request. */
export interface Outcome {
  readonly entry: RequestEntry;
  /** Missing: none is ever sent. */
  readonly answer?: Answer;
  /** The connection breaks before the head of the answer, or after so many bytes of its body. */
  readonly cutAt?: "head" | number;
  /** Nothing follows after so many bytes of the body. */
  readonly stallsAt?: number;
  /** It begins so much later. */
  readonly delayMs?: number;
  /** One byte every few seconds. */
  readonly isDripping?: boolean;
}

const REFUSALS = {
  parameterMissing: [400, 1002, "A required parameter is missing"],
  badValue: [400, 1004, "A parameter has a value that is not allowed"],
  badPath: [400, 1005, "A path variable is not valid"],
  tokenRefused: [401, 3002, "The verification is not valid"],
  passwordRefused: [401, 3003, "The transfer password is wrong"],
  transferLocked: [403, 2005, "The transfer is locked"],
  policyRefused: [403, 3010, "The policy does not allow this"],
  noSuchEndpoint: [404, 1006, "There is no such endpoint"],
  noSuchEntity: [404, 2003, "There is no such entity"],
  versionNotServed: [404, 2004, "The API version is not supported"],
  transferDeleted: [410, 2006, "The transfer has been deleted"],
  tooManyRequests: [429, 2007, "Too many requests"],
  serverFault: [500, 5000, "The server failed"],
  modeNotSupported: [501, 5001, "Unsupported operation: QUICK"],
  providerNotSupported: [501, 5002, "Unsupported operation: eID"],
} as const satisfies Record<string, readonly [status: number, errorCode: number, text: string]>;

export type RefusalName = keyof typeof REFUSALS;

export class Refusal extends Error {
  readonly reason: RefusalName;
  readonly headers: Readonly<Record<string, string>>;

  constructor(reason: RefusalName, headers: Readonly<Record<string, string>> = {}) {
    super(reason);
    this.reason = reason;
    this.headers = headers;
  }
}

export const NOTHING = Buffer.alloc(0);

/** `value`: may be JSON already. */
export function jsonAnswer(nowMs: number, value: unknown): Answer {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return ownAnswer(nowMs, "application/json", Buffer.from(text));
}

export function ownAnswer(nowMs: number, type: string, body: Buffer): Answer {
  const headers = {
    date: new Date(nowMs).toUTCString(),
    "content-type": type,
    "content-length": String(body.length),
  };
  return { status: 200, headers, body, isOwn: true };
}

export function refusalAnswer(
  nowMs: number,
  reason: RefusalName,
  headers: Readonly<Record<string, string>> = {},
): Answer {
  const [status, errorCode, errorMessage] = REFUSALS[reason];
  const answer = jsonAnswer(nowMs, { errorCode, errorMessage });
  return { ...answer, status, errorCode, headers: { ...answer.headers, ...headers } };
}

/** From an intermediary. */
export function htmlPage(status: number, headers: Readonly<Record<string, string>> = {}): Answer {
  const body = Buffer.from(`<html><body><h1>${status}</h1></body></html>`);
  const all = { "content-type": "text/html", "content-length": String(body.length), ...headers };
  return { status, headers: all, body, isOwn: false };
}
