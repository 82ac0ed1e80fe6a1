/** The facts about the expectations of one mailbox, in memory and in a file that several processes may share. */

import * as v from "valibot";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { replaceDurably } from "../base/durable.ts";
import { tryReadFile } from "../base/files.ts";
import type { Expectation } from "../model/mailbox.ts";
import { type ExpectationFacts, mergeFacts, withoutFuture } from "./overdue.ts";

const Content = v.record(
  v.string(),
  v.object({ sinceMs: v.number(), arrivedMs: v.number(), missedMs: v.number(), clearedMs: v.number() }),
);

export class ExpectedFile {
  readonly rules: readonly Expectation[];
  readonly #path: string;
  readonly #clock: Clock;
  readonly #facts: Map<string, ExpectationFacts>;
  // The next call tries again, and so does each successful poll.
  readonly #writing = new Coalesced(() => this.#exchange().catch(() => {}));

  /** A rule that is not in the file is expected from now on. */
  constructor(path: string, rules: readonly Expectation[], clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    this.rules = rules;
    const initial: ExpectationFacts = { sinceMs: clock.now(), arrivedMs: 0, missedMs: 0, clearedMs: 0 };
    this.#facts = new Map(rules.map((rule) => [keyOf(rule), initial]));
  }

  factsOf(rule: Expectation): ExpectationFacts {
    const facts = this.#facts.get(keyOf(rule));
    if (facts === undefined) throw new TypeError(`not a rule of this file: ${rule.described}`);
    return withoutFuture(facts, this.#clock.now());
  }

  /** In memory at once, in the file soon. */
  learn(rule: Expectation, changes: Partial<ExpectationFacts>): void {
    const facts = this.factsOf(rule);
    this.#set(keyOf(rule), mergeFacts(facts, { ...facts, ...changes }));
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
    const stored = await this.#read();
    for (const [key, facts] of this.#facts) this.#set(key, mergeFacts(facts, stored[key] ?? facts));
    const merged = Object.fromEntries(this.#facts);
    if (JSON.stringify(merged) === JSON.stringify(stored)) return;
    await replaceDurably(this.#path, JSON.stringify(merged), 0o600);
  }

  #set(key: string, facts: ExpectationFacts): void {
    this.#facts.set(key, withoutFuture(facts, this.#clock.now()));
  }

  /** Empty if the file is missing or damaged: its rules are then expected from now on. Throws if the disk does not answer. */
  async #read(): Promise<Readonly<Record<string, ExpectationFacts>>> {
    const text = await tryReadFile(this.#path);
    try {
      return v.parse(Content, JSON.parse(text ?? ""));
    } catch {
      return {};
    }
  }
}

/** By content: a changed expectation is a new one. */
function keyOf({ sender, by, withinMs }: Expectation): string {
  return JSON.stringify([sender, by.zone, by.days, by.timeMs, withinMs]);
}
