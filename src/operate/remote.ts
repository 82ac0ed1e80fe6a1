/** Asks the daemon through its Unix socket. Its users need no access to the folders. */
import { Fault } from "../base/faults.ts";
import { isoOf } from "../base/phrases.ts";
import { findMailbox } from "../config/mailboxes.ts";
import type { Settings } from "../config/settings.ts";
import { nameOf } from "../ledger/paths.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import { type JournalKind, type ListQuery, MAX_PAGE_SIZE } from "../model/queries.ts";
import type { TransferKey } from "../model/record.ts";
import type {
  ActResult,
  Journal,
  JournalQuery,
  MailboxResult,
  Story,
  TransferList,
  TransferView,
} from "../model/views.ts";
import { type ActRequest, describeGiven, isOpenedBy, UNTRIED } from "./acting.ts";
import type { DaemonClient } from "./client.ts";
import { keyOf } from "./history.ts";
import { countPages } from "./list.ts";
import type { Choice, Operate } from "./local.ts";
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
    const { mailboxes } = this.#settings;
    const named =
      mailbox === undefined ? mailboxes : [mailboxes[findMailbox(mailboxes, mailbox)] ?? { name: mailbox }];
    const wanted = found.filter((it) => mailboxOf(named, it) !== undefined);
    // Its mailbox may have been removed from the configuration.
    return wanted.length === 0 && mailbox === undefined ? found : wanted;
  }

  /** Transfers may change between two pages, so some are on both. */
  async *all(
    choice: Choice & Pick<ListQuery, "sort">,
    onDamaged: (path: string) => void,
  ): AsyncGenerator<TransferView, void, undefined> {
    const shown = new Set<string>();
    for (let page = 1, pages = 1; page <= pages; page++) {
      const found = await this.#page({ ...choice, page, size: MAX_PAGE_SIZE });
      for (const path of found.damaged) onDamaged(path);
      for (const transfer of found.transfers) {
        const name = nameOf(transfer);
        if (!shown.has(name)) yield transfer;
        shown.add(name);
      }
      pages = found.pages;
    }
  }

  async list(query: ListQuery): Promise<TransferList> {
    const { page, size } = query;
    if (size <= MAX_PAGE_SIZE) return this.#page(query);
    const first = await this.#page({ ...query, page: 1, size: 1 });
    const transfers: TransferView[] = [];
    // The first page has named those that are damaged.
    for await (const transfer of this.all(query, () => {})) {
      if (transfers.push(transfer) >= page * size) break;
    }
    const pages = countPages(first.total, size);
    return { ...first, page, size, pages, transfers: transfers.slice((page - 1) * size) };
  }

  async #page({ sinceMs, untilMs, ...query }: ListQuery): Promise<TransferList> {
    const moments = { since: isoOf(sinceMs), until: isoOf(untilMs) };
    // Without a group, the daemon answers with transfers of this type.
    return (await this.#daemon.get("/api/transfers", { ...query, ...moments })) as TransferList;
  }

  async story({ mailbox, trackingId }: TransferKey): Promise<Story | undefined> {
    const story = this.#daemon.get("/api/transfers/story", { mailbox, trackingId });
    return story.catch((error: unknown) => {
      if (error instanceof Fault && error.code === "NO_SUCH_TRANSFER") return undefined;
      throw error;
    });
  }

  async objectionTo(act: TransferAct, { mailbox, trackingId }: TransferKey): Promise<string | undefined> {
    const query = { act, mailbox, trackingId };
    return (await this.#daemon.get("/api/transfers/objection", query)).objection ?? undefined;
  }

  /** The daemon names the operator itself, as far as the connection tells. */
  async act(
    { act, transfers, password, isAwaited = true }: ActRequest,
    _by: Actor,
    waitMs: number,
  ): Promise<ActResult[]> {
    const results: ActResult[] = [];
    const keys = transfers.map(({ mailbox, trackingId }) => ({ mailbox, trackingId }));
    const endMs = performance.now() + (isAwaited ? waitMs : 0);
    while (results.length < keys.length) {
      const some = keys.slice(results.length, results.length + MAX_AT_ONCE);
      const leftMs = Math.ceil(Math.max(endMs - performance.now(), 0));
      const body = {
        action: act,
        transfers: some,
        password: password?.reveal(),
        wait: Math.ceil(leftMs / 1000),
      };
      const answer = await this.#daemon.post("/api/actions", body, leftMs);
      results.push(...answer.results);
      if (act !== "password" || isOpenedBy(answer.results)) continue;
      results.push(...keys.slice(results.length).map((key) => ({ ...key, ...UNTRIED })));
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
    return (await this.#daemon.post("/api/mailboxes/actions", body, wait * 1000)).results;
  }

  /**
   * Each page begins where the one before ended, because the daemon bounds its answers. An entry may be on two pages: it
   * is kept once.
   */
  async history<Kind extends JournalKind>(
    kind: Kind,
    { sinceMs, untilMs, limit, ...filter }: JournalQuery,
  ): Promise<Journal<Kind>> {
    const entries = new Map<string, Journal["entries"][number]>();
    const damaged = new Map<string, Journal["damaged"][number]>();
    const size = Math.min(limit, MAX_PAGE_SIZE);
    for (let until = untilMs; ; ) {
      const query = { kind, ...filter, since: isoOf(sinceMs), until: isoOf(until), limit: size };
      const page = await this.#daemon.get("/api/history", query);
      for (const file of page.damaged)
        if (file.lines > (damaged.get(file.path)?.lines ?? 0)) damaged.set(file.path, file);
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
    const first = [...entries.values()].slice(0, limit);
    // The kind decides the type, which the compiler cannot follow.
    return { entries: first as unknown as Journal<Kind>["entries"], damaged: [...damaged.values()] };
  }
}
