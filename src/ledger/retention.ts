/**
 * Removes old months of the journal, and the records of transfers that expired long ago and are no longer listed. Each
 * sweep covers a small part of the ledger, so that its cost does not depend on the past.
 */

import { join } from "node:path";
import { tryRead, tryUnlink } from "../base/disk.ts";
import { tolerate } from "../base/faults.ts";
import { random } from "../base/random.ts";
import { KINDS } from "../model/outbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { parseSlot } from "./attempts.ts";
import { ifReadable } from "./format.ts";
import { JOURNAL_FILE } from "./journal.ts";
import { digitsOf, parseRecordFile, parseStaged } from "./paths.ts";
import type { Rounds } from "./rounds.ts";
import type { Watermark } from "./watermark.ts";

export interface RetentionRules {
  /** How long records stay after the transfer has expired; missing: for ever. */
  readonly ledgerMs: number | undefined;
  /** How long the journal of a month is kept; missing: for ever. */
  readonly historyMs: number | undefined;
  /** Whether the service lists the transfer, or may list it. */
  isListed(record: TransferRecord): boolean;
}

/** Parts of the ledger, by the first two digits of a name's digest. */
const PARTS = 256;

export class Retention {
  readonly #rounds: Rounds;
  readonly #watermark: Watermark;
  /** Random at first: a process such as `inlet once` may run one sweep only. */
  #next = Math.floor(random() * PARTS);

  constructor(rounds: Rounds, watermark: Watermark) {
    this.#rounds = rounds;
    this.#watermark = watermark;
  }

  /** Sweeps the next part of the ledger, the attempts and the journal. The clock must be right. */
  async sweep(rules: RetentionRules, nowMs: number): Promise<void> {
    const digits = this.#next.toString(16).padStart(2, "0");
    this.#next = (this.#next + 1) % PARTS;
    if (rules.ledgerMs !== undefined) {
      await this.#sweepRecords(digits, rules, nowMs - rules.ledgerMs);
      if (digits === "00") await this.#sweepAttempts(nowMs - rules.ledgerMs);
    }
    if (rules.historyMs !== undefined) await this.#sweepJournal(nowMs - rules.historyMs);
  }

  async #sweepRecords(digits: string, rules: RetentionRules, beforeMs: number): Promise<void> {
    const folder = join(this.#rounds.paths.ledger, digits.slice(0, 1));
    const transfers = Map.groupBy(
      (await this.#rounds.disk.list(folder).catch(tolerate("ENOENT"))) ?? [],
      (file) => parseRecordFile(file)?.name ?? "",
    );
    let placements: readonly string[] | undefined;
    for (const [name, files] of transfers) {
      if (digitsOf(name, digits.length) !== digits) continue;
      if (!(await this.#isOver(name, files, rules, beforeMs))) continue;
      await this.#watermark.forget(name);
      placements ??= await this.#rounds.disk.list(this.#rounds.paths.placements);
      await this.#removePlacements(name, placements);
      // From the first round on: if the sweep is cut short, later records still show the end.
      for (const file of files.toSorted((a, b) => roundOf(a) - roundOf(b))) {
        await tryUnlink(this.#rounds.disk, join(folder, file));
      }
    }
  }

  /** Usually the end of a hand-off has removed them. A lost or damaged entry in the outbox leaves them. */
  async #removePlacements(name: string, placements: readonly string[]): Promise<void> {
    for (const entry of placements) {
      const id = entry.startsWith(name) ? parseStaged(entry) : undefined;
      if (id?.name === name) await this.#rounds.disk.removeTree(this.#rounds.paths.placement(id));
    }
  }

  /** `files`: all records of the transfer. */
  async #isOver(
    name: string,
    files: readonly string[],
    rules: RetentionRules,
    beforeMs: number,
  ): Promise<boolean> {
    const last = Math.max(...files.map(roundOf));
    // Records of an open round, and damaged ones, stay.
    const record = await this.#rounds.readEnd(name, last).catch(ifReadable);
    if (record === undefined || record.state === "quarantined" || rules.isListed(record)) return false;
    const since = record.expires ?? record.at[record.state] ?? "";
    return Date.parse(since) < beforeMs && !(await this.#isInOutbox(name, files));
  }

  /** Whether the hand-off of one of its deliveries is open. */
  async #isInOutbox(name: string, files: readonly string[]): Promise<boolean> {
    for (const round of new Set(files.map(roundOf))) {
      for (const kind of KINDS) {
        const entry = this.#rounds.paths.outboxEntry(name, round, kind);
        if ((await this.#rounds.disk.kindOf(entry)) !== undefined) return true;
      }
    }
    return false;
  }

  /** Removes attempts at transfers that have neither a record nor a note. One that a power cut has emptied stays. */
  async #sweepAttempts(beforeMs: number): Promise<void> {
    const { disk, paths } = this.#rounds;
    for (const folder of [paths.slots, paths.oldSlots]) {
      for (const file of (await disk.list(folder).catch(tolerate("ENOENT"))) ?? []) {
        const { name, at } = parseSlot((await tryRead(disk, join(folder, file))) ?? "");
        if (name === undefined || at === undefined || Date.parse(at) >= beforeMs) continue;
        if (!(await this.#isKnown(name))) await tryUnlink(disk, join(folder, file));
      }
    }
  }

  /** Whether a transfer has a record or a note. A damaged record counts. */
  async #isKnown(name: string): Promise<boolean> {
    if ((await this.#rounds.disk.kindOf(this.#rounds.paths.note(name))) !== undefined) return true;
    const current = await this.#rounds.current(name).catch(ifReadable);
    return current === undefined || current.begin !== undefined || current.end !== undefined;
  }

  async #sweepJournal(beforeMs: number): Promise<void> {
    for (const file of await this.#rounds.disk.list(this.#rounds.paths.journal)) {
      const [year, month] = JOURNAL_FILE.exec(file)?.[1]?.split("-") ?? [];
      // The beginning of the next month: Date counts months from 0.
      const endMs = Date.UTC(Number(year), Number(month), 1);
      if (endMs < beforeMs) await tryUnlink(this.#rounds.disk, join(this.#rounds.paths.journal, file));
    }
  }
}

function roundOf(file: string): number {
  return parseRecordFile(file)?.round ?? 0;
}
