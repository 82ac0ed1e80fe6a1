/** Asks the daemon through its Unix socket. Its users need no access to the folders. */
import { Fault } from "../base/faults.ts";
import { isoOf } from "../base/phrases.ts";
import type { Settings } from "../config/settings.ts";
import { API_SHAPES } from "../model/api.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import { type JournalKind, type ListQuery, MAX_PAGE_SIZE } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import { canonicalAddress } from "../model/transfer.ts";
import {
  type ActEntry,
  type ActResult,
  type HistoryEntry,
  type HistoryQuery,
  JournalPageShape,
  type MailboxResult,
  ObjectionShape,
  type Story,
  StoryShape,
  type TransferList,
  TransferListShape,
  type TransferView,
} from "../model/views.ts";
import { describeGiven } from "./act.ts";
import { type ActRequest, isOpenedBy, UNTRIED } from "./acting.ts";
import type { DaemonClient } from "./client.ts";
import type { OnDamagedLines } from "./history.ts";
import type { Choice, JournalEntries, Operate } from "./local.ts";
import type { MailboxRequest } from "./mailboxes.ts";

/** The daemon bounds the size of a request. */
const MAX_AT_ONCE = 100;

export class Remote implements Operate {
  readonly #daemon: DaemonClient;
  readonly #settings: Pick<Settings, "mailboxes">;

  constructor(daemon: DaemonClient, settings: Pick<Settings, "mailboxes">) {
    this.#daemon = daemon;
    this.#settings = settings;
  }

  async find(trackingId: string, mailbox: string | undefined): Promise<TransferView[]> {
    // The list names damaged records.
    const all = await Array.fromAsync(this.all({ text: trackingId }, () => {}));
    const found = all.filter((it) => it.trackingId === trackingId);
    const named = mailbox === undefined ? this.#settings.mailboxes.map(({ name }) => name) : [mailbox];
    const names = new Set(named.map(canonicalAddress));
    const wanted = found.filter((it) => names.has(canonicalAddress(it.mailbox)));
    // Its mailbox may have been removed from the configuration.
    return wanted.length === 0 && mailbox === undefined ? found : wanted;
  }

  /** Transfers may change between two pages, so some are on both. */
  async *all(
    choice: Choice,
    onDamaged: (path: string) => void,
    {
      limit = Number.POSITIVE_INFINITY,
      sort,
    }: { readonly limit?: number; readonly sort?: ListQuery["sort"] } = {},
  ): AsyncGenerator<TransferView, void, undefined> {
    const shown = new Set<string>();
    for (let page = 1, pages = 1; page <= pages; page++) {
      const found = await this.#page({ ...choice, page, size: MAX_PAGE_SIZE, sort });
      for (const path of found.damaged) onDamaged(path);
      for (const transfer of found.transfers) {
        const key = `${transfer.mailbox}\0${transfer.trackingId}`;
        if (shown.has(key)) continue;
        if (shown.size >= limit) return;
        shown.add(key);
        yield transfer;
      }
      pages = found.pages;
    }
  }

  async list(query: ListQuery): Promise<TransferList> {
    const { page, size, sort } = query;
    if (size <= MAX_PAGE_SIZE) return this.#page(query);
    const first = await this.#page({ ...query, page: 1, size: MAX_PAGE_SIZE });
    // The first page has named those that are damaged.
    const all = await Array.fromAsync(this.all(query, () => {}, { limit: page * size, sort }));
    const pages = Math.max(1, Math.ceil(first.total / size));
    return { ...first, page, size, pages, transfers: all.slice((page - 1) * size) };
  }

  async story({ mailbox, trackingId }: TransferKey): Promise<Story | undefined> {
    const story = this.#daemon.get("/api/transfers/story", { mailbox, trackingId }, StoryShape);
    return story.catch((error: unknown) => {
      if (error instanceof Fault && error.code === "NO_SUCH_TRANSFER") return undefined;
      throw error;
    });
  }

  async objectionTo(act: TransferAct, { mailbox, trackingId }: TransferKey): Promise<string | undefined> {
    const query = { act, mailbox, trackingId };
    return (await this.#daemon.get("/api/transfers/objection", query, ObjectionShape)).objection ?? undefined;
  }

  /** The daemon names the operator itself, as far as the connection tells. */
  async act(
    { act, transfers, password, isAwaited = true }: ActRequest,
    _by: Actor,
    waitMs: number,
  ): Promise<ActResult[]> {
    const results: ActResult[] = [];
    const secret = password === undefined ? {} : { password: password.reveal() };
    const endMs = performance.now() + (isAwaited ? waitMs : 0);
    for (let start = 0; start < transfers.length; start += MAX_AT_ONCE) {
      const some = transfers.slice(start, start + MAX_AT_ONCE);
      const keys = some.map(({ mailbox, trackingId }) => ({ mailbox, trackingId }));
      const leftMs = Math.ceil(Math.max(endMs - performance.now(), 0));
      const body = { action: act, transfers: keys, ...secret, wait: Math.ceil(leftMs / 1000) };
      const answer = await this.#daemon.post("/api/actions", body, API_SHAPES.ActResults, leftMs);
      results.push(...answer.results);
      const rest = transfers.slice(start + MAX_AT_ONCE);
      if (act !== "password" || rest.length === 0 || isOpenedBy(answer.results)) continue;
      results.push(...rest.map(({ mailbox, trackingId }) => ({ mailbox, trackingId, ...UNTRIED })));
      break;
    }
    if (isAwaited) return results;
    return results.map((it) =>
      it.status === 200 ? { ...it, result: "given", text: describeGiven(act, it.trackingId) } : it,
    );
  }

  async actOnMailboxes(
    { act, mailbox, isAwaited = true }: MailboxRequest,
    _by: Actor,
    waitMs: number,
  ): Promise<MailboxResult[]> {
    const wait = isAwaited ? Math.ceil(waitMs / 1000) : 0;
    const body = { action: act, mailbox, wait };
    const route = "/api/mailboxes/actions";
    return (await this.#daemon.post(route, body, API_SHAPES.MailboxResults, wait * 1000)).results;
  }

  /**
   * Each page begins where the one before ended, because the daemon bounds its answers. An entry may be on two pages: it
   * is kept once.
   */
  async history<Kind extends JournalKind>(
    kind: Kind,
    { sinceMs, untilMs, limit, changes: _changes, ...filter }: HistoryQuery,
    onDamaged: OnDamagedLines,
  ): Promise<JournalEntries<Kind>> {
    const entries = new Map<string, HistoryEntry | ActEntry>();
    const damaged = new Map<string, number>();
    for (let until = untilMs; ; ) {
      const size = Math.min(limit, MAX_PAGE_SIZE);
      const query = { kind, ...filter, since: isoOf(sinceMs), until: isoOf(until), limit: size };
      const page = await this.#daemon.get("/api/history", query, JournalPageShape);
      for (const { path, lines } of page.damaged) damaged.set(path, Math.max(lines, damaged.get(path) ?? 0));
      for (const entry of page.entries) {
        const key = keyOf(kind, entry);
        if (!entries.has(key)) entries.set(key, entry);
      }
      const last = page.entries.at(-1);
      const isOver = page.entries.length < size || entries.size >= limit;
      const next = last === undefined ? until : Date.parse(last.at) + 1;
      // A page of entries with one time would be read again and again.
      if (isOver || next === until) break;
      until = next;
    }
    for (const [path, lines] of damaged) onDamaged(path, lines);
    // The kind decides the type, which the compiler cannot follow.
    return [...entries.values()].slice(0, limit) as unknown as JournalEntries<Kind>;
  }

  #page({ sinceMs, untilMs, ...query }: ListQuery): Promise<TransferList> {
    const moments = { since: isoOf(sinceMs), until: isoOf(untilMs) };
    return this.#daemon.get("/api/transfers", { ...query, ...moments }, TransferListShape);
  }
}

/** Of `transfers`, only the newest entry of each is shown. */
function keyOf(kind: JournalKind, entry: HistoryEntry | ActEntry): string {
  if ("act" in entry) return entry.id;
  const { mailbox, trackingId, ...rest } = entry;
  return JSON.stringify([mailbox, trackingId, kind === "changes" ? rest : ""]);
}
