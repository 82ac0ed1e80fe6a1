/**
 * Access to lists: client ids, verification tokens and mailed codes. A *token* is valid for one client id and one address
 * until it expires. A registered client id obtains one at once, any other one with a *code* mailed to the address.
 */
import type { Clock } from "../src/base/clock.ts";
import { canonicalAddress } from "../src/model/transfer.ts";
import { deriveText } from "./seeded.ts";
import type { Settings } from "./settings.ts";

export interface Mail {
  readonly address: string;
  readonly code: string;
  readonly sentAtMs: number;
}

export interface Token {
  readonly token: string;
  readonly validUntilMs: number;
}

const CODE_MS = 15 * 60_000;
const CODE_TRIES = 5;
const MAILS_KEPT = 1000;
const TOKENS_KEPT = 100;

export class Accounts {
  readonly #settings: Settings;
  readonly #clock: Clock;
  /** By client id and address, the newest token last. */
  readonly #tokens = new Map<string, Token[]>();
  readonly #codes = new Map<string, { readonly code: string; readonly untilMs: number; triesLeft: number }>();
  readonly #mails: Mail[] = [];
  /** When the tokens of the limited time were given. */
  readonly #issuedMs: number[] = [];
  #derived = 0;

  constructor(settings: Settings, clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  createClientId(): string {
    return this.#derive("client", 64);
  }

  isRegistered(clientId: string): boolean {
    return clientId === this.#settings.clientId;
  }

  /** Mails a code, which replaces any earlier one. False if the address got too many. */
  mailCode(clientId: string, address: string): boolean {
    const nowMs = this.#clock.now();
    const isRecent = (mail: Mail) =>
      canonicalAddress(mail.address) === canonicalAddress(address) && mail.sentAtMs > nowMs - CODE_MS;
    if (this.#mails.filter(isRecent).length >= this.#settings.codesPerAddress) return false;
    const code = this.#derive("code", 8, "0123456789");
    this.#codes.set(keyOf(clientId, address), { code, untilMs: nowMs + CODE_MS, triesLeft: CODE_TRIES });
    this.#mails.push({ address, code, sentAtMs: nowMs });
    if (this.#mails.length > MAILS_KEPT) this.#mails.shift();
    return true;
  }

  /** Whether the code is the one mailed last. A right code works once. */
  redeemCode(clientId: string, address: string, code: string): boolean {
    const key = keyOf(clientId, address);
    const mailed = this.#codes.get(key);
    if (mailed === undefined) return false;
    mailed.triesLeft -= 1;
    const isRight = mailed.code === code && this.#clock.now() < mailed.untilMs;
    if (isRight || mailed.triesLeft === 0) this.#codes.delete(key);
    return isRight;
  }

  /** How long no further token is given. */
  tokenWaitMs(): number {
    const { tokens = Number.POSITIVE_INFINITY, seconds = 0 } = this.#settings.tokenLimit ?? {};
    const nowMs = this.#clock.now();
    const recent = this.#issuedMs.filter((ms) => ms > nowMs - seconds * 1_000);
    this.#issuedMs.splice(0, this.#issuedMs.length, ...recent);
    return recent.length < tokens ? 0 : (recent[0] ?? 0) + seconds * 1_000 - nowMs;
  }

  issueToken(clientId: string, address: string): Token {
    const validUntilMs = this.#clock.now() + this.#settings.tokenMs;
    if (this.#settings.tokenLimit !== undefined) this.#issuedMs.push(this.#clock.now());
    const token = { token: this.#derive("token", 64), validUntilMs };
    const live = [...this.#liveTokens(clientId, address), token];
    this.#tokens.set(keyOf(clientId, address), live.slice(-TOKENS_KEPT));
    return token;
  }

  /** The valid token with this text; without a text, the newest valid one. */
  verification(clientId: string, address: string, text?: string): Token | undefined {
    return this.#liveTokens(clientId, address).findLast(({ token }) => text === undefined || token === text);
  }

  mails(): readonly Mail[] {
    return [...this.#mails];
  }

  #liveTokens(clientId: string, address: string): readonly Token[] {
    const nowMs = this.#clock.now();
    return (this.#tokens.get(keyOf(clientId, address)) ?? []).filter((token) => nowMs < token.validUntilMs);
  }

  #derive(what: string, length: number, alphabet?: string): string {
    this.#derived += 1;
    return deriveText(this.#settings.seed, `${what} ${this.#derived}`, length, alphabet);
  }
}

function keyOf(clientId: string, address: string): string {
  return `${clientId} ${canonicalAddress(address)}`;
}
