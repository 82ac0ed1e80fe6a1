/** Sends every request to the service, and turns every failure into a fault. */
import type { Dispatcher } from "undici";
import { systemClock } from "../base/clock.ts";
import { type ConnectionOptions, openConnections } from "../base/connection.ts";
import { LONGEST_TIMER_MS } from "../base/deadline.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { type AnsweredBy, Fault } from "../base/faults.ts";
import { type Secret, scrub } from "../base/secret.ts";
import { clearTimeout, monotonicMs, nextTurn, pauseOrAbort, setTimeout, timeLimit } from "../base/timers.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { faultOfRefusal, faultOfTransport, foreignAnswer, kindOfAnswer } from "./answers.ts";
import { type AnswerSize, headerOf, readJson, readText } from "./bodies.ts";
import { readEntries } from "./entries.ts";
import { Gate, type Place } from "./gate.ts";
import { type Answer, receive } from "./receiving.ts";

/** The oldest minor version of the interface that has polling. */
export const POLLING_MINOR_VERSION = 12;
/** The oldest minor version that is known to have all other operations. */
const OLDEST_MINOR_VERSION = 7;

/** The first segment of every path of a transfer. */
const TRANSFERS = "transfers";

const MAX_ERROR_BYTES = 64 * 1024;
const LONGEST_ERROR_TEXT = 200;
const MAX_REDIRECTS = 3;

/** The head of an answer, a refusal or JSON must be complete within this many times `timeoutMs`. */
const ANSWER_TIMEOUTS = 4;
/** How long a measured difference between the clocks is used. */
const CLOCK_KNOWN_MS = 60 * 60_000;
/** Answers after which fewer requests are sent at once. */
const OVERLOAD: ReadonlySet<FaultCode> = new Set(["RATE_LIMITED", "SERVER_FAULT", "SERVICE_TIMEOUT"]);
/** A request that the service refuses because of too many others is repeated this often, after growing pauses. */
const MAX_REPEATS = 5;
const FIRST_REPEAT_MS = 250;
/** A longer pause is the caller's to decide. */
const LONGEST_REPEAT_MS = 10_000;
/** How long `close` waits for running requests. */
const CLOSE_TIMEOUT_MS = 5_000;

export interface HttpOptions extends ConnectionOptions {
  /** The part before `/api`; may have a path. */
  readonly baseUrl: URL;
  readonly clientId: Secret;
  /** The language of the service's texts for people, such as the labels of the checksums CSV. */
  readonly acceptLanguage: string;
  readonly userAgent: string;
  /** The most requests for transfers at once, as configured now. */
  readonly maxRequests: () => number;
  /** Missing: over the network. */
  readonly openConnections?: typeof openConnections;
}

/** Parameters without a value are left out. */
export type Query = readonly (readonly [name: string, value: string | number | boolean | undefined])[];

export interface Call {
  /** The requested thing, in words, for messages: "the list of files". */
  readonly what: string;
  readonly method?: "GET" | "POST";
  /** Segments after `/api`, not encoded. */
  readonly path: readonly string[];
  readonly query?: Query;
  readonly headers?: Readonly<Record<string, string>>;
  /** The oldest minor version of the interface that has this operation; missing: all known ones have it. */
  readonly minorVersion?: number;
  readonly token?: Secret | undefined;
  readonly password?: Secret | undefined;
  readonly json?: unknown;
  /** Secrets in the JSON, which no message may repeat. */
  readonly secrets?: readonly Secret[];
  /** Sent without the client id. */
  readonly anonymous?: boolean;
  /** The password may be wrong: a redirect is not followed, because each request may cost an attempt. */
  readonly isAttempt?: boolean;
  /** The limits of a JSON answer; by default `small`. */
  readonly size?: AnswerSize;
}

export function openHttp(options: HttpOptions) {
  const connections = (options.openConnections ?? openConnections)(options, options.baseUrl);
  let measured: { readonly dateMs: number; readonly atMs: number } | undefined;
  let ownAnswers = 0;
  const countIfOwn = (call: Call, isOwn: boolean) => {
    if (isOwn && call.password === undefined) ownAnswers++;
  };
  const measureClock = (answer: Answer) => {
    const dateMs = dateOf(answer);
    if (!Number.isNaN(dateMs)) measured = { dateMs, atMs: monotonicMs() };
  };
  const gate = new Gate(options.maxRequests);
  /** Throws only faults. `place`: missing for requests that the gate does not limit. */
  const askOnce = async <Value>(
    call: Call,
    signal: AbortSignal,
    place: Place | undefined,
    finish: (answer: Answer) => Value | Promise<Value>,
  ): Promise<Value> => {
    const late = timeLimit(Math.min(options.timeoutMs * ANSWER_TIMEOUTS, LONGEST_TIMER_MS));
    const either = AbortSignal.any([signal, late.signal]);
    let answeredBy: AnsweredBy = "unsent";
    const onSending = () => {
      answeredBy = "none";
      place?.onSending();
    };
    try {
      const answer = await send(connections, options, call, either, onSending);
      measureClock(answer);
      place?.onAnswer();
      // A turn later, undici can use the connection again.
      if (place !== undefined)
        answer.body.whenEnded((bytes) => void nextTurn().then(() => place.leave(bytes)));
      return await finish(answer);
    } catch (error) {
      if (error instanceof Fault) countIfOwn(call, error.answeredBy === "service");
      else if (late.signal.aborted) throw tooSlow(call.what, answeredBy);
      throw faultOf(error, call.what, signal, answeredBy);
    } finally {
      late.clear();
    }
  };
  /** A request for a transfer keeps its place while it is repeated: requests that depend on its answer may wait for one. */
  const ask = async <Value>(
    call: Call,
    signal: AbortSignal,
    finish: (answer: Answer) => Value | Promise<Value>,
  ): Promise<Value> => {
    const [room, transfer = "", part] = call.path;
    if (room !== TRANSFERS) return askOnce(call, signal, undefined, finish);
    let place: Place | undefined;
    try {
      place = await gate.enter(transfer, `${call.path.length} ${part}`, signal);
      for (let repeats = 0; ; repeats++) {
        const result = await askOnce(call, signal, place, finish).then(
          (value) => ({ value }),
          (fault: Fault) => ({ fault }),
        );
        // The place is left when the body has ended.
        if ("value" in result) return result.value;
        const { fault } = result;
        if (OVERLOAD.has(fault.code)) place.onOverload();
        const waitMs = repeatAfterMs(call, fault, repeats);
        // A service that refuses a request without others wants a longer pause.
        if (waitMs === undefined || !place.hasOthers()) throw fault;
        gate.hold(waitMs);
        // If the signal aborts, the next request ends at once.
        await pauseOrAbort(waitMs, signal);
      }
    } catch (error) {
      place?.leave();
      throw faultOf(error, call.what, signal, "unsent");
    }
  };
  const askJson = <Value>(call: Call, signal: AbortSignal, finish: (answer: Answer) => Promise<Value>) => {
    const headers = { accept: "application/json", "accept-encoding": "gzip", ...call.headers };
    return ask({ ...call, headers }, signal, finish);
  };
  return {
    /** The parsed body of a successful answer. Throws `EmptyAnswer` if there is none. */
    json: (call: Call, signal: AbortSignal): Promise<unknown> =>
      askJson(call, signal, async (answer) => {
        const json = await readJson(answer, call.what, call.size);
        countIfOwn(call, isOwnFormat(json));
        return json;
      }),
    /** Calls `take` with each entry of a long list, while the answer arrives. */
    entries: (call: Call, signal: AbortSignal, take: (entry: unknown) => void): Promise<void> =>
      askJson(call, signal, (answer) => readEntries(answer, call.what, take)),
    /** A successful answer. The caller reads or cancels its body. */
    stream(call: Call, signal: AbortSignal): Promise<Answer> {
      const headers = { accept: "*/*", "accept-encoding": "identity", ...call.headers };
      return ask({ ...call, headers }, signal, (answer) => answer);
    },
    /** The number of requests without a password that the service has answered in its own format. */
    ownAnswers: () => ownAnswers,
    /** How far our clock is ahead of the service's now, by its last answer; `undefined` without a recent answer. */
    clockAheadMs() {
      const sinceMs = monotonicMs() - (measured?.atMs ?? Number.NEGATIVE_INFINITY);
      return measured && sinceMs < CLOCK_KNOWN_MS ? systemClock.now() - sinceMs - measured.dateMs : undefined;
    },
    /** Closes idle connections at once, busy ones when they are done, and all after some seconds. */
    async close(): Promise<void> {
      const { promise: late, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, CLOSE_TIMEOUT_MS).unref();
      await Promise.race([connections.close(), late]);
      clearTimeout(timer);
      await connections.destroy();
    },
  };
}

export type Http = ReturnType<typeof openHttp>;

/** When the service has answered, by its own clock; `NaN` if it does not say. */
function dateOf(answer: Answer): number {
  return Date.parse(headerOf(answer, "date") ?? "");
}

/** By the first key, as of every successful JSON answer of the service. */
function isOwnFormat(json: unknown): boolean {
  const [key = ""] = Object.keys(json ?? {});
  return ["data", "meta", "apiVersions"].includes(key);
}

/**
 * How long to wait before the request is sent again; `undefined` if it is not. A password attempt is repeated only if the
 * service itself says that it has not judged it.
 */
function repeatAfterMs(call: Call, fault: Fault, repeats: number): number | undefined {
  if (fault.code !== "RATE_LIMITED" || repeats === MAX_REPEATS) return undefined;
  if (call.isAttempt && fault.answeredBy !== "service") return undefined;
  const waitMs = fault.retryAfterMs ?? FIRST_REPEAT_MS * 2 ** repeats;
  return waitMs <= LONGEST_REPEAT_MS ? waitMs : undefined;
}

/** The fault of a failed request or body: `STOPPED` after an abort, unless the error is a fault already. */
export function faultOf(error: unknown, what: string, signal: AbortSignal, answeredBy: AnsweredBy): Fault {
  if (error instanceof Fault || !signal.aborted) return faultOfTransport(error, what, answeredBy);
  return new Fault("STOPPED", { detail: what, answeredBy, cause: signal.reason });
}

/** Returns a success, and follows redirects within the service. Throws a fault for any other answer. */
async function send(
  connections: Dispatcher,
  options: HttpOptions,
  call: Call,
  signal: AbortSignal,
  onSending: () => void,
): Promise<Answer> {
  const { origin } = options.baseUrl;
  let path = pathOf(options.baseUrl, call);
  for (let redirects = 0; ; redirects++) {
    const request = {
      origin,
      path,
      method: call.method ?? "GET",
      headers: headersOf(options, call),
      body: call.json === undefined ? null : JSON.stringify(call.json),
    };
    const answer = await receive(connections, request, signal, onSending);
    const kind = kindOfAnswer(answer.statusCode);
    if (kind !== "redirect" && kind !== "refusal") return answer;
    const location = headerOf(answer, "location");
    if (kind === "refusal" || location === undefined) throw await readRefusal(answer, options, call);
    answer.body.cancel();
    const target = redirectTarget(new URL(origin + path), location, options, call, redirects);
    path = target.pathname + target.search;
  }
}

/** Throws `REDIRECT_REFUSED` for a target outside the service, and `BAD_ANSWER` where no redirect is followed. */
function redirectTarget(
  from: URL,
  location: string,
  { baseUrl }: HttpOptions,
  call: Call,
  redirects: number,
): URL {
  const to = URL.parse(location, from.href);
  if (to === null || !isWithin(baseUrl, to)) {
    // The path may hold a secret.
    const elsewhere = to?.origin === baseUrl.origin ? "another path of " : "";
    const where = to === null ? "an invalid address" : `${elsewhere}${to.origin}`;
    throw foreignAnswer("REDIRECT_REFUSED", `${call.what}: to ${where}`);
  }
  if (redirects >= MAX_REDIRECTS) throw foreignAnswer("BAD_ANSWER", `${call.what}: too many redirects`);
  if (call.method === "POST" || call.isAttempt) {
    throw foreignAnswer("BAD_ANSWER", `${call.what}: a redirect, which is not followed here`);
  }
  return to;
}

/** Another service may live at the same origin, below another path: it must not get our secrets. */
function isWithin(baseUrl: URL, { origin, pathname }: URL): boolean {
  return `${origin}${pathname}/`.startsWith(`${serviceIdOf(baseUrl)}/`);
}

/** Built as text, not resolved as a URL: a path that begins with two slashes would name another host. */
function pathOf(baseUrl: URL, { path, query = [], what }: Call): string {
  const segments = path.map((segment) => encodeSegment(segment, what));
  const target = `${baseUrl.pathname.replace(/\/+$/, "")}/api/${segments.join("/")}`;
  const parameters = new URLSearchParams();
  for (const [name, value] of query) if (value !== undefined) parameters.append(name, String(value));
  return parameters.size === 0 ? target : `${target}?${parameters}`;
}

/** Ids are opaque, but an empty one, `.` or `..` would change the path. */
function encodeSegment(segment: string, what: string): string {
  if (!segment.isWellFormed() || ["", ".", ".."].includes(segment)) {
    throw new Fault("BAD_REQUEST", {
      detail: `${what}: ${JSON.stringify(segment)} cannot be part of an address`,
      answeredBy: "unsent",
    });
  }
  return encodeURIComponent(segment);
}

function headersOf(options: HttpOptions, call: Call): Record<string, string> {
  return {
    "x-cs-majorapiversion": "1",
    "x-cs-minimumminorapiversion": String(call.minorVersion ?? OLDEST_MINOR_VERSION),
    "x-cs-productkey": "api.rest",
    "accept-language": options.acceptLanguage,
    "user-agent": options.userAgent,
    ...(call.anonymous ? {} : { "x-cs-clientid": options.clientId.reveal() }),
    ...(call.token === undefined ? {} : { "x-cs-verificationtoken": call.token.reveal() }),
    ...(call.password === undefined ? {} : { "x-cs-password": encodePassword(call.password) }),
    ...(call.json === undefined ? {} : { "content-type": "application/json" }),
    ...call.headers,
  };
}

function encodePassword(password: Secret): string {
  const text = password.reveal();
  if (text === "" || !text.isWellFormed()) throw new Fault("PASSWORD_UNUSABLE", { answeredBy: "unsent" });
  return encodeURIComponent(text);
}

async function readRefusal(answer: Answer, options: HttpOptions, call: Call): Promise<Fault> {
  const { token, password, secrets = [] } = call;
  const hidden = [options.clientId, token, password, ...secrets].filter((it) => it !== undefined);
  const clean = (text: string) =>
    scrub(text, hidden)
      .replace(/\p{Cc}+/gu, " ")
      .slice(0, LONGEST_ERROR_TEXT);
  // The body only adds details: a failure to read it must not replace the refusal.
  const body = await readText(answer, MAX_ERROR_BYTES, call.what).catch(() => "");
  const retryAfter = headerOf(answer, "retry-after");
  const isForTransfer = call.path[0] === TRANSFERS;
  const refusal = { what: call.what, isForTransfer, status: answer.statusCode, body, retryAfter };
  // A time in `Retry-After` is one of the service's clock.
  return faultOfRefusal(refusal, dateOf(answer) || systemClock.now(), clean);
}

function tooSlow(what: string, answeredBy: AnsweredBy): Fault {
  const problem = answeredBy === "unsent" ? "no connection became free" : "the answer arrives too slowly";
  return new Fault("SERVICE_TIMEOUT", { detail: `${what}: ${problem}`, answeredBy });
}
