/** The facts about the expectations of one mailbox, in memory and in a file that several processes may share. */
import { readFile } from "node:fs/promises";
import * as v from "valibot";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { replaceDurably } from "../base/durable.ts";
import type { Expectation } from "../model/mailbox.ts";
import { type Known, mergeKnown, withoutFuture } from "./overdue.ts";

const Content = v.record(
  v.string(),
  v.object({ sinceMs: v.number(), arrivedMs: v.number(), missedMs: v.number(), clearedMs: v.number() }),
);

export class ExpectedFile {
  readonly rules: readonly Expectation[];
  readonly #path: string;
  readonly #clock: Clock;
  readonly #known: Map<string, Known>;
  readonly #writing = new Coalesced(() => this.#exchange().catch(() => {}));

  /** A rule that is not in the file is expected from now on. */
  constructor(path: string, rules: readonly Expectation[], clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.rules = rules;
    const initial: Known = { sinceMs: clock.now(), arrivedMs: 0, missedMs: 0, clearedMs: 0 };
    this.#known = new Map(rules.map((rule) => [keyOf(rule), initial]));
  }

  knownOf(rule: Expectation): Known {
    const known = this.#known.get(keyOf(rule));
    if (known === undefined) throw new TypeError(`not a rule of this file: ${rule.described}`);
    return withoutFuture(known, this.#clock.now());
  }

  /** In memory at once, in the file soon. */
  learn(rule: Expectation, news: Partial<Known>): void {
    const known = this.knownOf(rule);
    this.#keep(keyOf(rule), mergeKnown(known, { ...known, ...news }));
    void this.sync();
  }

  /**
   * Merges the file into memory, and memory into the file. Resolves when everything known at the call is written, or
   * could not be written; then the next call tries again.
   */
  sync(): Promise<void> {
    return this.#writing.run();
  }

  async #exchange(): Promise<void> {
    const before = await this.#read();
    for (const [key, known] of this.#known) this.#keep(key, mergeKnown(known, before[key] ?? known));
    const now = Object.fromEntries(this.#known);
    if (JSON.stringify(now) === JSON.stringify(before)) return;
    await replaceDurably(this.#path, JSON.stringify(now), 0o600);
  }

  #keep(key: string, known: Known): void {
    this.#known.set(key, withoutFuture(known, this.#clock.now()));
  }

  /** Empty if the file is missing or damaged: its rules are then expected from now on. */
  async #read(): Promise<Readonly<Record<string, Known>>> {
    try {
      return v.parse(Content, JSON.parse(await readFile(this.#path, "utf8")));
    } catch {
      return {};
    }
  }
}

/** By content: a changed expectation is a new one. */
function keyOf({ sender, by, withinMs }: Expectation): string {
  return JSON.stringify([sender, by.zone, by.days, by.timeMs, withinMs]);
}
