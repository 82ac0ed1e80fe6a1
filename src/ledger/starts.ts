/**
 * Where mailboxes start, as files `starts/NAME.json`. Each lists the transfers that were there before its mailbox started
 * with `since: now`. The first process to create the file decides, for ever.
 */
import { join } from "node:path";
import * as v from "valibot";
import { tryRead } from "../base/disk.ts";
import { Fault } from "../base/faults.ts";
import { digestOfMailbox } from "../model/transfer.ts";
import { parseJson } from "./format.ts";
import type { Rounds } from "./rounds.ts";

const Shape = v.object({ mailbox: v.string(), at: v.string(), before: v.array(v.string()) });

export class Starts {
  readonly #rounds: Rounds;

  constructor(rounds: Rounds) {
    this.#rounds = rounds;
  }

  /** The tracking-ids; `undefined` if the mailbox has no start yet. Throws `RECORD_UNREADABLE`. */
  async read(mailbox: string): Promise<ReadonlySet<string> | undefined> {
    const path = this.#pathOf(mailbox);
    const text = await tryRead(this.#rounds.disk, path);
    if (text === undefined) return undefined;
    const result = v.safeParse(Shape, parseJson(text));
    if (!result.success) throw new Fault("RECORD_UNREADABLE", { detail: path });
    return new Set(result.output.before);
  }

  /** Returns the tracking-ids that count: those of another process, if it was first. */
  async create(mailbox: string, before: Iterable<string>, at: string): Promise<ReadonlySet<string>> {
    const text = `${JSON.stringify({ mailbox, at, before: [...before] })}\n`;
    await this.#rounds.once.create(this.#pathOf(mailbox), text);
    return (await this.read(mailbox)) ?? new Set();
  }

  #pathOf(mailbox: string): string {
    return join(this.#rounds.paths.starts, `${digestOfMailbox(mailbox)}.json`);
  }
}
