/**
 * Sessions of the console. Programs send a token with each request. People sign in with it once and get a cookie that
 * other sites cannot send, and in every form a proof that other sites cannot know. Guessing tokens is slowed down.
 */
import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { MAX_WAITING_REFUSALS, MAX_WRONG_TOKENS_PER_MINUTE, WRONG_TOKEN_PAUSE_MS } from "../base/bounds.ts";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { type Actor, actorOf, type ReadAccess, type Role } from "../model/order.ts";
import { peerOf } from "./callers.ts";

const SESSION_MS = 12 * 60 * 60 * 1000;
const MAX_SESSIONS = 100;
const MAX_NAME_LENGTH = 100;

/** Who reads where reading is open. */
const NOBODY: Actor = { who: "", from: "" };

/** By name. */
export type Tokens = ReadonlyMap<string, { readonly token: Secret; readonly role: Role }>;

export interface SessionOptions {
  readonly read: ReadAccess;
  /** Called before each use, because tokens may have changed. `undefined` on a Unix socket: everyone who can open it may act. */
  readonly readTokens: (() => Promise<Tokens>) | undefined;
  /** Part of the cookie's name, because browsers send the cookies of a host to each of its ports. */
  readonly cookie: string;
  /** The host of a public URL with TLS, if there is one. */
  readonly secureHost?: string | undefined;
  readonly clock: Clock;
  /** Called for each wrong token, with the address that it came from. */
  readonly onWrong: (from: string) => void;
}

/** The result of a visitor's last request, shown once. */
export interface Notice {
  readonly text: string;
  readonly isError: boolean;
}

interface Session {
  /** The value of the cookie. */
  readonly id: string;
  /** In every form of this session. */
  readonly proof: string;
  readonly untilMs: number;
  /** The name of the token that opened it. */
  readonly who: string;
  /** For the next page. */
  notice?: Notice | undefined;
}

/** Who requests a page, and may do what there. */
export interface Visitor {
  /** More is possible after signing in with a token. */
  readonly canSignIn: boolean;
  /** The proof of the session, for actions. Missing if the visitor may only read. */
  readonly proof?: string | undefined;
  /** The same proof, to sign out. Missing without a session. */
  readonly signOut?: string;
  readonly name?: string;
}

/** Methods throw `UNAUTHORIZED`, `TOKENS_THROTTLED` after many wrong tokens from an address, and `SECRET_UNREADABLE`. */
export class Sessions {
  readonly #options: SessionOptions;
  #tokens: Tokens = new Map();
  /** By id. */
  readonly #open = new Map<string, Session>();
  readonly #guesses: Guesses;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#guesses = new Guesses(options.clock);
  }

  get read(): ReadAccess {
    return this.#options.read;
  }

  get #needsToken(): boolean {
    return this.#options.readTokens !== undefined;
  }

  get #cookie(): string {
    return `inlet-session-${this.#options.cookie}`;
  }

  /** Who requests a page. Where no token is needed, this starts a session: then the answer has to set the cookie. */
  resume(request: IncomingMessage): { visitor: Visitor; cookie?: string } {
    const canSignIn = this.#needsToken;
    const found = this.find(request);
    if (found === undefined && canSignIn) return { visitor: { canSignIn } };
    const { id, who: name, proof: signOut } = found ?? this.#start("socket");
    const proof = this.#roleOf(name) === "operate" ? signOut : undefined;
    const visitor = { canSignIn, proof, signOut, name };
    return found === undefined
      ? { visitor, cookie: this.#formatCookie(request, id, SESSION_MS) }
      : { visitor };
  }

  /** The open session of a request. */
  find({ headers }: IncomingMessage): Session | undefined {
    const cookies = (headers.cookie ?? "").split(";").map((part) => part.trim().split("="));
    const id = cookies.find(([name]) => name === this.#cookie)?.[1] ?? "";
    const session = this.#open.get(id);
    return session === undefined || session.untilMs < this.#options.clock.now() ? undefined : session;
  }

  /** The notice for the next page, which is shown once. */
  takeNotice(request: IncomingMessage): Notice | undefined {
    const session = this.find(request);
    const notice = session?.notice;
    if (session !== undefined) session.notice = undefined;
    return notice;
  }

  /** Returns who sends the request. Throws `NOT_ALLOWED` if the role is not enough. */
  async authorize(request: IncomingMessage, wanted: Role, proof: string | null | undefined): Promise<Actor> {
    await this.#renew();
    const isReading = wanted === "read";
    const who = await this.#findSender(request, isReading, proof);
    if (who === undefined) throw new Fault("UNAUTHORIZED");
    const role = this.#roleOf(who);
    const by = actorOf(who, request.socket.remoteAddress ?? "socket");
    if (isReading || role === "operate") return by;
    const detail = `The role ${role} of ${by.who} is not enough: this needs a token with the role operate, and http.actions: true.`;
    throw new Fault("NOT_ALLOWED", { detail });
  }

  /** By the token in the header, or by a session. To change something, a session needs the proof of its form. */
  async #findSender(
    request: IncomingMessage,
    isReading: boolean,
    proof: string | null | undefined,
  ): Promise<string | undefined> {
    const bearer = bearerOf(request);
    if (bearer !== undefined) return this.#checkToken(request, bearer);
    if (!this.#needsToken && (isReading || isProgram(request))) return claimedUser(request);
    return (isReading ? this.find(request) : this.#findProven(request, proof))?.who;
  }

  /** Anonymous requests pass, where reading is open. Other schemes than `Bearer` are a proxy's. */
  async refuseWrongToken(request: IncomingMessage): Promise<void> {
    const bearer = bearerOf(request);
    if (bearer === undefined) return;
    await this.#renew();
    if ((await this.#checkToken(request, bearer)) === undefined) throw new Fault("UNAUTHORIZED");
  }

  /** As far as the headers tell, before the body is read. It holds the proof of the session. */
  async admitForm(request: IncomingMessage, isSignIn: boolean): Promise<void> {
    await this.refuseWrongToken(request);
    if (bearerOf(request) !== undefined || (!this.#needsToken && isProgram(request))) return;
    if (!isSameOrigin(request) || (!isSignIn && this.find(request) === undefined))
      throw new Fault("UNAUTHORIZED");
  }

  /** Returns the header that sets the cookie; `undefined` if the token is wrong. */
  async signIn(request: IncomingMessage, token: string): Promise<string | undefined> {
    await this.#renew();
    const who = isSameOrigin(request) ? await this.#checkToken(request, token) : undefined;
    return who && this.#formatCookie(request, this.#start(who).id, SESSION_MS);
  }

  /** Returns the header that removes the cookie. */
  signOut(request: IncomingMessage, proof: string | null | undefined): string {
    const found = this.#findProven(request, proof);
    if (found === undefined) throw new Fault("UNAUTHORIZED");
    this.#open.delete(found.id);
    return this.#formatCookie(request, "", 0);
  }

  /** Reads the tokens again. Ends the sessions of tokens that have changed or were removed. */
  async #renew(): Promise<void> {
    const tokens = await this.#options.readTokens?.().catch((cause: unknown) => {
      const detail = "A token cannot be read now: see http.tokens in the configuration.";
      throw new Fault("SECRET_UNREADABLE", { detail, cause });
    });
    if (tokens === undefined) return;
    for (const [id, { who }] of this.#open) {
      const [before, after] = [this.#tokens, tokens].map((all) => all.get(who)?.token.reveal());
      const isKept = before !== undefined && after !== undefined && isSame(before, after);
      if (!isKept) this.#open.delete(id);
    }
    this.#tokens = tokens;
  }

  #start(who: string): Session {
    const nowMs = this.#options.clock.now();
    for (const [id, { untilMs }] of this.#open) if (untilMs < nowMs) this.#open.delete(id);
    // The oldest of the same token first: one that may only read ends no other's session.
    const own = this.#open.values().find((session) => session.who === who);
    const oldest = own?.id ?? this.#open.keys().next().value;
    if (this.#open.size >= MAX_SESSIONS && oldest !== undefined) this.#open.delete(oldest);
    const [id, proof] = [randomText(), randomText()];
    const session = { id, proof, untilMs: nowMs + SESSION_MS, who };
    this.#open.set(id, session);
    return session;
  }

  /** The name of a right token. */
  async #checkToken(request: IncomingMessage, token: string): Promise<string | undefined> {
    const from = request.socket.remoteAddress ?? "socket";
    const check = () => {
      const name = this.#nameOf(token);
      if (name === undefined) this.#options.onWrong(from);
      return name;
    };
    const found = await this.#guesses.attempt(from, check);
    if (found === "throttled") throw new Fault("TOKENS_THROTTLED");
    return found;
  }

  /** The name of a right token. Compares with all of them, so that timing reveals nothing. */
  #nameOf(token: string): string | undefined {
    if (!this.#needsToken) return "socket";
    const names = [...this.#tokens].map(([name, right]) =>
      isSame(token, right.token.reveal()) ? name : undefined,
    );
    return names.find((name) => name !== undefined);
  }

  /** As it is now: a reload may change it. */
  #roleOf(who: string): Role {
    return this.#needsToken ? (this.#tokens.get(who)?.role ?? "read") : "operate";
  }

  /** The session of a form from one of its own pages. */
  #findProven(request: IncomingMessage, proof: string | null | undefined): Session | undefined {
    const found = this.find(request);
    if (found === undefined || proof == null || !isSameOrigin(request)) return undefined;
    return isSame(found.proof, proof) ? found : undefined;
  }

  #formatCookie(request: IncomingMessage, id: string, lastsMs: number): string {
    const secure = isOverTls(request, this.#options.secureHost) ? "; Secure" : "";
    return `${this.#cookie}=${id}; HttpOnly; SameSite=Strict; Path=/; Max-Age=${lastsMs / 1000}${secure}`;
  }
}

/**
 * Returns who sends the request, if the role allows it. `proof`: of a form. Without `access`, everyone may read, and actions
 * are switched off. Throws `NOT_ALLOWED` and the faults of the sessions.
 */
export async function requireRole(
  access: Sessions | undefined,
  role: Role,
  request: IncomingMessage,
  proof?: string | null,
): Promise<Actor> {
  if (role === "read" && (access?.read ?? "open") === "open") {
    await access?.refuseWrongToken(request);
    return NOBODY;
  }
  if (access === undefined) throw new Fault("NOT_ALLOWED");
  return access.authorize(request, role, proof);
}

/** Names of schemes ignore case. */
function bearerOf({ headers }: IncomingMessage): string | undefined {
  return /^Bearer\b *(.*)$/i.exec(headers.authorization ?? "")?.[1];
}

/** By the browser's own word in a form, by the proxy's, or by the configured address. A false word changes its own cookie only. */
function isOverTls({ headers }: IncomingMessage, secureHost: string | undefined): boolean {
  const isForwarded = /^https\b/i.test(String(headers["x-forwarded-proto"] ?? ""));
  const isConfigured = secureHost !== undefined && headers.host === secureHost;
  return isForwarded || isConfigured || headers.origin?.startsWith("https:") === true;
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

function randomText(): string {
  return randomBytes(32).toString("base64url");
}

/** Compares digests in constant time. */
function isSame(a: string, b: string): boolean {
  return timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
}

/** Browsers send the origin of a form; a request without one is not from a browser. */
function isSameOrigin({ headers }: IncomingMessage): boolean {
  const site = headers["sec-fetch-site"];
  if (site !== undefined) return site === "same-origin" || site === "none";
  const { origin } = headers;
  return origin === undefined || URL.parse(origin)?.host === headers.host;
}

/** Other sites cannot make a browser send such a request, so it needs no proof. */
function isProgram({ headers }: IncomingMessage): boolean {
  const isJson = headers["content-type"]?.startsWith("application/json") === true;
  return isJson && headers.origin === undefined && headers["sec-fetch-site"] === undefined;
}

const MINUTE_MS = 60_000;
const MAX_PEERS = 1_000;

/** Slows down wrong tokens. A right one is never slower because of others, so only its length keeps it from being guessed. */
export class Guesses {
  readonly #clock: Clock;
  readonly #pauseMs: number;
  #waiting = 0;
  /** Times of the latest wrong tokens by peer, at most as many as are allowed. */
  readonly #wrongMs = new Map<string, number[]>();

  constructor(clock: Clock, pauseMs = WRONG_TOKEN_PAUSE_MS) {
    this.#clock = clock;
    this.#pauseMs = pauseMs;
  }

  /** `check` returns `undefined` for a wrong token. */
  async attempt<Found>(
    address: string,
    check: () => Found | undefined,
  ): Promise<Found | undefined | "throttled"> {
    const found = check();
    if (found !== undefined) return found;
    const peer = peerOf(address);
    const nowMs = this.#clock.now();
    const recent = (this.#wrongMs.get(peer) ?? []).filter((ms) => nowMs - ms < MINUTE_MS);
    const [oldest] = this.#wrongMs.keys();
    this.#wrongMs.delete(peer);
    if (this.#wrongMs.size >= MAX_PEERS && oldest !== undefined) this.#wrongMs.delete(oldest);
    this.#wrongMs.set(peer, [...recent, nowMs].slice(-MAX_WRONG_TOKENS_PER_MINUTE));
    if (recent.length < MAX_WRONG_TOKENS_PER_MINUTE) return undefined;
    if (this.#waiting < MAX_WAITING_REFUSALS) {
      this.#waiting++;
      await pause(this.#pauseMs).finally(() => this.#waiting--);
    }
    return "throttled";
  }
}
