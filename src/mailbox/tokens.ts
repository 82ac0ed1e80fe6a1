/** The token that proves a mailbox's address: obtained, kept, renewed in time, and obtained again when refused. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { replaceDurably } from "../base/durable.ts";
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

export class Tokens {
  readonly #mailbox: Mailbox;
  readonly #service: ServicePort;
  readonly #configured: SecretSource | undefined;
  readonly #path: string;
  readonly #clock: Clock;
  #current: KeptToken | undefined;

  /** `folder`: where tokens are kept over restarts. `configured`: one that a person obtained; it is never renewed. */
  constructor(
    mailbox: Mailbox,
    service: ServicePort,
    configured: SecretSource | undefined,
    folder: string,
    clock: Clock,
  ) {
    this.#mailbox = mailbox;
    this.#service = service;
    this.#configured = configured;
    const digest = createHash("sha256").update(`${service.origin}\0${mailbox.email}`).digest("hex");
    this.#path = join(folder, `${digest.slice(0, 32)}.json`);
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
    this.#current ??= await this.#readKept();
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
    const kept = await this.#readKept();
    const isNew = kept !== undefined && kept.token !== this.#current?.token && !this.#isStale(kept);
    if (isNew) this.#current = kept;
    else await this.#obtain(signal);
  }

  async #obtain(signal: AbortSignal, code?: Secret): Promise<void> {
    const { token, validUntil } = await this.#service.obtainToken(this.#mailbox.email, code, signal);
    const kept = { token: token.reveal(), obtained: this.#clock.now() };
    this.#current = validUntil === undefined ? kept : { ...kept, validUntil: validUntil.getTime() };
    await replaceDurably(this.#path, JSON.stringify(this.#current), 0o600);
  }

  async #readKept(): Promise<KeptToken | undefined> {
    try {
      const kept: unknown = JSON.parse(await readFile(this.#path, "utf8"));
      const valid =
        typeof kept === "object" && kept !== null && "token" in kept && typeof kept.token === "string";
      return valid ? (kept as KeptToken) : undefined;
    } catch {
      return undefined;
    }
  }
}
