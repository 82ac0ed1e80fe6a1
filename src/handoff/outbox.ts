/**
 * The files of hand-offs: `NAME~OWNER.json` in one folder. Only the owner writes a file. Who takes one over renames it,
 * so that of several who try one succeeds.
 */
import { opendir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { clearTemporaries, durableStep, faultOfDisk, removeFile, replaceDurably } from "../base/durable.ts";
import { makeFolderDurably } from "../base/folders.ts";
import { Turns } from "../base/turns.ts";
import { type HandoffStep, STEPS } from "../model/handoff.ts";
import type { Receipt } from "../model/receipt.ts";
import { type Entry, formatEntry, isOutlived, parseEntry, type StepState } from "./entry.ts";

/** So many names are read at once. */
const BATCH = 512;

const FILE = /^(.+)~([0-9a-z]+)\.json$/;

export interface Found {
  readonly name: string;
  readonly owner: string;
}

type FindReceipt = (entry: Entry) => Promise<Receipt | undefined>;
export type PeekedStep = StepState & { readonly step: HandoffStep };

export class Outbox {
  readonly #folder: string;
  /** For what has no name yet. */
  readonly #newFolder: string;
  readonly #owner: string;
  readonly #turns = new Turns();
  readonly #onDamaged: (path: string) => void;

  constructor(folder: string, owner: string, onDamaged: (path: string) => void) {
    this.#folder = folder;
    this.#newFolder = join(folder, "new");
    this.#owner = owner;
    this.#onDamaged = onDamaged;
  }

  /** `isAlone`: nobody else works on this inbox, so that what a crash left can be cleared. */
  async open(isAlone: boolean, nowMs: number): Promise<void> {
    if (isAlone) await rm(this.#newFolder, { recursive: true, force: true });
    await makeFolderDurably(this.#newFolder, 0o700);
    await clearTemporaries(this.#newFolder, nowMs);
  }

  /** Nobody else in this process reads and writes this one meanwhile. */
  inTurn<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    return this.#turns.take(name, work);
  }

  async *list(): AsyncGenerator<Found, void, undefined> {
    try {
      for await (const { name: file } of await opendir(this.#folder, { bufferSize: BATCH })) {
        const [, name, owner] = FILE.exec(file) ?? [];
        if (name !== undefined && owner !== undefined) yield { name, owner };
      }
    } catch (error) {
      throw faultOfDisk(error, this.#folder);
    }
  }

  /** Who has this one: usually nobody or one. Looks at every name there is. */
  async ownersOf(name: string): Promise<string[]> {
    const owners: string[] = [];
    for await (const found of this.list()) if (found.name === name) owners.push(found.owner);
    return owners;
  }

  /** `undefined` where there is none, or one that nobody can read, which is reported. */
  async read(name: string, owner: string = this.#owner): Promise<Entry | undefined> {
    const path = this.#pathOf(name, owner);
    const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw faultOfDisk(error, path);
    });
    if (text === undefined) return undefined;
    const entry = parseEntry(text);
    if (entry === undefined) this.#onDamaged(path);
    return entry;
  }

  async write(name: string, entry: Entry): Promise<void> {
    await replaceDurably(this.#pathOf(name, this.#owner), formatEntry(entry), 0o600, this.#newFolder);
  }

  /** Not forced to the disk: one that is back after a power cut is found to be over. */
  async remove(name: string, owner: string = this.#owner): Promise<void> {
    const path = this.#pathOf(name, owner);
    try {
      await removeFile(path);
    } catch (error) {
      throw faultOfDisk(error, path);
    }
    durableStep("hand-off removed");
  }

  /**
   * Takes one over whose owner is gone; false where somebody else was faster. Of two deliveries of one transfer that one
   * stays which its receipt names. Not forced to the disk: after a power cut it is taken over again.
   */
  async takeOver(name: string, owner: string, find: FindReceipt): Promise<boolean> {
    const [ours, theirs] = [await this.read(name), await this.read(name, owner)];
    if (theirs === undefined) return false;
    if (ours !== undefined && !isOutlived(ours, theirs, await find(ours))) {
      await this.remove(name, owner);
      return false;
    }
    const from = this.#pathOf(name, owner);
    try {
      await rename(from, this.#pathOf(name, this.#owner));
    } catch (error) {
      if (error instanceof Error && "code" in error && error.code === "ENOENT") return false;
      throw faultOfDisk(error, from);
    }
    durableStep("hand-off taken over");
    return true;
  }

  #pathOf(name: string, owner: string): string {
    return join(this.#folder, `${name}~${owner}.json`);
  }
}

/** For whoever looks from outside: what became of each step of a transfer's delivery; none where all is over. */
export async function peekSteps(work: string, name: string): Promise<PeekedStep[]> {
  const outbox = new Outbox(folderIn(work), "", () => {});
  const owners = await outbox.ownersOf(name).catch(() => []);
  const entries = await Promise.all(owners.map((owner) => outbox.read(name, owner)));
  return entries.flatMap((entry) =>
    STEPS.flatMap((step) => {
      const found = entry?.[step];
      return found === undefined ? [] : [{ step, ...found }];
    }),
  );
}

/** The same: whether something is left to do. */
export async function hasOpenSteps(work: string, name: string): Promise<boolean> {
  return (await peekSteps(work, name)).some(({ state }) => state !== "done");
}

export function folderIn(work: string): string {
  return join(work, "handoff");
}
