/**
 * Who may act through the page. Programs send the token with each request. People sign in with it once and get a cookie
 * that no other site can send, and a proof in every form that no other site can know.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../base/clock.ts";
import type { Secret } from "../base/secret.ts";
import { Guesses } from "./guesses.ts";

const LASTS_MS = 12 * 60 * 60 * 1000;
const MOST_SESSIONS = 100;

export interface SessionOptions {
  /** Missing on a Unix socket: whoever reaches it may act. */
  readonly token: Secret | undefined;
  /** What tells this daemon's cookie from those of others on the same host: browsers send all of them to each port. */
  readonly cookie: string;
  readonly clock: Clock;
}

/** What became of what a visitor did last: told once. */
export interface Said {
  readonly text: string;
  readonly isError: boolean;
}

/** What a token is, or a proof. `too often`: wrong, and one of many from the same place. */
export type Verdict = "right" | "wrong" | "too often";

interface Session {
  readonly untilMs: number;
  said?: Said | undefined;
}

export class Sessions {
  #token: Secret | undefined;
  readonly #cookie: string;
  readonly #clock: Clock;
  readonly #key = randomBytes(32);
  readonly #open = new Map<string, Session>();
  readonly #guesses: Guesses;

  constructor({ token, cookie, clock }: SessionOptions) {
    this.#token = token;
    this.#cookie = `inlet-session-${cookie}`;
    this.#clock = clock;
    this.#guesses = new Guesses(clock);
  }

  /** Whether people have to sign in, and can sign out. */
  get needsToken(): boolean {
    return this.#token !== undefined;
  }

  /** From now on this is the token. Where it is another one, everybody has to sign in again. */
  renew(token: Secret): void {
    if (this.#token !== undefined && !isSame(this.#token.reveal(), token.reveal())) this.#open.clear();
    this.#token = token;
  }

  /** The proof that a form of this session carries; `undefined` for whoever has not signed in. */
  proofOf(request: IncomingMessage): string | undefined {
    const id = this.#idOf(request);
    return id === undefined ? undefined : this.#proof(id);
  }

  /** Who opens the page: where no token is needed for it, they have signed in by that, and get the cookie. */
  greet(request: IncomingMessage): {
    readonly proof?: string;
    readonly cookie?: string;
    readonly said?: Said;
  } {
    const id = this.#idOf(request);
    const session = id === undefined ? undefined : this.#open.get(id);
    if (id !== undefined && session !== undefined) {
      const { said } = session;
      session.said = undefined;
      return { proof: this.#proof(id), ...(said === undefined ? {} : { said }) };
    }
    if (this.needsToken) return {};
    const begun = this.#begin();
    return { proof: this.#proof(begun), cookie: this.#formatCookie(begun, LASTS_MS) };
  }

  /** The next page that this visitor opens says it. */
  say(request: IncomingMessage, said: Said): void {
    const session = this.#open.get(this.#idOf(request) ?? "");
    if (session !== undefined) session.said = said;
  }

  /** Whether a request may change something: by the token in its header, or by a session and its proof. */
  mayAct(request: IncomingMessage, proof: string | undefined): Verdict {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    if (bearer !== undefined) return this.#judge(request, bearer);
    if (!this.needsToken && isProgram(request)) return "right";
    const expected = this.proofOf(request);
    const isProven = expected !== undefined && proof !== undefined && isSame(expected, proof);
    return isProven && isFromHere(request) ? "right" : "wrong";
  }

  /** The header that sets the cookie, where the token is right. */
  signIn(request: IncomingMessage, token: string): { readonly verdict: Verdict; readonly cookie?: string } {
    const verdict = isFromHere(request) ? this.#judge(request, token) : "wrong";
    return verdict === "right"
      ? { verdict, cookie: this.#formatCookie(this.#begin(), LASTS_MS) }
      : { verdict };
  }

  /** The header that takes the cookie away. */
  signOut(request: IncomingMessage): string {
    this.#open.delete(this.#idOf(request) ?? "");
    return this.#formatCookie("", 0);
  }

  /** Before an answer to whoever tries too often. */
  slowDown(): Promise<void> {
    return this.#guesses.slowDown();
  }

  #begin(): string {
    const nowMs = this.#clock.now();
    for (const [id, { untilMs }] of this.#open) if (untilMs < nowMs) this.#open.delete(id);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MOST_SESSIONS && oldest !== undefined) this.#open.delete(oldest);
    const id = randomBytes(32).toString("base64url");
    this.#open.set(id, { untilMs: nowMs + LASTS_MS });
    return id;
  }

  /** The right token is always right: nobody locks others out by guessing. */
  #judge({ socket }: IncomingMessage, given: string): Verdict {
    if (this.#token === undefined || isSame(given, this.#token.reveal())) return "right";
    return this.#guesses.isTooOften(socket.remoteAddress ?? "") ? "too often" : "wrong";
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

/** Compared by their digests, so that the time it takes tells nothing. */
function isSame(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => createHash("sha256").update(text).digest());
  return first !== undefined && second !== undefined && timingSafeEqual(first, second);
}

/** Browsers say where a form comes from; whoever says nothing of it is none. */
function isFromHere({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin" || site === "none";
  const { origin } = headers;
  return origin === undefined || URL.parse(origin)?.host === headers.host;
}

/** No page of another site can have a browser send this. */
function isProgram({ headers }: IncomingMessage): boolean {
  const isJson = headers["content-type"]?.startsWith("application/json") === true;
  return isJson && headers.origin === undefined && headers["sec-fetch-site"] === undefined;
}
