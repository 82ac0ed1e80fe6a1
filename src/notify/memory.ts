/**
 * What one way remembers between starts: pending notices, and which were notified. Each process has its own file, so
 * processes that share the state folder lose nothing of each other. A file of a process that has ended is taken over.
 * A lost file leads to a repeated message, and no failure here is reported.
 */
import { randomBytes } from "node:crypto";
import { readdir, readFile, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import * as v from "valibot";
import { clearTemporaries, makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { PendingShape } from "./pending.ts";

const VERSION = 1;

const MemoryShape = v.object({
  version: v.literal(VERSION),
  /** Its process has ended. */
  isClosed: v.boolean(),
  lastSentMs: v.number(),
  lastUrgentMs: v.number(),
  /** Mailbox, trouble, service. */
  failing: v.array(v.tuple([v.string(), v.string(), v.string()])),
  pending: PendingShape,
});

export type MemorySnapshot = Omit<v.InferOutput<typeof MemoryShape>, "version" | "isClosed">;

/** Also a file that another process was about to take over. */
const FILE = /^[0-9a-f]{12}\.json(\.[0-9a-f]{12})?$/;
const MAX_FILES = 200;
const MAX_BYTES = 16 * 1024 ** 2;
/** A file that was not touched for this long belongs to no process. */
const ABANDONED_MS = 10 * 60_000;

export class Memory {
  readonly #folder: string;
  readonly #isShared: boolean;
  readonly #token = randomBytes(6).toString("hex");
  /** Files that were taken over: their content is in our next one. */
  readonly #claimed: string[] = [];

  /** `isShared`: other processes may use the folder at the same time. */
  constructor(folder: string, isShared: boolean) {
    this.#folder = folder;
    this.#isShared = isShared;
  }

  /** Takes over the files of processes that have ended. They are removed by the next `save`, which has their content. */
  async takeOver(): Promise<MemorySnapshot[]> {
    await clearTemporaries(this.#folder, Date.now()).catch(() => {});
    const taken: MemorySnapshot[] = [];
    for (const name of await this.#others()) {
      const file = await this.#read(name);
      const isOurs = !this.#isShared || file?.isClosed === true || (await this.#isAbandoned(name));
      if (!isOurs || !(await this.#claim(name)) || file === undefined) continue;
      taken.push(file);
    }
    return taken;
  }

  /** Keys that other processes have notified of. */
  async notifiedByOthers(): Promise<ReadonlySet<string>> {
    const keys = new Set<string>();
    if (!this.#isShared) return keys;
    for (const name of await this.#others()) {
      const file = await this.#read(name);
      for (const key of [...(file?.pending.seen ?? []), ...(file?.pending.open ?? [])]) keys.add(key);
    }
    return keys;
  }

  async save(snapshot: MemorySnapshot, isClosed = false): Promise<void> {
    const text = JSON.stringify({ version: VERSION, isClosed, ...snapshot });
    try {
      await makeFolderDurably(this.#folder, 0o700);
      await replaceDurably(join(this.#folder, this.#own()), text, 0o600);
      await this.#dropTaken();
    } catch {
      // The next save may succeed.
    }
  }

  /** Shows other processes that this one is alive. Call it every few minutes. */
  async touch(): Promise<void> {
    const now = new Date();
    await utimes(join(this.#folder, this.#own()), now, now).catch(() => {});
  }

  #own(): string {
    return `${this.#token}.json`;
  }

  async #others(): Promise<string[]> {
    const names = await readdir(this.#folder).catch(() => []);
    const own = (name: string) => name.startsWith(this.#token) || name.endsWith(`.${this.#token}`);
    return names.filter((name) => FILE.test(name) && !own(name)).slice(0, MAX_FILES);
  }

  async #read(name: string): Promise<v.InferOutput<typeof MemoryShape> | undefined> {
    const path = join(this.#folder, name);
    try {
      if ((await stat(path)).size > MAX_BYTES) return undefined;
      return v.parse(MemoryShape, JSON.parse(await readFile(path, "utf8")));
    } catch {
      return undefined;
    }
  }

  async #isAbandoned(name: string): Promise<boolean> {
    const found = await stat(join(this.#folder, name)).catch(() => undefined);
    return found !== undefined && Date.now() - found.mtimeMs > ABANDONED_MS;
  }

  /** Of several processes, one succeeds. */
  async #claim(name: string): Promise<boolean> {
    const claimed = join(this.#folder, `${name.slice(0, this.#own().length)}.${this.#token}`);
    try {
      await rename(join(this.#folder, name), claimed);
      const now = new Date();
      await utimes(claimed, now, now);
      this.#claimed.push(claimed);
      return true;
    } catch {
      return false;
    }
  }

  async #dropTaken(): Promise<void> {
    for (const path of this.#claimed.splice(0)) await rm(path, { force: true });
  }
}
