/**
 * Classifies answers: HTTP statuses, the service's error numbers and socket errors become faults that say what happened
 * and whose word it is. No other code looks at statuses or error numbers.
 */
import * as v from "valibot";
import { parseRetryAfter } from "../base/backoff.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault, type Word } from "../base/faults.ts";

/** The service's own numbers say more than the status that carries them. */
const BY_ERROR_CODE: Readonly<Record<number, FaultCode>> = {
  1002: "BAD_REQUEST",
  1004: "BAD_REQUEST",
  1005: "BAD_REQUEST",
  1006: "NO_SUCH_ENDPOINT",
  2003: "NOT_FOUND",
  2004: "API_VERSION",
  2005: "TRANSFER_LOCKED",
  2006: "TRANSFER_DELETED",
  2007: "RATE_LIMITED",
  3001: "NOT_LICENSED",
  3002: "TOKEN_REFUSED",
  3003: "PASSWORD_REFUSED",
  3010: "POLICY_REFUSED",
  3011: "POLICY_REFUSED",
  5000: "SERVER_FAULT",
  5001: "NOT_SUPPORTED",
  5002: "NOT_SUPPORTED",
};

/** For answers without such a number: a proxy wrote them, or an unknown version of the service. */
const BY_STATUS: Readonly<Record<number, FaultCode>> = {
  401: "ACCESS_REFUSED",
  403: "ACCESS_REFUSED",
  404: "NO_SUCH_ENDPOINT",
  405: "NO_SUCH_ENDPOINT",
  407: "PROXY_REFUSED",
  408: "SERVICE_TIMEOUT",
  410: "TRANSFER_DELETED",
  416: "RANGE_REFUSED",
  429: "RATE_LIMITED",
  501: "NOT_SUPPORTED",
};

const BY_SOCKET_ERROR: Readonly<Record<string, FaultCode>> = {
  UND_ERR_CONNECT_TIMEOUT: "SERVICE_UNREACHABLE",
  ECONNREFUSED: "SERVICE_UNREACHABLE",
  ENOTFOUND: "SERVICE_UNREACHABLE",
  EAI_AGAIN: "SERVICE_UNREACHABLE",
  EHOSTUNREACH: "SERVICE_UNREACHABLE",
  ENETUNREACH: "SERVICE_UNREACHABLE",
  EADDRNOTAVAIL: "SERVICE_UNREACHABLE",
  UND_ERR_HEADERS_TIMEOUT: "SERVICE_TIMEOUT",
  UND_ERR_BODY_TIMEOUT: "SERVICE_TIMEOUT",
  ETIMEDOUT: "SERVICE_TIMEOUT",
  UND_ERR_SOCKET: "CONNECTION_LOST",
  UND_ERR_RES_CONTENT_LENGTH_MISMATCH: "CONNECTION_LOST",
  ECONNRESET: "CONNECTION_LOST",
  EPIPE: "CONNECTION_LOST",
  UND_ERR_HEADERS_OVERFLOW: "BAD_ANSWER",
  UND_ERR_INVALID_ARG: "CONFIG_INVALID",
  UND_ERR_PRX_CONN: "PROXY_REFUSED",
  UND_ERR_PRX_TLS: "PROXY_REFUSED",
};

const TLS_ERROR = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO$)/;

/**
 * The number counts, however it is written and whatever stands beside it. The service's numbers have four digits; gateways
 * use the same key with a status, or with nothing.
 */
const ErrorBody = v.object({
  errorCode: v.pipe(
    v.union([v.number(), v.string()]),
    v.transform(Number),
    v.integer(),
    v.minValue(1_000),
    v.maxValue(9_999),
  ),
  errorMessage: v.optional(v.unknown()),
});

/** What a status says about what follows it. `part`: from the middle of a file. `nothing`: that there is no body. */
export type AnswerKind = "whole" | "part" | "nothing" | "redirect" | "refusal";

export function kindOfAnswer(status: number): AnswerKind {
  if (status === 206) return "part";
  if (status === 204) return "nothing";
  if (status >= 200 && status < 300) return "whole";
  return [301, 302, 303, 307, 308].includes(status) ? "redirect" : "refusal";
}

export interface Refusal {
  /** What was asked for, in words. */
  readonly what: string;
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | undefined;
}

/** `clean` takes out of the service's text whatever must not be repeated. */
export function faultOfRefusal(refusal: Refusal, nowMs: number, clean: (text: string) => string): Fault {
  const { status } = refusal;
  const told = v.safeParse(ErrorBody, parseJson(refusal.body));
  const errorCode = told.success ? told.output.errorCode : undefined;
  const message = told.success ? told.output.errorMessage : "";
  const text = typeof message === "string" ? clean(message) : "";
  const retryAfterMs = parseRetryAfter(refusal.retryAfter, nowMs);
  const said = [`HTTP ${status}`, errorCode && `error ${errorCode}`, text && `"${text}"`].filter(Boolean);
  return new Fault(codeOfRefusal(status, errorCode), {
    detail: `${refusal.what}: ${said.join(", ")}`,
    word: told.success ? "service" : "intermediary",
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** Turns what undici or Node threw into a fault; a fault stays what it is. */
export function faultOfTransport(error: unknown, what: string, word: Word): Fault {
  if (error instanceof Fault) return error;
  const root = rootError(error);
  // The parser's error carries what was received, which is not ours to repeat.
  const cause = root.name === "HTTPParserError" ? undefined : error;
  return new Fault(codeOfTransport(root), { detail: `${what}: ${explain(root)}`, word, cause });
}

function codeOfRefusal(status: number, errorCode: number | undefined): FaultCode {
  return (
    (errorCode === undefined ? undefined : BY_ERROR_CODE[errorCode]) ??
    BY_STATUS[status] ??
    (status >= 500 ? "SERVER_FAULT" : status >= 400 ? "BAD_REQUEST" : "BAD_ANSWER")
  );
}

interface SystemError {
  readonly name?: string;
  readonly message: string;
  readonly code?: string;
}

function codeOfTransport(error: SystemError): FaultCode {
  const code = error.code ?? "";
  if (error.message.startsWith("Proxy response")) return "PROXY_REFUSED";
  if (error.name === "HTTPParserError") return "BAD_ANSWER";
  if (code.startsWith("Z_")) return "BAD_ANSWER";
  if (TLS_ERROR.test(code)) return "TLS_REFUSED";
  return BY_SOCKET_ERROR[code] ?? "CONNECTION_LOST";
}

/** The innermost error that has a code: several addresses tried at once arrive as one error of errors. */
function rootError(error: unknown): SystemError {
  if (error instanceof AggregateError && error.errors.length > 0) return rootError(error.errors[0]);
  if (!(error instanceof Error)) return { message: String(error) };
  const { cause } = error;
  if (cause instanceof Error && "code" in cause) return rootError(cause);
  return error;
}

function explain(error: SystemError): string {
  return error.code === undefined ? error.message : `${error.message} (${error.code})`;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text.replace(/^\ufeff/, ""));
  } catch {
    return undefined;
  }
}
