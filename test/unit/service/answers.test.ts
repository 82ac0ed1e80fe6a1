import { describe, expect, test } from "vitest";
import { parseRetryAfter } from "../../../src/base/backoff.ts";
import { faultOfRefusal, faultOfTransport } from "../../../src/service/answers.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");

describe("a refusal becomes a fault", () => {
  test.each([
    [400, 1002, "BAD_REQUEST", "fatal"],
    [400, 1004, "BAD_REQUEST", "fatal"],
    [400, 1005, "BAD_REQUEST", "fatal"],
    [401, 3003, "PASSWORD_REFUSED", "wait"],
    [401, 3002, "TOKEN_REFUSED", "wait"],
    [403, 2005, "TRANSFER_LOCKED", "wait"],
    [403, 3001, "NOT_LICENSED", "wait"],
    [403, 3010, "POLICY_REFUSED", "wait"],
    [403, 3011, "POLICY_REFUSED", "wait"],
    [404, 1006, "NO_SUCH_ENDPOINT", "fatal"],
    [404, 2003, "NOT_FOUND", "fatal"],
    [404, 2004, "API_VERSION", "fatal"],
    [410, 2006, "TRANSFER_DELETED", "fatal"],
    [429, 2007, "RATE_LIMITED", "wait"],
    [500, 5000, "SERVER_FAULT", "retry"],
    [501, 5001, "BROWSER_ONLY", "wait"],
    [501, 5002, "BROWSER_ONLY", "wait"],
    [501, 5003, "NOT_SUPPORTED", "fatal"],
    [406, 9999, "NOT_ACCEPTABLE", "fatal"],
    [409, 9999, "CONFLICT", "retry"],
    [422, 9999, "BAD_REQUEST", "fatal"],
    [599, 9999, "SERVER_FAULT", "retry"],
  ])("%i with error %i: %s, %s", (status, errorCode, code, verdict) => {
    const body = JSON.stringify({ errorCode, errorMessage: "why" });
    const fault = refuse(status, body);
    expect(fault).toMatchObject({ code, verdict, answeredBy: "service" });
    expect(fault.message).toContain(`it: HTTP ${status}, error ${errorCode}, "why"`);
  });

  test.each([
    [401, "<html>", "ACCESS_REFUSED"],
    [403, "", "ACCESS_REFUSED"],
    [404, "<html>", "NO_SUCH_ENDPOINT"],
    [406, "<html>", "NOT_ACCEPTABLE"],
    [407, "", "PROXY_REFUSED"],
    [408, "", "SERVICE_TIMEOUT"],
    [409, "", "CONFLICT"],
    [416, "", "RANGE_REFUSED"],
    [429, "{}", "RATE_LIMITED"],
    [502, "<html>", "SERVER_FAULT"],
    [503, '{"errorCode":', "SERVER_FAULT"],
    [304, "", "BAD_ANSWER"],
    [400, '{"errorCode":"x"}', "BAD_REQUEST"],
  ])("%i with %j, as a proxy may answer: %s", (status, body, code) => {
    expect(refuse(status, body)).toMatchObject({ code, answeredBy: "intermediary" });
  });

  test.each([
    ['{"errorCode":3003,"errorMessage":null}', "PASSWORD_REFUSED"],
    ['{"errorCode":"3003"}', "PASSWORD_REFUSED"],
    ['\ufeff{"errorCode":3003}', "PASSWORD_REFUSED"],
    ["", "ACCESS_REFUSED"],
    ['{"errorCode":9999}', "ACCESS_REFUSED"],
  ])("of the password only if the answer names it, in any spelling: %j", (body, code) => {
    expect(refuse(401, body).code).toBe(code);
  });

  test("with the service's Retry-After", () => {
    expect(refuse(429, "", "7").retryAfterMs).toBe(7000);
  });
});

test.each([
  ["120", 120_000],
  ["0", 0],
  ["-5", 0],
  ["Thu, 01 Jan 2026 00:01:00 GMT", 60_000],
  ["Wed, 31 Dec 2025 00:00:00 GMT", 0],
  ["99999999", 86_400_000],
  ["soon", undefined],
  ["", undefined],
  [undefined, undefined],
])("Retry-After is understood %j as %j ms", (value, waitMs) => {
  expect(parseRetryAfter(value, NOW)).toBe(waitMs);
});

describe("a broken connection becomes a fault", () => {
  test.each([
    ["ECONNREFUSED", "SERVICE_UNREACHABLE"],
    ["ENOTFOUND", "SERVICE_UNREACHABLE"],
    ["ECONNRESET", "CONNECTION_LOST"],
    ["UND_ERR_SOCKET", "CONNECTION_LOST"],
    ["UND_ERR_HEADERS_TIMEOUT", "SERVICE_TIMEOUT"],
    ["UND_ERR_BODY_TIMEOUT", "SERVICE_TIMEOUT"],
    ["UND_ERR_CONNECT_TIMEOUT", "SERVICE_UNREACHABLE"],
    ["UND_ERR_NEVER_SEEN", "CONNECTION_LOST"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "TLS_REFUSED"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "TLS_REFUSED"],
    ["CERT_HAS_EXPIRED", "TLS_REFUSED"],
  ])("%s: %s", (code, expected) => {
    const error = Object.assign(new Error("why"), { code });
    expect(faultOfTransport(error, "it", "none").code).toBe(expected);
    expect(faultOfTransport(new AggregateError([error]), "it", "none").code).toBe(expected);
    expect(faultOfTransport(new TypeError("fetch failed", { cause: error }), "it", "none").message).toContain(
      `it: why (${code})`,
    );
  });

  test("also for a thrown value that is no error", () => {
    expect(faultOfTransport("odd", "it", "none")).toMatchObject({ code: "CONNECTION_LOST" });
  });
});

function refuse(status: number, body: string, retryAfter?: string) {
  return faultOfRefusal({ what: "it", isForTransfer: true, status, body, retryAfter }, NOW, (text) => text);
}
