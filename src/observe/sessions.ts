/**
 * Sessions of the page. Programs send the token with each request. People sign in with it once and get a cookie that other
 * sites cannot send, and a proof in every form that other sites cannot know.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import type { Clock } from "../base/clock.ts";
import type { Secret } from "../base/secret.ts";

const SESSION_MS = 12 * 60 * 60 * 1000;
const MOST_SESSIONS = 100;

/** More wrong tokens from one address are throttled. */
const MOST_WRONG_PER_MINUTE = 10;
const MINUTE_MS = 60_000;
const MOST_PEERS = 1_000;
/** Delay of the answer to a throttled request, unless too many are delayed already. */
const THROTTLE_MS = 1_000;
const MOST_DELAYED = 50;

export interface SessionOptions {
  /** Missing on a Unix socket: everyone who can open it may act. */
  readonly token: Secret | undefined;
  /** Part of the cookie's name, because browsers send the cookies of a host to each of its ports. */
  readonly cookie: string;
  readonly clock: Clock;
}

/** The result of a visitor's last action, shown once. */
export interface Notice {
  readonly text: string;
  readonly isError: boolean;
}

/** `throttled`: refused, after many wrong tokens from the same address. */
export type Authorization = "granted" | "refused" | "throttled";

interface Session {
  readonly untilMs: number;
  notice?: Notice | undefined;
}

export class Sessions {
  #token: Secret | undefined;
  readonly #cookie: string;
  readonly #clock: Clock;
  readonly #key = randomBytes(32);
  readonly #open = new Map<string, Session>();
  readonly #wrongTokens: WrongTokens;

  constructor({ token, cookie, clock }: SessionOptions) {
    this.#token = token;
    this.#cookie = `inlet-session-${cookie}`;
    this.#clock = clock;
    this.#wrongTokens = new WrongTokens(clock);
  }

  get needsToken(): boolean {
    return this.#token !== undefined;
  }

  /** Replaces the token. A different one ends all sessions. */
  renew(token: Secret): void {
    if (this.#token !== undefined && !isSame(this.#token.reveal(), token.reveal())) this.#open.clear();
    this.#token = token;
  }

  /** The proof for the forms of this session; `undefined` without a session. */
  proofOf(request: IncomingMessage): string | undefined {
    const id = this.#idOf(request);
    return id === undefined ? undefined : this.#proof(id);
  }

  /** The session of a page request and its notice. Starts a session, with a cookie, if no token is needed. */
  resume(request: IncomingMessage): {
    readonly proof?: string;
    readonly cookie?: string;
    readonly notice?: Notice;
  } {
    const id = this.#idOf(request);
    const session = id === undefined ? undefined : this.#open.get(id);
    if (id !== undefined && session !== undefined) {
      const { notice } = session;
      session.notice = undefined;
      return { proof: this.#proof(id), ...(notice === undefined ? {} : { notice }) };
    }
    if (this.needsToken) return {};
    const started = this.#start();
    return { proof: this.#proof(started), cookie: this.#formatCookie(started, SESSION_MS) };
  }

  /** Shown on the next page of this session. */
  setNotice(request: IncomingMessage, notice: Notice): void {
    const session = this.#open.get(this.#idOf(request) ?? "");
    if (session !== undefined) session.notice = notice;
  }

  /** By the token in the header, or by a session and its proof. */
  authorize(request: IncomingMessage, proof: string | undefined): Authorization {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    if (bearer !== undefined) return this.#checkToken(request, bearer);
    if (!this.needsToken && isProgram(request)) return "granted";
    const expected = this.proofOf(request);
    const isProven = expected !== undefined && proof !== undefined && isSame(expected, proof);
    return isProven && isSameOrigin(request) ? "granted" : "refused";
  }

  /** Returns the header that sets the cookie if the token is right. */
  signIn(
    request: IncomingMessage,
    token: string,
  ): { readonly authorization: Authorization; readonly cookie?: string } {
    const authorization = isSameOrigin(request) ? this.#checkToken(request, token) : "refused";
    return authorization === "granted"
      ? { authorization, cookie: this.#formatCookie(this.#start(), SESSION_MS) }
      : { authorization };
  }

  /** Returns the header that removes the cookie. */
  signOut(request: IncomingMessage): string {
    this.#open.delete(this.#idOf(request) ?? "");
    return this.#formatCookie("", 0);
  }

  /** Delays the answer to a throttled request. */
  throttle(): Promise<void> {
    return this.#wrongTokens.delay();
  }

  #start(): string {
    const nowMs = this.#clock.now();
    for (const [id, { untilMs }] of this.#open) if (untilMs < nowMs) this.#open.delete(id);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST_SESSIONS && oldest !== undefined) this.#open.delete(oldest);
    const id = randomBytes(32).toString("base64url");
    this.#open.set(id, { untilMs: nowMs + SESSION_MS });
    return id;
  }

  /** Always grants the right token, so that guessing locks no one else out. */
  #checkToken({ socket }: IncomingMessage, token: string): Authorization {
    if (this.#token === undefined || isSame(token, this.#token.reveal())) return "granted";
    return this.#wrongTokens.add(socket.remoteAddress ?? "") ? "throttled" : "refused";
  }

  #proof(id: string): string {
    return createHmac("sha256", this.#key).update(id).digest("base64url");
  }

  #idOf({ headers }: IncomingMessage): string | undefined {
    const cookies = (headers.cookie ?? "").split(";").map((part) => part.trim().split("="));
    const id = cookies.find(([name]) => name === this.#cookie)?.[1] ?? "";
    const { untilMs = 0 } = this.#open.get(id) ?? {};
    return untilMs < this.#clock.now() ? undefined : id;
  }

  #formatCookie(id: string, lastsMs: number): string {
    return `${this.#cookie}=${id}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${lastsMs / 1000}`;
  }
}

/** Counts wrong tokens by address, so that only guessers are slowed down. */
class WrongTokens {
  readonly #clock: Clock;
  /** The latest times by address, at most as many as are allowed. */
  readonly #timesMs = new Map<string, number[]>();
  #delayed = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns true if the address has sent too many before. */
  add(peer: string): boolean {
    const nowMs = this.#clock.now();
    const before = (this.#timesMs.get(peer) ?? []).filter((ms) => nowMs - ms < MINUTE_MS);
    const [oldest] = this.#timesMs.keys();
    this.#timesMs.delete(peer);
    if (this.#timesMs.size >= MOST_PEERS && oldest !== undefined) this.#timesMs.delete(oldest);
    this.#timesMs.set(peer, [...before, nowMs].slice(-MOST_WRONG_PER_MINUTE));
    return before.length >= MOST_WRONG_PER_MINUTE;
  }

  async delay(): Promise<void> {
    if (this.#delayed >= MOST_DELAYED) return;
    this.#delayed++;
    await pause(THROTTLE_MS);
    this.#delayed--;
  }
}

/** Compares digests in constant time, so that timing reveals nothing. */
function isSame(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return first !== undefined && second !== undefined && timingSafeEqual(first, second);
}

/** Browsers send the origin of a form; a request without one is not from a browser. */
function isSameOrigin({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin" || site === "none";
  const { origin } = headers;
  return origin === undefined || URL.parse(origin)?.host === headers.host;
}

/** Other sites cannot make a browser send such a request. */
function isProgram({ headers }: IncomingMessage): boolean {
  const isJson = headers["content-type"]?.startsWith("application/json") === true;
  return isJson && headers.origin === undefined && headers["sec-fetch-site"] === undefined;
}
