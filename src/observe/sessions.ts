/**
 * Who may act through the page. Programs send the token with each request. People sign in with it once and get a cookie
 * that no other site can send, and a proof in every form that no other site can know.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../base/clock.ts";
import type { Secret } from "../base/secret.ts";

const COOKIE = "inlet-session";
const LASTS_MS = 12 * 60 * 60 * 1000;
const MOST_SESSIONS = 100;
/** Wrong tokens, by whomever: more in a minute are not even looked at. */
const MOST_FAILURES = 10;
const MINUTE_MS = 60_000;

export interface SessionOptions {
  /** Missing on a Unix socket: whoever reaches it may act. */
  readonly token: Secret | undefined;
  readonly clock: Clock;
}

export class Sessions {
  #token: Secret | undefined;
  readonly #clock: Clock;
  readonly #key = randomBytes(32);
  /** By id: until when. */
  readonly #open = new Map<string, number>();
  #failuresMs: number[] = [];

  constructor({ token, clock }: SessionOptions) {
    this.#token = token;
    this.#clock = clock;
  }

  /** From now on this is the token. Where it is another one, everybody has to sign in again. */
  renew(token: Secret): void {
    if (this.#token !== undefined && !isSame(this.#token.reveal(), token.reveal())) this.#open.clear();
    this.#token = token;
  }

  /** The proof that a form of this session carries; `undefined` for whoever has not signed in. */
  proofOf(request: IncomingMessage): string | undefined {
    const id = cookieOf(request);
    if (id === undefined || (this.#open.get(id) ?? 0) < this.#clock.now()) return undefined;
    return this.#proof(id);
  }

  /** Who opens the page: where no token is needed for it, they have signed in by that, and get the cookie. */
  greet(request: IncomingMessage): { readonly proof?: string | undefined; readonly cookie?: string } {
    const proof = this.proofOf(request);
    if (proof !== undefined || this.#token !== undefined) return { proof };
    const id = this.#begin();
    return { proof: this.#proof(id), cookie: formatCookie(id) };
  }

  /** Whether a request may change something: by the token in its header, or by a session and its proof. */
  mayAct(request: IncomingMessage, proof: string | undefined): boolean {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    if (bearer !== undefined) return this.#isToken(bearer);
    const expected = this.proofOf(request);
    return expected !== undefined && proof !== undefined && isSame(expected, proof) && isFromHere(request);
  }

  /** The header that sets the cookie; `undefined` where the token is wrong. */
  signIn(request: IncomingMessage, token: string): string | undefined {
    if (!isFromHere(request) || !this.#isToken(token)) return undefined;
    return formatCookie(this.#begin());
  }

  #begin(): string {
    const nowMs = this.#clock.now();
    for (const [id, untilMs] of this.#open) if (untilMs < nowMs) this.#open.delete(id);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST_SESSIONS && oldest !== undefined) this.#open.delete(oldest);
    const id = randomBytes(32).toString("base64url");
    this.#open.set(id, nowMs + LASTS_MS);
    return id;
  }

  /** Compared by their digests, so that the time it takes tells nothing. */
  #isToken(given: string): boolean {
    if (this.#token === undefined) return true;
    const nowMs = this.#clock.now();
    this.#failuresMs = this.#failuresMs.filter((ms) => nowMs - ms < MINUTE_MS);
    if (this.#failuresMs.length >= MOST_FAILURES) return false;
    const isRight = isSame(given, this.#token.reveal());
    if (!isRight) this.#failuresMs.push(nowMs);
    return isRight;
  }

  #proof(id: string): string {
    return createHmac("sha256", this.#key).update(id).digest("base64url");
  }
}

function formatCookie(id: string): string {
  return `${COOKIE}=${id}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${LASTS_MS / 1000}`;
}

function isSame(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return first !== undefined && second !== undefined && timingSafeEqual(first, second);
}

function cookieOf({ headers }: IncomingMessage): string | undefined {
  const cookies = (headers.cookie ?? "").split(";").map((part) => part.trim().split("="));
  return cookies.find(([name]) => name === COOKIE)?.[1];
}

/** Browsers say where a form comes from; whoever says nothing of it is none. */
function isFromHere({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin" || site === "none";
  const { origin } = headers;
  return origin === undefined || URL.parse(origin)?.host === headers.host;
}
