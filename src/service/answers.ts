/**
 * Turns HTTP statuses, the service's error numbers and socket errors into faults, which also say who answered: the service
 * or an intermediary. No other code looks at statuses or error numbers.
 */
import * as v from "valibot";
import { parseRetryAfter } from "../base/backoff.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { type AnsweredBy, Fault } from "../base/faults.ts";

/** Checked before the HTTP status, because the service's numbers are more precise. */
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
};

/** Of a transfer, in answers to requests for it: `QUICK`, and proof by an ID provider. */
const MODES_NOT_SUPPORTED: readonly number[] = [5001, 5002];

/** For answers without an error number, from a proxy or an unknown version of the service. */
const BY_STATUS: Readonly<Record<number, FaultCode>> = {
  401: "ACCESS_REFUSED",
  403: "ACCESS_REFUSED",
  404: "NO_SUCH_ENDPOINT",
  405: "NO_SUCH_ENDPOINT",
  406: "NOT_ACCEPTABLE",
  407: "PROXY_REFUSED",
  408: "SERVICE_TIMEOUT",
  409: "CONFLICT",
  410: "TRANSFER_DELETED",
  416: "RANGE_REFUSED",
  429: "RATE_LIMITED",
  501: "NOT_SUPPORTED",
};

/** By the error's code. Other codes, such as `ECONNRESET`, mean `CONNECTION_LOST`. */
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
  UND_ERR_HEADERS_OVERFLOW: "BAD_ANSWER",
  UND_ERR_INVALID_ARG: "CONFIG_INVALID",
  UND_ERR_PRX_CONN: "PROXY_REFUSED",
  UND_ERR_PRX_TLS: "PROXY_REFUSED",
};

const TLS_ERROR = /^(ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|EPROTO$)/;

/**
 * A number or its text, whatever the other fields hold. The service's numbers have four digits; gateways use the same key
 * with an HTTP status, or without a value.
 */
const ErrorBody = v.pipe(
  v.string(),
  v.transform((text) => text.replace(/^\ufeff/, "")),
  v.parseJson(),
  v.object({
    errorCode: v.pipe(
      v.union([v.number(), v.string()]),
      v.transform(Number),
      v.integer(),
      v.minValue(1_000),
      v.maxValue(9_999),
    ),
    errorMessage: v.optional(v.unknown()),
  }),
);

/** By its HTTP status. `part`: from the middle of a file. `nothing`: without a body. */
export type AnswerKind = "whole" | "part" | "nothing" | "redirect" | "refusal";

export function kindOfAnswer(status: number): AnswerKind {
  if (status === 206) return "part";
  if (status === 204) return "nothing";
  if (status >= 200 && status < 300) return "whole";
  return [301, 302, 303, 307, 308].includes(status) ? "redirect" : "refusal";
}

export interface Refusal {
  /** The requested thing, in words. */
  readonly what: string;
  readonly isForTransfer: boolean;
  readonly status: number;
  readonly body: string;
  readonly retryAfter: string | undefined;
}

/** `clean` removes secrets from the service's text. */
export function faultOfRefusal(refusal: Refusal, nowMs: number, clean: (text: string) => string): Fault {
  const { status } = refusal;
  const parsed = v.safeParse(ErrorBody, refusal.body);
  const errorCode = parsed.success ? parsed.output.errorCode : undefined;
  const message = parsed.success ? parsed.output.errorMessage : "";
  const text = typeof message === "string" ? clean(message) : "";
  const facts = [`HTTP ${status}`, errorCode && `error ${errorCode}`, text && `"${text}"`].filter(Boolean);
  const isByMode = refusal.isForTransfer && MODES_NOT_SUPPORTED.includes(errorCode ?? 0);
  return new Fault(isByMode ? "BROWSER_ONLY" : codeOfRefusal(status, errorCode), {
    detail: `${refusal.what}: ${facts.join(", ")}`,
    answeredBy: parsed.success ? "service" : "intermediary",
    retryAfterMs: parseRetryAfter(refusal.retryAfter, nowMs),
  });
}

/** Turns an error of undici or Node into a fault, and returns a fault as it is. */
export function faultOfTransport(error: unknown, what: string, answeredBy: AnsweredBy): Fault {
  if (error instanceof Fault) return error;
  const root = rootError(error);
  // The parser's error holds received bytes, which may be secret.
  const cause = root.name === "HTTPParserError" ? undefined : error;
  const detail = `${what}: ${explain(root)}`;
  // An error of zlib: the body is not valid gzip.
  if (root.code?.startsWith("Z_")) return foreignAnswer("BAD_ANSWER", detail, cause);
  return new Fault(codeOfTransport(root), { detail, answeredBy, cause });
}

/** An answer that is not in the service's own format: a proxy may have written it. */
export function foreignAnswer(code: FaultCode, detail: string, cause?: unknown): Fault {
  return new Fault(code, { detail, answeredBy: "intermediary", cause });
}

function codeOfRefusal(status: number, errorCode = 0): FaultCode {
  const known = BY_ERROR_CODE[errorCode] ?? BY_STATUS[status];
  if (known !== undefined) return known;
  if (status >= 500) return "SERVER_FAULT";
  return status >= 400 ? "BAD_REQUEST" : "BAD_ANSWER";
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
  if (TLS_ERROR.test(code)) return "TLS_REFUSED";
  return BY_SOCKET_ERROR[code] ?? "CONNECTION_LOST";
}

/** The innermost error with a code. Attempts at several addresses arrive as an `AggregateError`. */
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
