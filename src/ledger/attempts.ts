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
import { tryRead, tryUnlink } from "../base/disk.ts";
import { writeUnnamed } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import type { AttemptKey, AttemptOwner, AttemptSlots, SpentAttempts, TakenSlot } from "../model/attempts.ts";
import { parseJson } from "./format.ts";
import { attemptsKey } from "./paths.ts";
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

interface NumberedSlot {
  readonly number: number;
  readonly path: string;
  /** Missing while the slot is free. */
  readonly slot: Slot | undefined;
  readonly isVoid: boolean;
}

export function parseSlot(text: string): Slot {
  const result = v.safeParse(Shape, parseJson(text));
  return result.success ? result.output : {};
}

export class FileAttempts implements AttemptSlots {
  readonly #rounds: Rounds;

  constructor(rounds: Rounds) {
    this.#rounds = rounds;
  }

  /** `own`: this slot is not counted. */
  async spent(
    of: AttemptKey,
    name: string,
    budget: number,
    own?: number,
  ): Promise<SpentAttempts & { readonly pending: readonly string[] }> {
    const slots = await Array.fromAsync(this.#slots(of, budget));
    const taken = slots.filter(({ number, slot }) => slot !== undefined && number !== own);
    const counted = taken.filter(({ isVoid }) => !isVoid);
    const unanswered = counted.filter(({ slot }) => slot?.fingerprint === undefined);
    return {
      spent: counted.length,
      unanswered: unanswered.length,
      fingerprints: taken.flatMap(({ slot }) => slot?.fingerprint ?? []),
      isShared: counted.some(({ slot }) => slot?.name !== name),
      // Grants make no difference below the budget.
      allowed: counted.length < budget ? budget : budget + (await this.#countGrants(of)),
      pending: unanswered.flatMap(({ number, slot }) => (number < (own ?? 0) ? (slot?.at ?? "") : [])),
    };
  }

  async take(of: AttemptKey, owner: AttemptOwner, budget: number): Promise<TakenSlot | undefined> {
    const { disk, paths, syncs } = this.#rounds;
    for await (const { number, path, slot } of this.#slots(of, budget)) {
      if (slot !== undefined || !(await this.#tryCreate(path, owner))) continue;
      const giveBack = async () => void (await tryUnlink(disk, path));
      // A power cut must not remove the slot after the password was sent.
      await syncs.sync(paths.attempts).catch(async (error: unknown) => {
        await giveBack();
        throw error;
      });
      return {
        others: () => this.spent(of, owner.name, budget, number),
        refused: (fingerprint) => this.#replace(path, { ...owner, fingerprint }),
        giveBack,
      };
    }
    return undefined;
  }

  async grant(of: AttemptKey, owner: AttemptOwner, attempts: number): Promise<void> {
    for (let number = 1; number <= attempts; number++) {
      await this.#tryCreate(this.#pathOf(of, `grant-${number}`), owner);
    }
    await this.#rounds.syncs.sync(this.#rounds.paths.attempts);
  }

  async #countGrants(of: AttemptKey): Promise<number> {
    let count = 0;
    while ((await this.#rounds.disk.kindOf(this.#pathOf(of, `grant-${count + 1}`))) !== undefined) count++;
    return count;
  }

  /** The slots up to the limit. Each void one and each grant raises it by one. Grants matter once the budget is spent. */
  async *#slots(of: AttemptKey, budget: number): AsyncGenerator<NumberedSlot> {
    let [limit, includesGrants] = [budget, false];
    for (let number = 1; ; number++) {
      if (number > limit && !includesGrants) {
        limit += await this.#countGrants(of);
        includesGrants = true;
      }
      if (number > limit) return;
      const path = this.#pathOf(of, number);
      const text = await tryRead(this.#rounds.disk, path);
      const slot = text === undefined ? undefined : parseSlot(text);
      const isVoid = slot !== undefined && (await this.#isVoid(slot));
      if (isVoid) limit++;
      yield { number, path, slot, isVoid };
    }
  }

  /** An attempt is void once its round was delivered: the service has accepted a password since. */
  async #isVoid({ name, round }: Slot): Promise<boolean> {
    if (name === undefined || round === undefined) return false;
    if ((await this.#rounds.readEnd(name, round))?.state !== "delivered") return false;
    // The record's creator may have stopped before the sync: after a power cut, the slot would count again.
    await this.#rounds.syncs.sync(this.#rounds.paths.ledgerFolder(name));
    return true;
  }

  /** False if the file exists. A file that cannot be written is removed: a full disk must not cost attempts. */
  async #tryCreate(path: string, owner: Slot): Promise<boolean> {
    const file = await this.#rounds.disk.create(path, 0o600).catch(tolerate("EEXIST"));
    if (file === undefined) return false;
    try {
      await file.write(JSON.stringify(owner)).finally(() => file.close());
      return true;
    } catch (error) {
      await tryUnlink(this.#rounds.disk, path);
      throw error;
    }
  }

  async #replace(path: string, slot: Slot): Promise<void> {
    const { disk, paths } = this.#rounds;
    const file = { folder: paths.temporary, content: JSON.stringify(slot) };
    await writeUnnamed(disk, file, (unnamed) => disk.rename(unnamed, path));
    await this.#rounds.syncs.sync(this.#rounds.paths.attempts);
  }

  /** `what`: the number of a slot, or `grant-N`. */
  #pathOf({ serviceId, trackingId }: AttemptKey, what: number | `grant-${number}`): string {
    return join(this.#rounds.paths.attempts, `${attemptsKey(serviceId, trackingId)}.${what}.json`);
  }
}
