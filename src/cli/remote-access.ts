/** Reaches transfers through the daemon's Unix socket. Its users need no access to the folders. */
import * as v from "valibot";
import type { Settings } from "../config/settings.ts";
import { describeGiven } from "../daemon/acts.ts";
import type { TransferAct } from "../model/order.ts";
import type { TransferKey } from "../model/record.ts";
import { canonicalAddress } from "../model/transfer.ts";
import {
  type ActResult,
  ActResultShape,
  type ListQuery,
  MAX_PAGE_SIZE,
  ObjectionShape,
  type PageRequest,
  type Story,
  StoryShape,
  type TransferFilter,
  type TransferList,
  TransferListShape,
  type TransferView,
} from "../model/views.ts";
import { type Access, type ActRequest, demandOneService } from "./access.ts";
import type { DaemonSocket } from "./daemon-socket.ts";

/** The daemon bounds the size of a request. */
const MAX_AT_ONCE = 100;

const ResultsShape = v.object({ results: v.array(ActResultShape) });

export class RemoteAccess implements Access {
  readonly #socket: DaemonSocket;
  readonly #settings: Settings;

  constructor(socket: DaemonSocket, settings: Settings) {
    this.#socket = socket;
    this.#settings = settings;
  }

  async find(trackingId: string, mailbox: string | undefined): Promise<TransferView[]> {
    const { transfers } = await this.#page({ ids: [trackingId], page: 1, size: MAX_PAGE_SIZE });
    const found = transfers.filter((it) => it.trackingId === trackingId);
    const named = mailbox === undefined ? this.#settings.mailboxes.map(({ name }) => name) : [mailbox];
    const names = new Set(named.map(canonicalAddress));
    const wanted = found.filter((it) => names.has(canonicalAddress(it.mailbox)));
    // Its mailbox may have been removed from the configuration.
    return wanted.length === 0 && mailbox === undefined ? found : wanted;
  }

  async select(filter: TransferFilter, act: TransferAct): Promise<TransferView[]> {
    // The daemon reports damaged records, and so does doctor.
    return Array.fromAsync(this.#all({ ...filter, act }, () => {}));
  }

  all(
    filter: TransferFilter,
    onDamaged: (path: string) => void,
  ): AsyncGenerator<TransferView, void, undefined> {
    return this.#all(filter, onDamaged);
  }

  async list(filter: TransferFilter, { page, size, sort }: PageRequest): Promise<TransferList> {
    const order = sort === undefined ? {} : { sort };
    if (size <= MAX_PAGE_SIZE) return this.#page({ ...filter, page, size, ...order });
    const first = await this.#page({ ...filter, page: 1, size: MAX_PAGE_SIZE, ...order });
    // The first page has named them.
    const all = await Array.fromAsync(this.#all({ ...filter, ...order }, () => {}, page * size));
    const transfers = all.slice((page - 1) * size);
    return { ...first, page, size, pages: Math.max(1, Math.ceil(first.total / size)), transfers };
  }

  async story({ mailbox, trackingId }: TransferKey): Promise<Story | undefined> {
    return this.#socket.tryGet("/api/transfers/story", { mailbox, trackingId }, StoryShape);
  }

  async objectionTo(act: TransferAct, { mailbox, trackingId }: TransferKey): Promise<string | undefined> {
    const query = { act, mailbox, trackingId };
    return (await this.#socket.get("/api/transfers/objection", query, ObjectionShape)).objection ?? undefined;
  }

  async act({ act, transfers, password, waitMs }: ActRequest): Promise<ActResult[]> {
    if (password !== undefined) demandOneService(this.#settings, transfers);
    const results: ActResult[] = [];
    const secret = password === undefined ? {} : { password: password.reveal() };
    const endMs = performance.now() + (waitMs ?? 0);
    for (let start = 0; start < transfers.length; start += MAX_AT_ONCE) {
      const some = transfers.slice(start, start + MAX_AT_ONCE);
      const keys = some.map(({ mailbox, trackingId }) => ({ mailbox, trackingId }));
      const leftMs = Math.ceil(Math.max(endMs - performance.now(), 0));
      const body = { action: act, transfers: keys, ...secret, wait: Math.ceil(leftMs / 1000) };
      results.push(...(await this.#socket.post("/api/actions", body, ResultsShape, leftMs)).results);
    }
    if (waitMs !== undefined) return results;
    return results.map((it) =>
      it.status === 200 ? { ...it, result: "given", text: describeGiven(act, it.trackingId) } : it,
    );
  }

  /** At most `limit`, the newest first. Transfers may change between two pages, so some are on both. */
  async *#all(
    query: Omit<ListQuery, "page" | "size">,
    onDamaged: (path: string) => void,
    limit = Number.POSITIVE_INFINITY,
  ): AsyncGenerator<TransferView, void, undefined> {
    const shown = new Set<string>();
    for (let page = 1, pages = 1; page <= pages; page++) {
      const found = await this.#page({ ...query, page, size: MAX_PAGE_SIZE });
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

  #page({ ids, ...query }: ListQuery): Promise<TransferList> {
    return this.#socket.get("/api/transfers", { ...query, ids: ids?.join(",") }, TransferListShape);
  }
}
