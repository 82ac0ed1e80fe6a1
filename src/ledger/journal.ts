/**
 * The journal: one line of JSON per change of state, per act of an operator and per change of a notice, in a file per
 * month and writer. Lines are only appended, and synced in batches. People read it, and notifications are derived from it.
 */
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { systemDisk } from "../base/disk.ts";
import { withFile } from "../base/files.ts";
import { clearTimeout, setTimeout, type Timer } from "../base/timers.ts";
import { type TransferRecord, waitsForPerson } from "../model/record.ts";
import type { RecordedAct } from "../model/views.ts";

/** `2026-03.jsonl`, or `2026-03.WRITER.jsonl` if several processes write. */
export const JOURNAL_FILE = /^(\d{4}-\d{2})(\..+)?\.jsonl$/;
/** Readers treat a longer line as damaged. */
export const MAX_LINE_BYTES = 64 * 1024;
/** If a line would be too long, each text in it is cut to this many characters. The message of a transfer always is. */
const MAX_CHARACTERS = 1_000;
const WRITE_AFTER_MS = 200;
/** Pause before refused lines are tried again, if no other line comes first. */
const RETRY_MS = 10_000;
/** Lines that wait while the disk refuses them. Beyond that, the oldest are dropped. */
const MAX_UNWRITTEN = 10_000;

interface Unwritten {
  readonly month: string;
  readonly line: string;
  /** Called when the line is synced or dropped. */
  readonly onWritten: () => void;
  /** The disk has refused it before. */
  wasRefused?: boolean;
}

export class Journal {
  readonly #folder: string;
  /** Missing if this process works alone. Not every file system lets several processes append to one file. */
  readonly #writer: string | undefined;
  readonly #clock: Clock;
  #unwritten: Unwritten[] = [];
  readonly #writing = new Coalesced(() => this.#writeAll(), WRITE_AFTER_MS);
  /** The disk refused the last lines. */
  isStuck = false;
  #retry: Timer | undefined;
  /** Files whose names are synced. */
  readonly #named = new Set<string>();
  /** Called after each batch, with the lines that the disk has refused for the first time. They are written later. */
  onBatch: (refused: readonly string[]) => void = () => {};

  constructor(folder: string, writer: string | undefined, clock: Clock) {
    this.#folder = folder;
    this.#writer = writer;
    this.#clock = clock;
  }

  /** Written soon, together with others. */
  add(record: TransferRecord, onWritten: () => void = () => {}): void {
    const { mailbox, trackingId, sender, state, round, reason, folder, inbox } = record;
    const content = state === "delivered" ? contentOf(record, this.#clock.now()) : {};
    const facts = { mailbox, trackingId, sender, state, round, reason, folder, inbox, ...content };
    this.#append({ ...facts, ...attentionOf(record) }, onWritten);
  }

  /** Written soon, together with others. */
  addAct({ act, ...facts }: RecordedAct): void {
    // Readers find the lines of acts by their second key.
    this.#append({ act, ...facts }, () => {});
  }

  /** Written soon, together with others. */
  addNotice(notice: object): void {
    // Readers skip these lines by their second key.
    this.#append({ notice }, () => {});
  }

  #append(facts: Readonly<Record<string, unknown>>, onWritten: () => void): void {
    const at = new Date(this.#clock.now()).toISOString();
    const line = formatLine({ at, ...facts });
    this.#unwritten.push({ month: at.slice(0, 7), line, onWritten });
    this.#writing.schedule();
  }

  /** Resolves when all lines are synced, or the disk has refused them. */
  flush(): Promise<void> {
    return this.#writing.run();
  }

  /** From now on, what the disk refuses is not tried again by itself. */
  async close(): Promise<void> {
    await this.flush();
    clearTimeout(this.#retry);
  }

  async #writeAll(): Promise<void> {
    const batch = this.#unwritten;
    this.#unwritten = [];
    if (batch.length === 0) return;
    const months = Map.groupBy(batch, ({ month }) => month);
    const refused: string[] = [];
    for (const [month, lines] of months) {
      const path = join(this.#folder, [month, this.#writer, "jsonl"].filter(Boolean).join("."));
      try {
        await this.#write(path, lines.map(({ line }) => `${line}\n`).join(""));
        for (const { onWritten } of lines) onWritten();
        this.isStuck = false;
      } catch {
        this.isStuck = true;
        this.#unwritten.unshift(...lines);
        refused.push(...lines.filter(({ wasRefused }) => !wasRefused).map(({ line }) => line));
        for (const each of lines) each.wasRefused = true;
        while (this.#unwritten.length > MAX_UNWRITTEN) this.#unwritten.shift()?.onWritten();
      }
    }
    clearTimeout(this.#retry);
    if (this.#unwritten.length > 0) {
      this.#retry = setTimeout(() => this.#writing.schedule(), RETRY_MS).unref();
    }
    this.onBatch(refused);
  }

  async #write(path: string, text: string): Promise<void> {
    await withFile(path, "a", async (file) => {
      await file.write(text);
      await file.sync();
    });
    if (!this.#named.has(path)) await systemDisk.syncFolder(this.#folder);
    this.#named.add(path);
  }
}

/** What a notice about the transfer needs. */
function attentionOf(record: TransferRecord) {
  const { state, message, output, expires, needsPerson, acknowledged } = record;
  if (!waitsForPerson(record) && state !== "quarantined" && state !== "gone") return {};
  const texts = { message: message?.slice(0, MAX_CHARACTERS), output: output?.slice(-MAX_CHARACTERS) };
  return { ...texts, expires, needsPerson, acknowledged };
}

/** `seconds`: from its discovery to its delivery. */
function contentOf({ subject, files, bytes, round, at }: TransferRecord, nowMs: number) {
  const discoveredMs = Date.parse(at.discovered ?? "");
  // A later round began long after the discovery.
  const isKnown = round === 1 && discoveredMs <= nowMs;
  return { subject, files, bytes, seconds: isKnown ? (nowMs - discoveredMs) / 1000 : undefined };
}

function formatLine(facts: Readonly<Record<string, unknown>>): string {
  const line = JSON.stringify(facts);
  if (Buffer.byteLength(line) <= MAX_LINE_BYTES) return line;
  return JSON.stringify(facts, (_key, value: unknown) =>
    typeof value === "string" && value.length > MAX_CHARACTERS ? `${value.slice(0, MAX_CHARACTERS)}…` : value,
  );
}
