/** The token that proves a mailbox's address: obtained, stored, renewed in time, and obtained again when refused. */

import { hash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { Mutex } from "../base/concurrency.ts";
import { Fault, withAdvice } from "../base/faults.ts";
import { Secret, type SecretSource } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { KeptToken, TokenFacts } from "../model/token.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import type { ServicePort, VerifiedAddress } from "../service/port.ts";

/** A token is renewed when this share of its validity, or this time, is left, whichever is shorter. */
const MARGIN_SHARE = 0.1;
const MARGIN_MS = 5 * 60_000;

/** Keeps tokens over restarts, by name. Other processes may use the same tokens. */
interface TokenStore {
  /** `undefined` for a token that is missing or damaged. */
  read(name: string): KeptToken | undefined;
  write(name: string, token: KeptToken): Promise<void>;
}

interface TokensTools {
  readonly mailbox: Mailbox;
  readonly service: ServicePort;
  /** A token that a person obtained. It is never renewed. */
  readonly configured: SecretSource | undefined;
  readonly store: TokenStore;
  readonly clock: Clock;
}

export class Tokens {
  readonly #tools: TokensTools;
  /** Names the token in the store. */
  readonly #name: string;
  #current: KeptToken | undefined;
  readonly #renewing = new Mutex();

  constructor(tools: TokensTools) {
    this.#tools = tools;
    const key = `${tools.service.id}\0${mailboxIdOf(tools.mailbox.email)}`;
    this.#name = hash("sha256", key, "hex").slice(0, 32);
  }

  /** About the token in use; `undefined` if its end is not known. */
  get facts(): TokenFacts | undefined {
    const { obtained = 0, validUntil, byCode } = this.#current ?? {};
    if (validUntil === undefined) return undefined;
    return { obtainedMs: obtained, validUntilMs: validUntil, isByCode: byCode === true };
  }

  /** Runs `work` with the verified address, and once more with a new token if the token is refused. */
  async use<Value>(work: (address: VerifiedAddress) => Promise<Value>, signal: AbortSignal): Promise<Value> {
    const address = await this.#address(signal);
    try {
      return await work(address);
    } catch (error) {
      const refused = error instanceof Fault && error.code === "TOKEN_REFUSED";
      if (!refused || this.#tools.configured !== undefined) throw error;
      await this.#renew(address.token.reveal(), signal);
      return work(await this.#address(signal));
    }
  }

  /**
   * Proves the address by a code that was mailed to it; `undefined`: by the client id. The new token is stored for all
   * processes.
   */
  async redeem(code: Secret | undefined, signal: AbortSignal): Promise<void> {
    const { token, validUntil } = await this.#tools.service
      .obtainToken(this.#tools.mailbox.email, code, signal)
      .catch((error: unknown) => {
        throw code === undefined ? withRemedy(error, this.#tools.mailbox) : error;
      });
    this.#current = {
      token: token.reveal(),
      obtained: this.#tools.clock.now(),
      ...(validUntil === undefined ? {} : { validUntil: validUntil.getTime() }),
      ...(code === undefined ? {} : { byCode: true }),
    };
    await this.#tools.store.write(this.#name, this.#current);
  }

  async #address(signal: AbortSignal): Promise<VerifiedAddress> {
    const { email } = this.#tools.mailbox;
    if (this.#tools.configured !== undefined)
      return { email, token: await this.#tools.configured.read(signal) };
    // A person may have renewed a token that Inlet cannot renew.
    if (this.#current === undefined || this.#current.byCode)
      this.#current = this.#tools.store.read(this.#name) ?? this.#current;
    if (this.#current === undefined || this.#isStale(this.#current))
      await this.#renew(this.#current?.token, signal);
    return { email, token: new Secret(this.#current?.token ?? "") };
  }

  #isStale({ obtained, validUntil }: KeptToken): boolean {
    if (validUntil === undefined) return false;
    const margin = Math.min(MARGIN_MS, (validUntil - obtained) * MARGIN_SHARE);
    return this.#tools.clock.now() >= validUntil - margin;
  }

  /**
   * Prefers a stored token: another request or process may have renewed it, or a person may have used a mailed code. `used`: no
   * longer good.
   */
  async #renew(used: string | undefined, signal: AbortSignal): Promise<void> {
    const release = await this.#renewing.lock(signal);
    try {
      const kept = this.#tools.store.read(this.#name);
      const isNew = kept !== undefined && kept.token !== used && !this.#isStale(kept);
      if (isNew) this.#current = kept;
      else await this.redeem(undefined, signal);
    } finally {
      release?.();
    }
  }
}

/** A service that does not know the client id answers with one of these two codes. */
function withRemedy(error: unknown, { name, label = name }: Mailbox): unknown {
  if (!(error instanceof Fault) || !["TOKEN_REFUSED", "POLICY_REFUSED"].includes(error.code)) return error;
  return withAdvice(
    error,
    `Ask the service's administrator to register the client id for this address, or verify it with a mailed code: inlet verify-address ${label}`,
  );
}
