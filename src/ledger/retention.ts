/**
 * Removes old months of the journal, and the records of transfers that expired long ago and are no longer listed. Each
 * sweep covers a small part of the ledger, so that its cost does not depend on the past.
 */

import { join } from "node:path";
import { type Disk, tryRead, tryUnlink } from "../base/disk.ts";
import { Fault, tolerate } from "../base/faults.ts";
import { random } from "../base/random.ts";
import type { TransferRecord } from "../model/record.ts";
import { parseJson, parseRecord } from "./format.ts";
import { JOURNAL_FILE } from "./journal.ts";
import {
  attemptsKey,
  digitsOf,
  type LedgerPaths,
  OUTBOX_KINDS,
  parseRecordFile,
  parseStaged,
} from "./paths.ts";
import type { RetentionRules } from "./port.ts";
import type { Rounds } from "./rounds.ts";
import type { Watermark } from "./watermark.ts";

interface RetentionTools {
  readonly disk: Disk;
  readonly paths: LedgerPaths;
  readonly rounds: Rounds;
  readonly watermark: Watermark;
}

/** Parts of the ledger, by the first two digits of a name's digest. */
const PARTS = 256;

export class Retention {
  readonly #tools: RetentionTools;
  /** Random at first: a process such as `inlet once` may run one sweep only. */
  #next = Math.floor(random() * PARTS);

  constructor(tools: RetentionTools) {
    this.#tools = tools;
  }

  /** Sweeps the next part of the ledger, the attempts and the journal. The clock must be right. */
  async sweep(rules: RetentionRules, nowMs: number): Promise<void> {
    const digits = this.#next.toString(16).padStart(2, "0");
    this.#next = (this.#next + 1) % PARTS;
    if (rules.ledgerMs !== undefined) {
      await this.#sweepRecords(digits, rules, rules.ledgerMs, nowMs);
      if (digits === "00") await this.#sweepAttempts(rules, nowMs - rules.ledgerMs);
    }
    if (rules.historyMs !== undefined) await this.#sweepJournal(nowMs - rules.historyMs);
  }

  async #sweepRecords(digits: string, rules: RetentionRules, keptMs: number, nowMs: number): Promise<void> {
    const { disk, paths } = this.#tools;
    const folder = join(paths.ledger, digits.slice(0, 1));
    const transfers = Map.groupBy(
      (await disk.list(folder).catch(tolerate("ENOENT"))) ?? [],
      (file) => parseRecordFile(file)?.name ?? "",
    );
    let placements: readonly string[] | undefined;
    for (const [name, files] of transfers) {
      if (digitsOf(name, digits.length) !== digits) continue;
      if (!(await this.#isOver(folder, name, files, rules, keptMs, nowMs))) continue;
      await this.#tools.watermark.forget(name);
      placements ??= await disk.list(paths.placements);
      await this.#removePlacements(name, placements);
      // From the first round on: if the sweep is cut short, later records still show the end.
      for (const file of files.toSorted((a, b) => roundOf(a) - roundOf(b))) {
        await tryUnlink(disk, join(folder, file));
      }
    }
  }

  /** Usually the end of a hand-off has removed them. A lost or damaged entry in the outbox leaves them. */
  async #removePlacements(name: string, placements: readonly string[]): Promise<void> {
    const { disk, paths } = this.#tools;
    for (const entry of placements) {
      const id = entry.startsWith(name) ? parseStaged(entry) : undefined;
      if (id?.name === name) await disk.removeTree(paths.placement(id));
    }
  }

  async #isOver(
    folder: string,
    name: string,
    files: readonly string[],
    rules: RetentionRules,
    keptMs: number,
    nowMs: number,
  ): Promise<boolean> {
    const last = Math.max(...files.map(roundOf));
    const end = files.find((file) => file.endsWith(`.end-${last}.json`));
    // Records of an open round, and damaged ones, stay.
    const text = end && (await tryRead(this.#tools.disk, join(folder, end)));
    const record = text === undefined ? undefined : tryParse(text);
    if (record === undefined || record.state === "quarantined" || rules.isListed(record)) return false;
    const since = record.expires ?? record.at[record.state] ?? "";
    if (!(nowMs - Date.parse(since) > keptMs)) return false;
    return !(await this.#isInOutbox(name, files));
  }

  /** Whether the hand-off of one of its deliveries is open. */
  async #isInOutbox(name: string, files: readonly string[]): Promise<boolean> {
    const { disk, paths } = this.#tools;
    for (const round of new Set(files.map(roundOf))) {
      for (const kind of OUTBOX_KINDS) {
        if ((await disk.kindOf(paths.outboxEntry(name, round, kind))) !== undefined) return true;
      }
    }
    return false;
  }

  /** Removes attempts at transfers that have neither a record nor a note. */
  async #sweepAttempts(rules: RetentionRules, beforeMs: number): Promise<void> {
    const { disk, paths } = this.#tools;
    for (const file of await disk.list(paths.attempts)) {
      const path = join(paths.attempts, file);
      const slot = parseJson((await tryRead(disk, path)) ?? "") as
        | { name?: unknown; at?: unknown }
        | undefined;
      const { name, at } = slot ?? {};
      const isOver =
        typeof name === "string" && typeof at === "string"
          ? Date.parse(at) < beforeMs && !(await this.#isKnown(name))
          : await this.#isForgotten(file, rules, beforeMs);
      if (isOver) await tryUnlink(disk, path);
    }
  }

  /** Whether a transfer has a record or a note. A damaged record counts. */
  async #isKnown(name: string): Promise<boolean> {
    const { disk, paths, rounds } = this.#tools;
    if ((await disk.kindOf(paths.note(name))) !== undefined) return true;
    try {
      const { begin, end } = await rounds.current(name);
      return begin !== undefined || end !== undefined;
    } catch (error) {
      if (error instanceof Fault && error.code === "RECORD_UNREADABLE") return true;
      throw error;
    }
  }

  /** For an attempt without its text, which a power cut leaves: it is old, and no service lists its transfer. */
  async #isForgotten(file: string, rules: RetentionRules, beforeMs: number): Promise<boolean> {
    const { disk, paths } = this.#tools;
    const modifiedMs = await disk.modifiedMs(join(paths.attempts, file));
    if (modifiedMs === undefined || modifiedMs >= beforeMs) return false;
    const listed = rules.listed();
    if (listed === undefined) return false;
    for (const { serviceId, trackingId } of listed) {
      if (file.startsWith(`${attemptsKey(serviceId, trackingId)}.`)) return false;
    }
    return true;
  }

  async #sweepJournal(beforeMs: number): Promise<void> {
    const { disk, paths } = this.#tools;
    for (const file of await disk.list(paths.journal)) {
      const [year, month] = JOURNAL_FILE.exec(file)?.[1]?.split("-") ?? [];
      // The beginning of the next month: Date counts months from 0.
      const endMs = Date.UTC(Number(year), Number(month), 1);
      if (endMs < beforeMs) await tryUnlink(disk, join(paths.journal, file));
    }
  }
}

function roundOf(file: string): number {
  return parseRecordFile(file)?.round ?? 0;
}

function tryParse(text: string): TransferRecord | undefined {
  try {
    return parseRecord(text, "");
  } catch {
    return undefined;
  }
}
