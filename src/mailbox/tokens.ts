/** The token that proves a mailbox's address: obtained, kept, renewed in time, and obtained again when refused. */
import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { Fault } from "../base/faults.ts";
import { Secret, type SecretSource } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { ServicePort, VerifiedAddress } from "../service/port.ts";

/** Renewed when so little of its time is left. */
const MARGIN_SHARE = 0.1;
const MARGIN_MS = 5 * 60_000;

interface KeptToken {
  readonly token: string;
  readonly obtained: number;
  /** Missing where the service did not say. */
  readonly validUntil?: number;
}

/** Keeps tokens over restarts; other processes may use the same one. */
interface TokenStore {
  /** `undefined` for a token that is missing or damaged. */
  read(name: string): KeptToken | undefined;
  write(name: string, token: KeptToken): Promise<void>;
}

export class Tokens {
  readonly #mailbox: Mailbox;
  readonly #service: ServicePort;
  readonly #configured: SecretSource | undefined;
  readonly #kept: TokenStore;
  readonly #name: string;
  readonly #clock: Clock;
  #current: KeptToken | undefined;

  /** `configured`: a token that a person obtained; it is never renewed. */
  constructor(
    mailbox: Mailbox,
    service: ServicePort,
    configured: SecretSource | undefined,
    kept: TokenStore,
    clock: Clock,
  ) {
    this.#mailbox = mailbox;
    this.#service = service;
    this.#configured = configured;
    const digest = createHash("sha256").update(`${service.origin}\0${mailbox.email}`).digest("hex");
    this.#kept = kept;
    this.#name = digest.slice(0, 32);
    this.#clock = clock;
  }

  /** Until when the one in use is valid, in milliseconds, where that is known. */
  get validUntilMs(): number | undefined {
    return this.#current?.validUntil;
  }

  /** Runs `work` with the address verified; where the token is refused, once more with a new one. */
  async use<Value>(work: (address: VerifiedAddress) => Promise<Value>, signal: AbortSignal): Promise<Value> {
    try {
      return await work(await this.#address(signal));
    } catch (error) {
      const refused = error instanceof Fault && error.code === "TOKEN_REFUSED";
      if (!refused || this.#configured !== undefined) throw error;
      await this.#renew(signal);
      return work(await this.#address(signal));
    }
  }

  /** Proves the address by a code that was mailed to it; whoever reads the kept token from then on uses the new one. */
  async redeem(code: Secret, signal: AbortSignal): Promise<void> {
    await this.#obtain(signal, code);
  }

  async #address(signal: AbortSignal): Promise<VerifiedAddress> {
    const { email } = this.#mailbox;
    if (this.#configured !== undefined) return { email, token: await this.#configured.read(signal) };
    this.#current ??= this.#kept.read(this.#name);
    if (this.#current === undefined || this.#isStale(this.#current)) await this.#renew(signal);
    return { email, token: new Secret(this.#current?.token ?? "") };
  }

  #isStale({ obtained, validUntil }: KeptToken): boolean {
    if (validUntil === undefined) return false;
    const margin = Math.min(MARGIN_MS, (validUntil - obtained) * MARGIN_SHARE);
    return this.#clock.now() >= validUntil - margin;
  }

  /** Another process may have renewed it, or a person may have proved the address by a mailed code. */
  async #renew(signal: AbortSignal): Promise<void> {
    const kept = this.#kept.read(this.#name);
    const isNew = kept !== undefined && kept.token !== this.#current?.token && !this.#isStale(kept);
    if (isNew) this.#current = kept;
    else await this.#obtain(signal);
  }

  async #obtain(signal: AbortSignal, code?: Secret): Promise<void> {
    const { token, validUntil } = await this.#service.obtainToken(this.#mailbox.email, code, signal);
    const kept = { token: token.reveal(), obtained: this.#clock.now() };
    this.#current = validUntil === undefined ? kept : { ...kept, validUntil: validUntil.getTime() };
    await this.#kept.write(this.#name, this.#current);
  }
}
