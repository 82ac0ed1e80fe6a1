/**
 * Questions about the past. Each may read the whole journal, so that one is answered at a time, whoever asks, and none
 * for somebody who has left.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Mutex } from "../base/concurrency.ts";
import { parseMoment } from "../base/phrases.ts";
import { STATES } from "../model/record.ts";

export interface PastTransfer {
  readonly at: string;
  readonly state: string;
  readonly mailbox: string;
  readonly trackingId: string;
  readonly sender: string;
  readonly folder?: string | undefined;
  readonly reason?: string | undefined;
}

export interface PastQuery {
  readonly search?: string;
  readonly state?: string;
  readonly sinceMs?: number;
  readonly limit?: number;
}

/** Newest first. Rejects where the signal aborts before all was read. */
export type ReadPast = (query: PastQuery, signal: AbortSignal) => Promise<readonly PastTransfer[]>;

export const LONGEST_SEARCH = 200;
const MOST_ENTRIES = 1_000;
const MOST_WAITING = 5;
const WAIT_MS = 3_000;

export class Past {
  readonly #read: ReadPast;
  readonly #mutex = new Mutex();
  #waiting = 0;

  constructor(read: ReadPast) {
    this.#read = read;
  }

  /** `undefined` where others ask too much at the moment, or the one who asks has left. */
  async ask(
    { socket }: IncomingMessage,
    response: ServerResponse,
    query: PastQuery,
  ): Promise<readonly PastTransfer[] | undefined> {
    if (this.#waiting >= MOST_WAITING) return undefined;
    const left = new AbortController();
    const leave = () => left.abort();
    // Of several requests on one connection only the first has a response that hears of its end.
    socket.once("close", leave);
    response.once("close", leave);
    this.#waiting++;
    const release = await this.#mutex.lock(AbortSignal.any([left.signal, AbortSignal.timeout(WAIT_MS)]));
    this.#waiting--;
    try {
      return release === undefined || socket.destroyed ? undefined : await this.#read(query, left.signal);
    } finally {
      release?.();
      socket.off("close", leave);
      response.off("close", leave);
    }
  }
}

/** A text says what is wrong with it. */
export function parsePastQuery(given: URLSearchParams, nowMs: number): PastQuery | string {
  const names = ["search", "state", "since", "limit"];
  const unknown = [...given.keys()].find((name) => !names.includes(name));
  if (unknown !== undefined) return `There is no parameter ${unknown}: there are ${names.join(", ")}.`;
  const [search = "", state, since, limit] = names.map((name) => given.get(name) ?? undefined);
  if (search.length > LONGEST_SEARCH) return `search must have at most ${LONGEST_SEARCH} characters.`;
  if (state !== undefined && !(STATES as readonly string[]).includes(state)) {
    return `state must be one of ${STATES.join(", ")}.`;
  }
  const sinceMs = since === undefined ? undefined : parseMoment(since, nowMs);
  if (since !== undefined && sinceMs === undefined) {
    return "since must be so long ago (30m, 12h, 7d, 4w), a date (2026-03-01) or a moment (2026-03-01T14:30Z).";
  }
  const count = limit === undefined ? undefined : Number(limit);
  if (count !== undefined && !(/^\d{1,6}$/.test(limit ?? "") && count >= 1 && count <= MOST_ENTRIES)) {
    return `limit must be a number from 1 to ${MOST_ENTRIES}.`;
  }
  return {
    ...(search === "" ? {} : { search }),
    ...(state === undefined ? {} : { state }),
    ...(sinceMs === undefined ? {} : { sinceMs }),
    ...(count === undefined ? {} : { limit: count }),
  };
}
