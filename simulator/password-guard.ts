/**
 * Counts wrong transfer passwords and reacts at the limit. `delete` counts all recipients together and deletes the transfer
 * for all of them. `lock` counts per transfer-id and locks it, even for the right password; after the lock the count
 * restarts. A right password does not reset a count.
 */
import type { Clock } from "../src/base/clock.ts";
import { ServiceError } from "./errors.ts";
import type { Settings } from "./settings.ts";
import type { OpenedTransfer, Transfers } from "./transfers.ts";

const PASSWORDS_KEPT = 1000;

export class PasswordGuard {
  readonly #settings: Settings["wrongPasswords"];
  readonly #transfers: Transfers;
  readonly #clock: Clock;
  /** By tracking-id if the reaction is `delete`, else by transfer-id. */
  readonly #counts = new Map<string, number>();
  readonly #lockedUntilMs = new Map<string, number>();
  /** By tracking-id. `passwords`: the last of them. */
  readonly #refused = new Map<string, { total: number; passwords: string[] }>();

  constructor(settings: Settings, transfers: Transfers, clock: Clock) {
    this.#settings = settings.wrongPasswords;
    this.#transfers = transfers;
    this.#clock = clock;
  }

  /** Throws a ServiceError for a wrong password or a locked transfer. */
  check(opened: OpenedTransfer, password: string): void {
    const { transferId } = opened.recipient;
    if (this.#clock.now() < (this.#lockedUntilMs.get(transferId) ?? 0)) {
      throw new ServiceError("transferLocked");
    }
    if (password === opened.transfer.password) return;
    this.#remember(opened.transfer.trackingId, password);
    throw this.#react(opened);
  }

  /** The number of refused passwords, over all recipients. */
  total(trackingId: string): number {
    return this.#refused.get(trackingId)?.total ?? 0;
  }

  /** The last refused passwords, oldest first. */
  refused(trackingId: string): readonly string[] {
    return [...(this.#refused.get(trackingId)?.passwords ?? [])];
  }

  #react({ transfer, recipient }: OpenedTransfer): ServiceError {
    const { limit, reaction, lockMs } = this.#settings;
    const key = reaction === "delete" ? transfer.trackingId : recipient.transferId;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    if (count < limit) return new ServiceError("passwordRefused");
    this.#counts.delete(key);
    if (reaction === "delete") {
      this.#transfers.end(transfer, "Deleted_by_security");
      return new ServiceError("transferDeleted");
    }
    this.#lockedUntilMs.set(recipient.transferId, this.#clock.now() + lockMs);
    return new ServiceError("transferLocked");
  }

  #remember(trackingId: string, password: string): void {
    const refused = this.#refused.get(trackingId) ?? { total: 0, passwords: [] };
    refused.total += 1;
    refused.passwords.push(password);
    if (refused.passwords.length > PASSWORDS_KEPT) refused.passwords.shift();
    this.#refused.set(trackingId, refused);
  }
}
