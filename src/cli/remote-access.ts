/** Reaches transfers through the daemon's Unix socket. Its users need no access to the folders. */
import { type IncomingMessage, request } from "node:http";
import { text } from "node:stream/consumers";
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import type { Story } from "../daemon/story.ts";
import type { ListedTransfer, PageRequest, TransferFilter, TransferPage } from "../daemon/transfers.ts";
import type { TransferAct } from "../model/order.ts";
import type { TransferKey } from "../model/record.ts";
import type { Access, ActRequest, ActResult } from "./access.ts";
import { nameOfUser } from "./actor.ts";
import type { Context } from "./context.ts";

const TIMEOUT_MS = 30_000;
const PAGE_SIZE = 200;
/** The daemon bounds the size of a request. */
const MAX_AT_ONCE = 100;

const TransferShape = v.looseObject({
  mailbox: v.string(),
  trackingId: v.string(),
  sender: v.string(),
  state: v.string(),
});
const PageShape = v.looseObject({
  total: v.number(),
  page: v.number(),
  pages: v.number(),
  size: v.number(),
  transfers: v.array(TransferShape),
});
const StoryShape = v.looseObject({
  ...TransferShape.entries,
  rounds: v.array(v.unknown()),
  commands: v.array(v.string()),
});
const ErrorShape = v.looseObject({ error: v.string() });
const ResultsShape = v.object({
  results: v.array(
    v.looseObject({
      mailbox: v.string(),
      trackingId: v.string(),
      status: v.number(),
      text: v.string(),
      state: v.optional(v.string()),
      reason: v.optional(v.string()),
      result: v.picklist(["fine", "attention", "pending", "refused"]),
    }),
  ),
});

interface Answer {
  readonly status: number;
  readonly body: string;
}

export class RemoteAccess implements Access {
  readonly #context: Context;
  readonly #socketPath: string;

  constructor(context: Context, socketPath: string) {
    this.#context = context;
    this.#socketPath = socketPath;
  }

  /** Whether a daemon answers at the socket, and this user may open it. */
  async isReachable(): Promise<boolean> {
    return (await this.#send("GET", "/healthz").catch(() => undefined)) !== undefined;
  }

  async find(trackingId: string, mailbox: string | undefined): Promise<ListedTransfer[]> {
    const { transfers } = await this.#page({ ids: [trackingId] }, { page: 1, size: PAGE_SIZE });
    return transfers.filter((it) => it.trackingId === trackingId && (mailbox ?? it.mailbox) === it.mailbox);
  }

  async select(filter: TransferFilter, act: TransferAct): Promise<ListedTransfer[]> {
    const isWaiting = act === "password" || act === "grant";
    const wanted: TransferFilter = isWaiting ? { ...filter, state: "waiting", reason: "password" } : filter;
    return Array.fromAsync(this.all(wanted));
  }

  async *all(filter: TransferFilter): AsyncGenerator<ListedTransfer, void, undefined> {
    for (let page = 1, pages = 1; page <= pages; page++) {
      const found = await this.#page(filter, { page, size: PAGE_SIZE });
      yield* found.transfers;
      pages = found.pages;
    }
  }

  list(filter: TransferFilter, page: PageRequest): Promise<TransferPage> {
    return this.#page(filter, page);
  }

  async story({ mailbox, trackingId }: TransferKey): Promise<Story | undefined> {
    const query = new URLSearchParams({ mailbox, trackingId });
    const answer = await this.#send("GET", `/api/transfers/story?${query}`);
    return answer.status === 404 ? undefined : (this.#parse(StoryShape, answer) as unknown as Story);
  }

  /** The daemon decides when it gets the act. */
  async objectionTo(): Promise<undefined> {}

  async act({ act, transfers, password, waitMs }: ActRequest): Promise<ActResult[]> {
    const results: ActResult[] = [];
    const wait = waitMs === undefined ? {} : { wait: Math.ceil(waitMs / 1000) };
    const secret = password === undefined ? {} : { password: password.reveal() };
    for (let start = 0; start < transfers.length; start += MAX_AT_ONCE) {
      const some = transfers.slice(start, start + MAX_AT_ONCE);
      const keys = some.map(({ mailbox, trackingId }) => ({ mailbox, trackingId }));
      const body = { action: act, transfers: keys, ...secret, ...wait };
      const answer = await this.#send("POST", "/api/actions", body, (waitMs ?? 0) + TIMEOUT_MS);
      results.push(...this.#parse(ResultsShape, answer).results);
    }
    if (waitMs !== undefined) return results;
    return results.map((it) => (it.result === "pending" ? { ...it, result: "given" } : it));
  }

  async #page(filter: TransferFilter, { page, size, sort }: PageRequest): Promise<TransferPage> {
    const { ids, ...texts } = filter;
    const given = { ...texts, ids: ids?.join(","), page, size, sort };
    const entries = Object.entries(given).filter(([, value]) => value !== undefined);
    const query = new URLSearchParams(entries.map(([key, value]): [string, string] => [key, String(value)]));
    const answer = await this.#send("GET", `/api/transfers?${query}`);
    return this.#parse(PageShape, answer) as unknown as TransferPage;
  }

  /** The answer is not trusted: any program may listen there. Throws `PERMISSION_DENIED` and `DAEMON_UNREACHABLE`. */
  #parse<Schema extends v.GenericSchema>(schema: Schema, { status, body }: Answer): v.InferOutput<Schema> {
    const json = parseJson(body);
    const result = v.safeParse(schema, json);
    if (status === 200 && result.success) return result.output;
    const refusal = v.safeParse(ErrorShape, json);
    const where = `the daemon at ${this.#socketPath}`;
    if (status === 401 || status === 403 || status === 404) {
      const why = refusal.success ? refusal.output.error : "it takes no orders";
      throw new Fault("PERMISSION_DENIED", { detail: `${where} refuses: ${why}` });
    }
    const detail = refusal.success ? refusal.output.error : `status ${status}`;
    throw new Fault("DAEMON_UNREACHABLE", { detail: `${where}: ${detail}` });
  }

  async #send(method: "GET" | "POST", path: string, body?: object, timeoutMs = TIMEOUT_MS): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const content = body === undefined ? undefined : JSON.stringify(body);
    const signal = AbortSignal.any([this.#context.stop, AbortSignal.timeout(timeoutMs)]);
    const headers = {
      host: "localhost",
      // The socket does not say who opened it: the daemon records this name as claimed.
      "inlet-user": encodeURIComponent(nameOfUser()),
      ...(content === undefined
        ? {}
        : { "content-type": "application/json", "content-length": Buffer.byteLength(content) }),
    };
    const receive = (response: IncomingMessage) =>
      text(response).then((answer) => resolve({ status: response.statusCode ?? 0, body: answer }), reject);
    request({ socketPath: this.#socketPath, method, path, headers, agent: false, signal }, receive)
      .once("error", reject)
      .end(content);
    return promise.catch((cause: unknown) => {
      if (this.#context.stop.aborted) throw new Fault("STOPPED", { cause });
      throw new Fault("DAEMON_UNREACHABLE", { detail: this.#socketPath, cause });
    });
  }
}

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
