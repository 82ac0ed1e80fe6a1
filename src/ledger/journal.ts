/**
 * The journal: one line of JSON per change of state and per act of an operator, in a file per month and writer. Lines
 * are only appended. The journal is for people, and no decision rests on it: it is not synced, and a power cut may lose
 * its last lines.
 */
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { withFile } from "../base/files.ts";
import type { RecordedAct } from "../model/order.ts";
import type { TransferRecord } from "../model/record.ts";

/** `2026-03.jsonl`, or `2026-03.WRITER.jsonl` if several processes write. */
export const JOURNAL_FILE = /^(\d{4}-\d{2})(\..+)?\.jsonl$/;
/** Readers treat a longer line as damaged. */
export const MAX_LINE_BYTES = 64 * 1024;
/** If a line would be too long, each text in it is cut to this many characters. */
const MAX_CHARACTERS = 1_000;
const WRITE_AFTER_MS = 200;
/** Lines that wait while the disk refuses them. Beyond that, the oldest are dropped. */
const MAX_UNWRITTEN = 10_000;

interface Unwritten {
  readonly month: string;
  readonly line: string;
  /** Called when the line is written or dropped. */
  readonly onWritten: () => void;
}

export class Journal {
  readonly #folder: string;
  /** Missing if this process works alone. Not every file system lets several processes append to one file. */
  readonly #writer: string | undefined;
  readonly #clock: Clock;
  #unwritten: Unwritten[] = [];
  readonly #writing = new Coalesced(() => this.#writeAll(), WRITE_AFTER_MS);
  #isStuck = false;

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
    this.#append(facts, onWritten);
  }

  /** Written soon, together with others. */
  addAct({ act, ...facts }: RecordedAct): void {
    // Readers find the lines of acts by their second key.
    this.#append({ act, ...facts }, () => {});
  }

  #append(facts: Readonly<Record<string, unknown>>, onWritten: () => void): void {
    const at = new Date(this.#clock.now()).toISOString();
    const line = formatLine({ at, ...facts });
    this.#unwritten.push({ month: at.slice(0, 7), line, onWritten });
    if (this.#unwritten.length > MAX_UNWRITTEN) this.#unwritten.shift()?.onWritten();
    this.#writing.schedule();
  }

  /** The disk refused the last lines. */
  get isStuck(): boolean {
    return this.#isStuck;
  }

  /** Resolves when all lines are written, or the disk has refused them. */
  flush(): Promise<void> {
    return this.#writing.run();
  }

  async #writeAll(): Promise<void> {
    const batch = this.#unwritten;
    this.#unwritten = [];
    const months = Map.groupBy(batch, ({ month }) => month);
    for (const [month, lines] of months) {
      const path = join(this.#folder, [month, this.#writer, "jsonl"].filter(Boolean).join("."));
      try {
        await withFile(path, "a", (file) => file.write(lines.map(({ line }) => `${line}\n`).join("")));
        for (const { onWritten } of lines) onWritten();
        this.#isStuck = false;
      } catch {
        this.#isStuck = true;
        // Tried again with the next line.
        this.#unwritten.unshift(...lines);
      }
    }
  }
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
