/**
 * The notices of one channel, and how far it has read the journal. They change only by changes of notices and by messages.
 * The first pending notices of each kind are kept with details, and the others without, so 50,000 of them need little memory.
 */

import * as v from "valibot";
import { parseAs } from "../base/json.ts";
import type { Positions } from "../base/tail.ts";
import { NOTICE_KINDS, type NoticeKind } from "../model/notify.ts";
import { mailboxIn, type Notice, type NoticeChange, NoticeShape } from "./notices.ts";
import { NEVER_SENT, type SentTimes } from "./schedule.ts";

/** Details kept per kind. */
const MAX_DETAILS = 100;
/** Pending notices of each kind; and reported ones, of which the oldest are forgotten, and may be sent again. */
const MAX_KEYS = 50_000;
/** Processes whose last change is known. */
const MAX_PROCESSES = 100;

const Numbers = v.array(v.tuple([v.string(), v.number()]));

const SavedShape = v.object({
  version: v.literal(4),
  positions: Numbers,
  applied: Numbers,
  sent: v.object({ lastSentMs: v.number(), lastUrgentMs: v.number() }),
  pending: v.array(NoticeShape),
  reported: v.array(NoticeShape),
  owners: v.array(v.tuple([v.string(), v.array(v.string())])),
});

export class ChannelState {
  /** Increases with each change of notices. */
  revision = 0;
  positions: Positions = new Map();
  /** Of each process, the number of its last change: it was applied at once, and its line in the journal is read later. */
  readonly #applied = new Map<string, number>();
  sent: SentTimes = NEVER_SENT;
  /** By kind and key. */
  readonly #pending = Object.fromEntries(
    NOTICE_KINDS.map((kind) => [kind, new Map<string, Notice>()]),
  ) as Readonly<Record<NoticeKind, Map<string, Notice>>>;
  /** Notices that were reported and still hold, by key. */
  readonly #reported = new Map<string, Notice>();
  /** By key of a notice: the processes or mailboxes that have it. */
  readonly #owners = new Map<string, Set<string>>();

  /** The processes that have a trouble of their own. */
  get processes(): string[] {
    return this.#allOwners().filter((owner) => mailboxIn(owner) === undefined);
  }

  /** A change that was applied before has no effect. */
  apply({ begin, end, by, atMs, process = "", seq = Number.POSITIVE_INFINITY }: NoticeChange): void {
    if (seq <= (this.#applied.get(process) ?? 0)) return;
    if (process !== "") this.#applied.set(process, seq);
    dropOldest(this.#applied, MAX_PROCESSES);
    for (const words of end) {
      const isReplaced = begin.some(({ key }) => beginsWith(key, words));
      const keys = by === undefined ? [words] : this.#keysOf(by).filter((key) => beginsWith(key, words));
      // What ends and begins in one change goes on.
      const ended = keys.filter((key) => !begin.some((notice) => notice.key === key));
      for (const key of ended) this.#end(key, by, isReplaced ? undefined : atMs);
    }
    for (const notice of begin) this.#begin(notice, by);
  }

  /** Ends the notices of a process that has ended. The disk may still be full: that trouble ends with the next delivery. */
  release(process: string, nowMs: number): void {
    for (const key of this.#keysOf(process)) {
      if (key === "disk") this.#disown(key, process);
      else this.#end(key, process, nowMs);
    }
  }

  /** Forgets mailboxes that are no longer polled, and the notices that only they had. */
  keepPolled(isPolled: (mailbox: string) => boolean): void {
    for (const owner of this.#allOwners()) {
      const mailbox = mailboxIn(owner);
      if (mailbox === undefined || isPolled(mailbox)) continue;
      for (const key of this.#keysOf(owner)) this.#end(key, owner, undefined);
    }
  }

  pending(): Notice[] {
    const all = Object.values(this.#pending).flatMap((notices) => [...notices.values()]);
    return all.map((notice) => {
      if (notice.service === undefined) return notice;
      const owners = [...(this.#owners.get(notice.key) ?? [])];
      return { ...notice, mailboxes: owners.flatMap((owner) => mailboxIn(owner) ?? []) };
    });
  }

  /** A message with these pending notices is being sent. */
  report(notices: readonly Notice[]): void {
    for (const notice of notices) {
      this.#pending[notice.kind].delete(notice.key);
      if (!notice.isOver) this.#remember(notice);
    }
    this.revision++;
  }

  /** The message was not accepted: its notices are pending again, unless their troubles have changed meanwhile. */
  takeBack(notices: readonly Notice[]): void {
    for (const notice of notices) {
      const { kind, key, isOver = false } = notice;
      const pending = this.#pending[kind];
      const later = pending.get(key);
      if (later !== undefined && (later.isOver ?? false) !== isOver) {
        // The receiver knows neither this notice nor the later one, which is its opposite: together they say nothing new.
        pending.delete(key);
        if (isOver) this.#remember(later);
      } else if (isOver || this.#reported.delete(key)) pending.set(key, notice);
    }
    this.revision++;
  }

  serialize(): string {
    const saved: v.InferOutput<typeof SavedShape> = {
      version: 4,
      positions: [...this.positions],
      applied: [...this.#applied],
      sent: this.sent,
      pending: Object.values(this.#pending).flatMap((notices) => [...notices.values()]),
      reported: [...this.#reported.values()],
      owners: [...this.#owners].map(([key, owners]) => [key, [...owners]]),
    };
    return JSON.stringify(saved);
  }

  /** `undefined` if the text is damaged or of another version. */
  static parse(text: string): ChannelState | undefined {
    const saved = parseAs(SavedShape, text);
    if (saved === undefined) return undefined;
    const state = new ChannelState();
    state.positions = new Map(saved.positions);
    for (const [process, seq] of saved.applied) state.#applied.set(process, seq);
    state.sent = saved.sent;
    for (const notice of saved.pending) state.#pending[notice.kind].set(notice.key, notice);
    for (const notice of saved.reported) state.#reported.set(notice.key, notice);
    for (const [key, owners] of saved.owners) state.#owners.set(key, new Set(owners));
    return state;
  }

  #begin(notice: Notice, by: string | undefined): void {
    const { kind, key } = notice;
    const owners = this.#owners.get(key) ?? new Set();
    if (by !== undefined && !owners.has(by)) {
      this.#owners.set(key, owners.add(by));
      this.revision++;
    }
    const known = this.#pending[kind].get(key);
    if (known?.isOver) {
      // Neither the end, which is still pending, nor the new beginning is reported.
      this.#pending[kind].delete(key);
      this.#remember(notice);
      this.revision++;
    } else if (known === undefined && !this.#reported.has(key)) this.#add(notice);
  }

  /** Reports the end of a trouble if its beginning was reported. `atMs`: missing if it is not to be reported. */
  #end(key: string, by: string | undefined, atMs: number | undefined): void {
    if (by !== undefined) this.#disown(key, by);
    if (this.#owners.has(key)) return;
    for (const pending of Object.values(this.#pending)) {
      if (pending.get(key)?.isOver !== true && pending.delete(key)) this.revision++;
    }
    const notice = this.#reported.get(key);
    if (notice === undefined) return;
    this.#reported.delete(key);
    this.revision++;
    if (notice.isTrouble && atMs !== undefined) this.#add(overOf(notice, atMs));
  }

  #add(notice: Notice): void {
    const pending = this.#pending[notice.kind];
    if (pending.size >= MAX_KEYS) return;
    const isDetailed = notice.isTrouble || pending.size < MAX_DETAILS;
    pending.set(notice.key, isDetailed ? notice : withoutDetails(notice));
    this.revision++;
  }

  #remember(notice: Notice): void {
    this.#reported.set(notice.key, notice.isTrouble ? notice : withoutDetails(notice));
    dropOldest(this.#reported, MAX_KEYS);
  }

  #allOwners(): string[] {
    return [...this.#owners.values()].flatMap((owners) => [...owners]);
  }

  #keysOf(owner: string): string[] {
    return [...this.#owners].flatMap(([key, owners]) => (owners.has(owner) ? [key] : []));
  }

  #disown(key: string, owner: string): void {
    const owners = this.#owners.get(key);
    if (owners?.delete(owner)) this.revision++;
    if (owners?.size === 0) this.#owners.delete(key);
  }
}

function beginsWith(key: string, words: string): boolean {
  return key === words || key.startsWith(`${words} `);
}

/** It may be sent at once. */
function withoutDetails({ kind, key }: Notice): Notice {
  return { kind, key, atMs: 0 };
}

/** The text of an expected transfer says what has arrived; any other says only what was wrong. */
function overOf({ kind, key, mailbox, service, text }: Notice, atMs: number): Notice {
  const facts = { kind, key, mailbox, service, text: kind === "overdue" ? text : undefined };
  return { ...facts, atMs, isTrouble: true, isOver: true };
}

function dropOldest(map: Map<string, unknown>, maxSize: number): void {
  if (map.size <= maxSize) return;
  const [oldest = ""] = map.keys();
  map.delete(oldest);
}
