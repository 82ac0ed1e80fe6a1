/** The one function through which every request to the service goes. */
import { setTimeout as pause } from "node:timers/promises";
import type { Dispatcher } from "undici";
import { type Clock, systemClock } from "../base/clock.ts";
import { Fault, type Word } from "../base/faults.ts";
import { type Secret, scrub } from "../base/secret.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { faultOfRefusal, faultOfTransport, kindOfAnswer } from "./answers.ts";
import { type AnswerSize, headerOf, type JsonText, readJson, readText } from "./bodies.ts";
import { type ConnectionOptions, openConnections } from "./connection.ts";
import { readEntries } from "./entries.ts";
import { type Answer, type End, receive, type Steps } from "./receiving.ts";

/** The oldest minor version of the interface that has polling. */
export const POLLING_MINOR_VERSION = 12;
/** The oldest one that is known to have everything else. */
const OLDEST_MINOR_VERSION = 7;

/** How every JSON success of the service begins. */
const OWN_FORMAT = /^\ufeff?\s*\{\s*"(?:data|meta|apiVersions)"/;

const MOST_ERROR_BYTES = 64 * 1024;
const LONGEST_ERROR_TEXT = 200;
const MOST_REDIRECTS = 3;

/** The head of an answer, a refusal and JSON may drip, but not for longer than so many times the time limit for silence. */
const ANSWER_PATIENCE = 4;
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export interface HttpOptions extends ConnectionOptions {
  /** What stands before `/api`; may have a path of its own. */
  readonly baseUrl: URL;
  readonly clientId: Secret;
  /** The language of what the service writes for people, such as the labels of the checksums CSV. */
  readonly acceptLanguage: string;
}

export interface Call {
  /** What is asked for, in words, for messages: "the list of files". */
  readonly what: string;
  readonly method?: "GET" | "POST";
  /** Segments after `/api`, not encoded. */
  readonly path: readonly string[];
  readonly query?: readonly (readonly [name: string, value: string])[];
  readonly headers?: Readonly<Record<string, string>>;
  /** The minor version of the interface that has this operation; missing: every known one. */
  readonly minorVersion?: number;
  readonly token?: Secret | undefined;
  readonly password?: Secret | undefined;
  readonly json?: unknown;
  /** Secrets inside the JSON, which no message may repeat. */
  readonly secrets?: readonly Secret[];
  /** Asked before there is a client id to send. */
  readonly anonymous?: boolean;
  /** The password may be wrong: a redirect is not followed, because each request may cost an attempt. */
  readonly isAttempt?: boolean;
  /** How large a JSON answer may be; small unless told. */
  readonly size?: AnswerSize;
}

export interface Http {
  /** Names the service. */
  readonly serviceId: string;
  /** The parsed body of a successful answer, `undefined` where it is empty. */
  json(call: Call, signal: AbortSignal): Promise<unknown>;
  /** The same before it is parsed. */
  jsonText(call: Call, signal: AbortSignal): Promise<JsonText>;
  /** Passes on each entry of a long list that a successful answer holds, while it arrives. */
  entries(call: Call, signal: AbortSignal, take: (entry: unknown) => void): Promise<void>;
  /** A successful answer whose body is still to be read. */
  stream(call: Call, signal: AbortSignal): Promise<Answer>;
  /** How many requests without a password were answered in the service's own format. */
  readonly ownAnswers: number;
  /** By how much our clock is ahead of the service's, as its last answer said; `undefined` where none did lately. */
  clockAheadMs(): number | undefined;
  close(): Promise<void>;
}

/** What a service said of its clock counts for so long. */
const CLOCK_KNOWN_MS = 60 * 60_000;
/** Requests under way have so long to end. */
const CLOSE_MS = 5_000;

export function openHttp(options: HttpOptions, clock: Clock = systemClock): Http {
  const connections = openConnections(options, options.baseUrl);
  let told: { readonly aheadMs: number; readonly atMs: number } | undefined;
  let ownAnswers = 0;
  const countOwn = (call: Call, isOwn: boolean) => {
    if (isOwn && call.password === undefined) ownAnswers++;
  };
  const noteDate = (answer: Answer) => {
    const dateMs = Date.parse(headerOf(answer, "date") ?? "");
    if (!Number.isNaN(dateMs)) told = { aheadMs: clock.now() - dateMs, atMs: performance.now() };
    return answer;
  };
  const ask = async <Value>(
    call: Call,
    signal: AbortSignal,
    finish: (answer: Answer) => Value | Promise<Value>,
  ): Promise<Value> => {
    // Signals that depend on each other would do the same, at the price of a small request.
    let end: End | undefined;
    let isTooLate = false;
    let word: Word = "unsent";
    const onSent = () => {
      word = "silence";
    };
    const giveUp = () => {
      isTooLate = true;
      end?.(new Error("the answer takes too long"));
    };
    const timer = setTimeout(giveUp, Math.min(options.timeoutMs * ANSWER_PATIENCE, LONGEST_TIMER_MS));
    const onBegun = (it: End) => {
      end = it;
      if (isTooLate) giveUp();
    };
    try {
      return await finish(
        noteDate(await send(connections, options, call, { signal, clock, onBegun, onSent })),
      );
    } catch (error) {
      if (error instanceof Fault) countOwn(call, error.word === "service");
      else if (isTooLate) throw tooSlow(call.what, word);
      throw faultOf(error, call.what, signal, word);
    } finally {
      clearTimeout(timer);
    }
  };
  const askJson = <Value>(call: Call, signal: AbortSignal, finish: (answer: Answer) => Promise<Value>) => {
    const headers = { accept: "application/json", "accept-encoding": "gzip", ...call.headers };
    return ask({ ...call, headers }, signal, finish);
  };
  const jsonText = (call: Call, signal: AbortSignal) =>
    askJson(call, signal, async (answer) => {
      const json = await readJson(answer, call.what, call.size);
      countOwn(call, OWN_FORMAT.test(json.text));
      return json;
    });
  return {
    serviceId: serviceIdOf(options.baseUrl),
    json: async (call, signal) => (await jsonText(call, signal)).parse(),
    jsonText,
    entries: (call, signal, take) => askJson(call, signal, (answer) => readEntries(answer, call.what, take)),
    stream(call, signal) {
      const headers = { accept: "*/*", "accept-encoding": "identity", ...call.headers };
      return ask({ ...call, headers }, signal, (answer) => answer);
    },
    get ownAnswers() {
      return ownAnswers;
    },
    clockAheadMs: () =>
      told !== undefined && performance.now() - told.atMs < CLOCK_KNOWN_MS ? told.aheadMs : undefined,
    async close() {
      await Promise.race([connections.close(), pause(CLOSE_MS, undefined, { ref: false })]);
      await connections.destroy();
    },
  };
}

/** What ended a request or a body, as a fault; being told to stop is one of its own, but never hides an answer. */
export function faultOf(error: unknown, what: string, signal: AbortSignal, word: Word): Fault {
  if (error instanceof Fault || !signal.aborted) return faultOfTransport(error, what, word);
  return new Fault("STOPPED", { detail: what, word, cause: signal.reason });
}

/** Sends, follows redirects within the origin, and turns every answer but a success into a fault. */
async function send(
  connections: Dispatcher,
  options: HttpOptions,
  call: Call,
  { signal, clock, ...steps }: Steps & { readonly signal: AbortSignal; readonly clock: Clock },
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
    const answer = await receive(connections, request, signal, steps);
    const kind = kindOfAnswer(answer.statusCode);
    if (kind !== "redirect" && kind !== "refusal") return answer;
    const location = kind === "redirect" ? headerOf(answer, "location") : undefined;
    if (location === undefined) throw await refusal(answer, options, call, clock);
    answer.body.cancel();
    const target = redirectTarget(new URL(origin + path), location, options, call, redirects);
    path = target.pathname + target.search;
  }
}

function redirectTarget(
  from: URL,
  location: string,
  { baseUrl }: HttpOptions,
  call: Call,
  redirects: number,
): URL {
  const to = URL.parse(location, from.href);
  if (to === null || to.origin !== baseUrl.origin) {
    const where = to === null ? "an address that is none" : to.origin;
    throw new Fault("REDIRECT_REFUSED", { detail: `${call.what}: to ${where}`, word: "intermediary" });
  }
  if (redirects >= MOST_REDIRECTS || call.method === "POST" || call.isAttempt) {
    throw new Fault("BAD_ANSWER", {
      detail: `${call.what}: redirected ${call.isAttempt ? "with a password" : "once too often"}`,
      word: "intermediary",
    });
  }
  return to;
}

/** Put together as a text, never resolved as an address: a path of two slashes would otherwise name another host. */
function pathOf(baseUrl: URL, { path, query = [], what }: Call): string {
  const segments = path.map((segment) => encodeSegment(segment, what));
  const target = `${baseUrl.pathname.replace(/\/+$/, "")}/api/${segments.join("/")}`;
  return query.length === 0 ? target : `${target}?${new URLSearchParams(query as [string, string][])}`;
}

/** Ids are opaque, but one that is empty or a step in the path would ask for something else. */
function encodeSegment(segment: string, what: string): string {
  if (!segment.isWellFormed() || ["", ".", ".."].includes(segment)) {
    throw new Fault("BAD_REQUEST", {
      detail: `${what}: ${JSON.stringify(segment)} cannot be part of an address`,
      word: "unsent",
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
    ...(call.anonymous ? {} : { "x-cs-clientid": options.clientId.reveal() }),
    ...(call.token === undefined ? {} : { "x-cs-verificationtoken": call.token.reveal() }),
    ...(call.password === undefined ? {} : { "x-cs-password": encodePassword(call.password) }),
    ...(call.json === undefined ? {} : { "content-type": "application/json" }),
    ...call.headers,
  };
}

function encodePassword(password: Secret): string {
  const text = password.reveal();
  if (text === "" || !text.isWellFormed()) throw new Fault("PASSWORD_UNUSABLE", { word: "unsent" });
  return encodeURIComponent(text);
}

async function refusal(answer: Answer, options: HttpOptions, call: Call, clock: Clock): Promise<Fault> {
  const { token, password } = call;
  const secrets = [options.clientId, token, password, ...(call.secrets ?? [])].filter(
    (it) => it !== undefined,
  );
  const clean = (text: string) =>
    scrub(text, secrets)
      .replace(/\p{Cc}+/gu, " ")
      .slice(0, LONGEST_ERROR_TEXT);
  // What a refusal says is worth having, but not worth another failure.
  const body = await readText(answer, MOST_ERROR_BYTES, call.what).catch(() => "");
  return faultOfRefusal(
    {
      what: call.what,
      status: answer.statusCode,
      body,
      retryAfter: headerOf(answer, "retry-after"),
    },
    clock.now(),
    clean,
  );
}

function tooSlow(what: string, word: Word): Fault {
  const problem = word === "unsent" ? "no connection became free" : "the answer keeps trickling";
  return new Fault("SERVICE_TIMEOUT", { detail: `${what}: ${problem}`, word });
}
