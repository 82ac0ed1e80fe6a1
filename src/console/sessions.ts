/**
 * Sessions of the console. Programs send a token with each request. People sign in with it once and get a cookie that
 * other sites cannot send, and a proof in every form that other sites cannot know.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Clock } from "../base/clock.ts";
import type { Secret } from "../base/secret.ts";
import type { Role } from "../model/access.ts";
import { type Actor, actorOf } from "../model/order.ts";
import { Guesses } from "./guesses.ts";
import type { Notice } from "./layout.ts";

const SESSION_MS = 12 * 60 * 60 * 1000;
const MAX_SESSIONS = 100;
const MAX_NAME_LENGTH = 100;

export type Tokens = ReadonlyMap<string, { readonly token: Secret; readonly role: Role }>;

export interface SessionOptions {
  /** By name. `undefined` on a Unix socket: everyone who can open it may act. */
  readonly tokens: Tokens | undefined;
  /** Part of the cookie's name, because browsers send the cookies of a host to each of its ports. */
  readonly cookie: string;
  readonly clock: Clock;
}

/** `throttled`: refused after many wrong tokens from the same address, with or without a check. */
export type Authorization =
  | { readonly kind: "granted"; readonly by: Actor; readonly role: Role }
  | { readonly kind: "refused" | "throttled" };

interface Session {
  readonly untilMs: number;
  readonly who: string;
  notice?: Notice | undefined;
}

export class Sessions {
  #tokens: Tokens | undefined;
  readonly #cookie: string;
  readonly #clock: Clock;
  readonly #key = randomBytes(32);
  readonly #open = new Map<string, Session>();
  readonly #guesses: Guesses;

  constructor({ tokens, cookie, clock }: SessionOptions) {
    this.#tokens = tokens;
    this.#cookie = `inlet-session-${cookie}`;
    this.#clock = clock;
    this.#guesses = new Guesses(clock);
  }

  get needsToken(): boolean {
    return this.#tokens !== undefined;
  }

  /** Replaces the tokens. Ends the sessions of tokens that have changed or were removed. */
  renew(tokens: Tokens): void {
    for (const [id, { who }] of this.#open) {
      const [before, after] = [this.#tokens?.get(who), tokens.get(who)];
      const stays =
        before !== undefined && after !== undefined && isSame(before.token.reveal(), after.token.reveal());
      if (this.#tokens !== undefined && !stays) this.#open.delete(id);
    }
    this.#tokens = tokens;
  }

  /**
   * The session of a page request: the proof for its forms, its name, role and notice. Starts a session, with a cookie, if
   * no token is needed.
   */
  resume(request: IncomingMessage): {
    readonly proof?: string;
    readonly name?: string;
    readonly role?: Role;
    readonly cookie?: string;
    readonly notice?: Notice;
  } {
    const found = this.#find(request);
    if (found !== undefined) {
      const { notice, who } = found.session;
      found.session.notice = undefined;
      const facts = { proof: this.#proof(found.id), name: who, role: this.#roleOf(who) };
      return { ...facts, ...(notice === undefined ? {} : { notice }) };
    }
    if (this.needsToken) return {};
    const started = this.#start("socket");
    const cookie = this.#formatCookie(started, SESSION_MS);
    return { proof: this.#proof(started), name: "socket", role: "operate", cookie };
  }

  isSignedIn(request: IncomingMessage): boolean {
    return this.#find(request) !== undefined;
  }

  /** Shown on the next page of this session. */
  setNotice(request: IncomingMessage, notice: Notice): void {
    const found = this.#find(request);
    if (found !== undefined) found.session.notice = notice;
  }

  /** By the token in the header, or by a session. To change something, a session needs the proof of its form. */
  async authorize(
    request: IncomingMessage,
    purpose: "read" | "change",
    proof?: string,
  ): Promise<Authorization> {
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    if (bearer !== undefined) return this.#checkToken(request, bearer);
    const isReading = purpose === "read";
    if (!this.needsToken && (isReading || isProgram(request)))
      return this.#grant(claimedUser(request), request);
    const found = this.#find(request);
    if (found === undefined) return { kind: "refused" };
    const isProven = proof !== undefined && isSame(this.#proof(found.id), proof) && isSameOrigin(request);
    return isReading || isProven ? this.#grant(found.session.who, request) : { kind: "refused" };
  }

  /** Returns the header that sets the cookie if the token is right. */
  async signIn(
    request: IncomingMessage,
    token: string,
  ): Promise<{ readonly authorization: Authorization; readonly cookie?: string }> {
    if (!isSameOrigin(request)) return { authorization: { kind: "refused" } };
    const authorization = await this.#checkToken(request, token);
    if (authorization.kind !== "granted") return { authorization };
    return { authorization, cookie: this.#formatCookie(this.#start(authorization.by.who), SESSION_MS) };
  }

  /** Returns the header that removes the cookie. */
  signOut(request: IncomingMessage): string {
    this.#open.delete(this.#find(request)?.id ?? "");
    return this.#formatCookie("", 0);
  }

  #start(who: string): string {
    const nowMs = this.#clock.now();
    for (const [id, { untilMs }] of this.#open) if (untilMs < nowMs) this.#open.delete(id);
    const [oldest] = this.#open.keys();
    if (this.#open.size >= MAX_SESSIONS && oldest !== undefined) this.#open.delete(oldest);
    const id = randomBytes(32).toString("base64url");
    this.#open.set(id, { untilMs: nowMs + SESSION_MS, who });
    return id;
  }

  async #checkToken(request: IncomingMessage, token: string): Promise<Authorization> {
    const check = () => this.#nameOf(token);
    const found = await this.#guesses.attempt(request.socket.remoteAddress ?? "", check);
    if (found === "throttled") return { kind: "throttled" };
    return found === undefined ? { kind: "refused" } : this.#grant(found, request);
  }

  /** The name of a right token. Compares with all of them, so that timing reveals nothing. */
  #nameOf(token: string): string | undefined {
    if (this.#tokens === undefined) return "socket";
    const names = [...this.#tokens].map(([name, right]) =>
      isSame(token, right.token.reveal()) ? name : undefined,
    );
    return names.find((name) => name !== undefined);
  }

  #grant(who: string, { socket }: IncomingMessage): Authorization {
    const by = actorOf(who, socket.remoteAddress ?? "socket");
    return { kind: "granted", by, role: this.#roleOf(who) };
  }

  /** As it is now: a reload may change it. */
  #roleOf(who: string): Role {
    return this.#tokens === undefined ? "operate" : (this.#tokens.get(who)?.role ?? "read");
  }

  #proof(id: string): string {
    return createHmac("sha256", this.#key).update(id).digest("base64url");
  }

  /** The open session of a request. */
  #find({ headers }: IncomingMessage): { readonly id: string; readonly session: Session } | undefined {
    const cookies = (headers.cookie ?? "").split(";").map((part) => part.trim().split("="));
    const id = cookies.find(([name]) => name === this.#cookie)?.[1] ?? "";
    const session = this.#open.get(id);
    return session === undefined || session.untilMs < this.#clock.now() ? undefined : { id, session };
  }

  #formatCookie(id: string, lastsMs: number): string {
    return `${this.#cookie}=${id}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${lastsMs / 1000}`;
  }
}

/** Node cannot ask the kernel who opened a socket, so the name is only a claim. */
function claimedUser({ headers }: IncomingMessage): string {
  const claimed = headers["inlet-user"];
  if (typeof claimed !== "string" || claimed === "") return "socket";
  return `${decodeName(claimed).slice(0, MAX_NAME_LENGTH)} (as claimed)`;
}

/** Commands send names percent-encoded. */
function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Compares digests in constant time. */
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
