/** Reads the journal for the console: one request at a time, and only while its client waits. */
import type { ServerResponse } from "node:http";
import { Mutex } from "../base/concurrency.ts";
import type { JournalKind } from "../model/queries.ts";
import type { JournalQuery, Tally } from "../model/views.ts";
import type { Local } from "../operate/local.ts";
import { whenClosed } from "./answers.ts";
import { RANGES, type Range, startOf } from "./chart.ts";

const MAX_WAITING = 5;
const WAIT_MS = 3_000;
/** A tally of a month takes a while, and changes slowly. */
const TALLY_KEPT_MS = 30_000;

export interface JournalSource {
  readonly operate: Pick<Local, "history">;
  /** How transfers ended, in slots of equal length from `sinceMs` on. Rejects when the signal aborts. */
  tally(sinceMs: number, slotMs: number, signal: AbortSignal): Promise<readonly Tally[]>;
}

export class JournalAccess {
  readonly #port: JournalSource;
  readonly #mutex = new Mutex();
  #waiting = 0;
  readonly #tallies = new Map<Range, { readonly atMs: number; readonly slots: readonly Tally[] }>();

  constructor(port: JournalSource) {
    this.#port = port;
  }

  /** The entries for a page, newest first. As `tryRun`. */
  async show<Kind extends JournalKind>(response: ServerResponse, kind: Kind, query: JournalQuery) {
    const read = (signal: AbortSignal) => this.#port.operate.history(kind, query, signal);
    return (await this.#tryRun(response, read))?.entries;
  }

  /** How transfers ended in each slot of the range. As `tryRun`. */
  async tally(response: ServerResponse, range: Range, nowMs: number): Promise<readonly Tally[] | undefined> {
    const known = this.#tallies.get(range);
    if (known !== undefined && Math.abs(nowMs - known.atMs) < TALLY_KEPT_MS) return known.slots;
    const { slotMs } = RANGES[range];
    const read = (signal: AbortSignal) => this.#port.tally(startOf(range, nowMs), slotMs, signal);
    const slots = await this.#tryRun(response, read);
    if (slots !== undefined) this.#tallies.set(range, { atMs: nowMs, slots });
    return slots;
  }

  /** `undefined` if too many requests wait, this one has waited too long, or its client has left. */
  async run<Answer>(
    response: ServerResponse,
    read: (signal: AbortSignal) => Promise<Answer>,
  ): Promise<Answer | undefined> {
    if (this.#waiting >= MAX_WAITING) return undefined;
    const gone = whenClosed(response);
    this.#waiting++;
    const release = await this.#mutex.lock(AbortSignal.any([gone, AbortSignal.timeout(WAIT_MS)]));
    this.#waiting--;
    try {
      return release === undefined || gone.aborted ? undefined : await read(gone);
    } finally {
      release?.();
    }
  }
  /** As `run`, and `undefined` also if the journal cannot be read: the page asks to try again. */
  #tryRun<Answer>(response: ServerResponse, read: (signal: AbortSignal) => Promise<Answer>) {
    // The status shows a disk that fails.
    return this.run(response, read).catch(() => undefined);
  }
}
