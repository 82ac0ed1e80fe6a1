/**
 * Password attempts at a transfer, as files `slots/KEY.N.json`. An attempt takes the lowest free slot before it
 * sends the password, by creating a file that must not exist yet. So all processes together cannot exceed the budget.
 *
 * An attempt gives its slot back when the password is accepted, or the service answers about something else. A refused
 * password leaves its fingerprint in the slot. Otherwise, and after a crash, the slot stays as it is, and counts. An
 * operator grants one more attempt with a file `slots/KEY.grant-N.json`.
 *
 * KEY is derived from the tracking-id alone. Earlier versions derived it from the address of the service too, in the folder
 * `attempts`: their files stay there, and count for every transfer that they may belong to.
 */

import { join } from "node:path";
import * as v from "valibot";
import { mapLimit } from "../base/concurrency.ts";
import { tryRead, tryUnlink } from "../base/disk.ts";
import { writeUnnamed } from "../base/durable.ts";
import { tolerate } from "../base/faults.ts";
import { parseAs } from "../base/json.ts";
import type { AttemptOwner, AttemptSlots, CountedAttempts, TakenSlot } from "../model/attempts.ts";
import { attemptsKey, oldAttemptsKey, startOfName } from "./paths.ts";
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
  return parseAs(Shape, text) ?? {};
}

/** `KEY.N.json` */
const SLOT = /^(.+)\.\d+\.json$/;

export class FileAttempts implements AttemptSlots {
  readonly #rounds: Rounds;
  readonly #services: () => readonly string[];

  /** `services`: the ids of those that are configured. Only files of an earlier version need them. */
  constructor(rounds: Rounds, services: () => readonly string[] = () => []) {
    this.#rounds = rounds;
    this.#services = services;
  }

  /** `own`: this slot is not counted, and earlier ones are pending. Without one, those of other mailboxes are. */
  async spent(trackingId: string, name: string, budget: number, own?: number): Promise<CountedAttempts> {
    const slots = await Array.fromAsync(this.#slots(trackingId, budget));
    const taken = slots.filter(({ number, slot }) => slot !== undefined && number !== own);
    const counted = taken.filter(({ isVoid }) => !isVoid);
    const unanswered = counted.filter(({ slot }) => slot?.fingerprint === undefined);
    return {
      spent: counted.length,
      unanswered: unanswered.length,
      fingerprints: taken.flatMap(({ slot }) => slot?.fingerprint ?? []),
      isShared: counted.some(({ slot }) => slot?.name !== name),
      // Grants make no difference below the budget.
      allowed: counted.length < budget ? budget : budget + (await this.#countGrants(trackingId)),
      pending: unanswered.flatMap(({ number, slot }) =>
        (own === undefined ? slot?.name !== name : number < own) ? (slot?.at ?? "") : [],
      ),
    };
  }

  async take(trackingId: string, owner: AttemptOwner, budget: number): Promise<TakenSlot | undefined> {
    const { disk, paths, syncs } = this.#rounds;
    for await (const { number, path, slot } of this.#slots(trackingId, budget)) {
      if (slot !== undefined || !(await this.#tryCreate(path, owner))) continue;
      const giveBack = async () => void (await tryUnlink(disk, path));
      // A power cut must not remove the slot after the password was sent.
      await syncs.sync(paths.slots).catch(async (error: unknown) => {
        await giveBack();
        throw error;
      });
      return {
        others: () => this.spent(trackingId, owner.name, budget, number),
        refused: (fingerprint) => this.#replace(path, { ...owner, fingerprint }),
        giveBack,
      };
    }
    return undefined;
  }

  async grant(trackingId: string, owner: AttemptOwner, attempts: number): Promise<void> {
    for (let number = 1; number <= attempts; number++) {
      await this.#tryCreate(this.#pathOf(trackingId, `grant-${number}`), owner);
    }
    await this.#rounds.syncs.sync(this.#rounds.paths.slots);
  }

  /** Tells which transfers may have slots. Lists the folders once, because most transfers have none. */
  async listed(): Promise<(trackingId: string) => boolean> {
    const files = await this.#rounds.disk.list(this.#rounds.paths.slots);
    const keys = new Set(files.map((file) => SLOT.exec(file)?.[1]));
    const starts = new Set((await this.#readOld()).map(({ start }) => start));
    return (trackingId) => keys.has(attemptsKey(trackingId)) || starts.has(startOfName(trackingId));
  }

  async #countGrants(trackingId: string): Promise<number> {
    const { disk } = this.#rounds;
    let count = 0;
    while ((await disk.kindOf(this.#pathOf(trackingId, `grant-${count + 1}`))) !== undefined) count++;
    return count;
  }

  /**
   * All taken slots, and the free ones up to the limit. Those of an earlier version come first, and reduce it. Each void one
   * and each grant raises it by one. Grants matter once the budget is spent.
   */
  async *#slots(trackingId: string, budget: number): AsyncGenerator<NumberedSlot> {
    const old = await this.#oldSlots(trackingId);
    let [limit, includesGrants] = [budget - old.length, false];
    for (let number = 1 - old.length; ; number++) {
      if (number > limit && !includesGrants) {
        limit += await this.#countGrants(trackingId);
        includesGrants = true;
      }
      const path = number < 1 ? (old.at(number - 1) ?? "") : this.#pathOf(trackingId, number);
      const text = await tryRead(this.#rounds.disk, path);
      if (text === undefined && number < 1) continue;
      // A mailbox with a larger budget may have taken slots beyond the limit.
      if (text === undefined && number > limit) return;
      const slot = text === undefined ? undefined : parseSlot(text);
      const isVoid = slot !== undefined && (await this.#isVoid(slot));
      if (isVoid) limit++;
      yield { number, path, slot, isVoid };
    }
  }

  /** The slots of an earlier version that may belong to a transfer. The key tells whose slot a power cut has emptied. */
  async #oldSlots(trackingId: string): Promise<string[]> {
    const old = await this.#readOld();
    const keys = new Set(this.#services().map((id) => oldAttemptsKey(id, trackingId)));
    for (const { key, start } of old) if (start === startOfName(trackingId)) keys.add(key);
    return old.flatMap(({ key, path }) => (keys.has(key) ? path : []));
  }

  async #readOld() {
    const { disk, paths } = this.#rounds;
    const names = (await disk.list(paths.oldSlots).catch(tolerate("ENOENT"))) ?? [];
    const slots = names.filter((name) => SLOT.test(name)).toSorted();
    return mapLimit(slots, 16, async (file) => {
      const path = join(paths.oldSlots, file);
      const { name = "" } = parseSlot((await tryRead(disk, path)) ?? "");
      return { path, key: SLOT.exec(file)?.[1] ?? "", start: name.slice(0, name.lastIndexOf(".") + 1) };
    });
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
    await this.#rounds.syncs.sync(this.#rounds.paths.slots);
  }

  /** `what`: the number of a slot, or `grant-N`. */
  #pathOf(trackingId: string, what: number | `grant-${number}`): string {
    return join(this.#rounds.paths.slots, `${attemptsKey(trackingId)}.${what}.json`);
  }
}
