/**
 * Password attempts at a transfer, as files `attempts/KEY.N.json`. An attempt takes the lowest free slot before it
 * sends the password, by creating a file that must not exist yet. So all processes together cannot exceed the budget.
 *
 * An attempt gives its slot back when the password is accepted, or the service answers about something else. A refused
 * password leaves its fingerprint in the slot. Otherwise, and after a crash, the slot stays as it is, and counts. An
 * operator grants one more attempt with a file `attempts/KEY.grant-N.json`.
 */
import { join } from "node:path";
import * as v from "valibot";
import { type Disk, tryRead, tryUnlink } from "../base/disk.ts";
import { tolerate } from "../base/faults.ts";
import { writeUnnamed } from "../base/once-files.ts";
import type { AttemptKey, AttemptOwner, AttemptSlots, SpentAttempts, TakenSlot } from "../model/attempts.ts";
import { parseJson } from "./format.ts";
import { attemptsKey, type LedgerPaths } from "./paths.ts";
import type { Rounds } from "./rounds.ts";

const Shape = v.object({
  /** Of the transfer, in the mailbox that made the attempt. */
  name: v.string(),
  round: v.number(),
  at: v.string(),
  fingerprint: v.optional(v.string()),
});

/** A slot without its text, after a power cut, counts as an attempt without an answer. */
type Slot = Partial<v.InferOutput<typeof Shape>>;

interface TakenNumber {
  readonly number: number;
  readonly slot: Slot;
  readonly isVoid: boolean;
}

export function parseSlot(text: string): Slot {
  const result = v.safeParse(Shape, parseJson(text));
  return result.success ? result.output : {};
}

export class FileAttempts implements AttemptSlots {
  readonly #disk: Disk;
  readonly #paths: LedgerPaths;
  readonly #rounds: Rounds;

  constructor(rounds: Rounds) {
    this.#disk = rounds.disk;
    this.#paths = rounds.paths;
    this.#rounds = rounds;
  }

  spent(of: AttemptKey, name: string, budget: number): Promise<SpentAttempts> {
    return this.#count(of, name, budget);
  }

  async take(of: AttemptKey, owner: AttemptOwner, budget: number): Promise<TakenSlot | undefined> {
    let [limit, withGrants] = [budget, false];
    for (let number = 1; ; number++) {
      // Grants matter only once the budget is spent.
      if (number > limit && !withGrants) {
        limit += await this.#countGrants(of);
        withGrants = true;
      }
      if (number > limit) return undefined;
      const path = this.#pathOf(of, number);
      const giveBack = async () => void (await tryUnlink(this.#disk, path));
      if (await this.#tryCreate(path, owner)) {
        // A power cut must not remove the slot after the password was sent.
        await this.#rounds.syncs.sync(this.#paths.attempts).catch(async (error: unknown) => {
          await giveBack();
          throw error;
        });
        return {
          others: () => this.#count(of, owner.name, budget, number),
          refused: (fingerprint) => this.#replace(path, { ...owner, fingerprint }),
          giveBack,
        };
      }
      const slot = await this.#read(path);
      if (slot !== undefined && (await this.#isVoid(slot))) limit++;
    }
  }

  async grant(of: AttemptKey, owner: AttemptOwner, attempts: number): Promise<void> {
    for (let number = 1; number <= attempts; number++) {
      await this.#tryCreate(this.#grantOf(of, number), owner);
    }
    await this.#rounds.syncs.sync(this.#paths.attempts);
  }

  async #countGrants(of: AttemptKey): Promise<number> {
    let count = 0;
    while ((await this.#disk.kindOf(this.#grantOf(of, count + 1))) !== undefined) count++;
    return count;
  }

  /** `own`: this slot is not counted. */
  async #count(
    of: AttemptKey,
    name: string,
    budget: number,
    own?: number,
  ): Promise<SpentAttempts & { readonly pending: readonly string[] }> {
    const taken = await this.#listTaken(of, budget, own);
    const counted = taken.filter(({ isVoid }) => !isVoid);
    const unanswered = counted.filter(({ slot }) => slot.fingerprint === undefined);
    return {
      spent: counted.length,
      unanswered: unanswered.length,
      fingerprints: taken.flatMap(({ slot }) => slot.fingerprint ?? []),
      isShared: counted.some(({ slot }) => slot.name !== name),
      // Grants make no difference below the budget.
      allowed: counted.length < budget ? budget : budget + (await this.#countGrants(of)),
      pending: unanswered.flatMap(({ number, slot }) => (number < (own ?? 0) ? (slot.at ?? "") : [])),
    };
  }

  /** Each void slot and each grant raises the limit by one. */
  async #listTaken(of: AttemptKey, budget: number, own: number | undefined): Promise<TakenNumber[]> {
    const taken: TakenNumber[] = [];
    for (let [number, limit, withGrants] = [1, budget, false]; ; number++) {
      if (number > limit && !withGrants) {
        limit += await this.#countGrants(of);
        withGrants = true;
      }
      if (number > limit) return taken;
      const slot = number === own ? undefined : await this.#read(this.#pathOf(of, number));
      if (slot === undefined) continue;
      const isVoid = await this.#isVoid(slot);
      if (isVoid) limit++;
      taken.push({ number, slot, isVoid });
    }
  }

  /** An attempt is void once its round was delivered: the service has accepted a password since. */
  async #isVoid({ name, round }: Slot): Promise<boolean> {
    if (name === undefined || round === undefined) return false;
    if ((await this.#rounds.readEnd(name, round))?.state !== "delivered") return false;
    // The record's creator may have stopped before the sync: after a power cut, the slot would count again.
    await this.#rounds.syncs.sync(this.#paths.ledgerFolder(name));
    return true;
  }

  /** False if the file exists. A file that cannot be written is removed: a full disk must not cost attempts. */
  async #tryCreate(path: string, owner: Slot): Promise<boolean> {
    const file = await this.#disk.create(path, 0o600).catch(tolerate("EEXIST"));
    if (file === undefined) return false;
    try {
      await file.write(JSON.stringify(owner)).finally(() => file.close());
      return true;
    } catch (error) {
      await tryUnlink(this.#disk, path);
      throw error;
    }
  }

  async #replace(path: string, slot: Slot): Promise<void> {
    await writeUnnamed(this.#disk, this.#paths.temporary, JSON.stringify(slot), true, (unnamed) =>
      this.#disk.rename(unnamed, path),
    );
    await this.#rounds.syncs.sync(this.#paths.attempts);
  }

  async #read(path: string): Promise<Slot | undefined> {
    const text = await tryRead(this.#disk, path);
    return text === undefined ? undefined : parseSlot(text);
  }

  #pathOf({ serviceId, trackingId }: AttemptKey, number: number): string {
    return join(this.#paths.attempts, `${attemptsKey(serviceId, trackingId)}.${number}.json`);
  }

  #grantOf({ serviceId, trackingId }: AttemptKey, number: number): string {
    return join(this.#paths.attempts, `${attemptsKey(serviceId, trackingId)}.grant-${number}.json`);
  }
}
