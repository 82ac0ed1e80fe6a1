/** Reads the journal through the daemon's Unix socket, page by page: the daemon bounds its answers. */
import type * as v from "valibot";
import type { OnDamagedLines } from "../ledger/history.ts";
import {
  type ActEntry,
  ActPageShape,
  type ActQuery,
  type HistoryEntry,
  HistoryPageShape,
  type HistoryQuery,
  type JournalKind,
  type JournalPage,
  MAX_PAGE_SIZE,
} from "../model/views.ts";
import type { DaemonSocket } from "./daemon-socket.ts";

export class RemoteJournal {
  readonly #socket: DaemonSocket;

  constructor(socket: DaemonSocket) {
    this.#socket = socket;
  }

  changes(query: HistoryQuery, onDamaged: OnDamagedLines): Promise<HistoryEntry[]> {
    // Without `changes`, only the newest entry of each transfer is shown.
    const keyOf = ({ mailbox, trackingId, ...rest }: HistoryEntry) =>
      JSON.stringify([mailbox, trackingId, query.changes ? rest : ""]);
    const kind = query.changes ? "changes" : "transfers";
    return this.#read(kind, HistoryPageShape, query, keyOf, onDamaged);
  }

  acts(query: ActQuery, onDamaged: OnDamagedLines): Promise<ActEntry[]> {
    return this.#read("acts", ActPageShape, query, ({ id }: ActEntry) => id, onDamaged);
  }

  /** Each page begins where the one before ended. An entry may be on two pages: it is kept once. */
  async #read<Entry extends { readonly at: string }>(
    kind: JournalKind,
    schema: v.GenericSchema<unknown, JournalPage & { readonly entries: readonly Entry[] }>,
    { sinceMs, untilMs, sender, mailbox, search, state, limit }: HistoryQuery,
    keyOf: (entry: Entry) => string,
    onDamaged: OnDamagedLines,
  ): Promise<Entry[]> {
    const entries = new Map<string, Entry>();
    const damaged = new Map<string, number>();
    const filter = { kind, since: sinceMs, sender, mailbox, search, state };
    for (let until = untilMs; ; ) {
      const query = { ...filter, until, limit: Math.min(limit, MAX_PAGE_SIZE) };
      const page = await this.#socket.get("/api/journal", query, schema);
      for (const { path, lines } of page.damaged) damaged.set(path, Math.max(lines, damaged.get(path) ?? 0));
      for (const entry of page.entries) {
        const key = keyOf(entry);
        if (!entries.has(key)) entries.set(key, entry);
      }
      const last = page.entries.at(-1);
      const isOver = page.entries.length < query.limit || entries.size >= limit;
      const next = last === undefined ? until : Date.parse(last.at) + 1;
      // A page of entries with one time would be read again and again.
      if (isOver || next === until) break;
      until = next;
    }
    for (const [path, lines] of damaged) onDamaged(path, lines);
    return [...entries.values()].slice(0, limit);
  }
}
