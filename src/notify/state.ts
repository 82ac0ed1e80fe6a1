/**
 * The notices of one channel, and how far it has read the journal. They change only by changes of notices and by messages.
 * The first notices of each kind are kept with details, and all others as keys, so 50,000 of them need little memory.
 */
import * as v from "valibot";
import type { Positions } from "../base/tail.ts";
import { NOTICE_KINDS, type NoticeKind } from "../model/notify.ts";
import { isOfService, type Notice, type NoticeChange, NoticeShape, overOf, serviceKey } from "./notices.ts";
import { NEVER_SENT, type SentTimes } from "./schedule.ts";

/** Notices of one kind for one message. */
export interface NoticeGroup {
  readonly kind: NoticeKind;
  readonly isOver: boolean;
  /** How many there are, including those without details. */
  readonly count: number;
  readonly notices: readonly Notice[];
}

/** The content of a message, and the keys of the counted notices that it covers. */
export interface Batch {
  readonly groups: readonly NoticeGroup[];
  readonly counted: readonly string[];
}

/** Details kept per kind. */
const MAX_DETAILS = 100;
/** Beyond this, the oldest reported notices are forgotten, and may be sent again. */
const MAX_KEYS = 50_000;
/** Mailboxes that a notice about a service names. */
const MAX_NAMED = 20;
/** A notice that was reported, and still holds. */
const REPORTED = "reported";

const Keys = v.array(v.string());

const SavedShape = v.object({
  version: v.literal(3),
  positions: v.array(v.tuple([v.string(), v.number()])),
  sent: v.object({ lastSentMs: v.number(), lastUrgentMs: v.number() }),
  notices: v.array(v.tuple([v.string(), v.picklist([...NOTICE_KINDS, REPORTED])])),
  details: v.array(NoticeShape),
  owners: v.array(v.tuple([v.string(), Keys])),
});

const MAX_ENDED = 1_000;

export class ChannelState {
  /** Increases with each change, except of the positions. */
  revision = 0;
  positions: Positions = new Map();
  #sent: SentTimes = NEVER_SENT;
  /** By key: the kind of a pending notice, or `REPORTED`. */
  readonly #notices = new Map<string, NoticeKind | typeof REPORTED>();
  /** Of pending notices, by key. */
  readonly #details = new Map<string, Notice>();
  /** By key of a trouble: the processes that have it, or the mailboxes that cannot be polled because of it. */
  readonly #owners = new Map<string, Set<string>>();

  /**
   * When a process had each trouble last. A change is applied at once, and its line is read later: the line of a beginning
   * must not bring back what has ended since. Not saved: after a start, lines are read in order.
   */
  readonly #ended = new Map<string, number>();

  get sent(): SentTimes {
    return this.#sent;
  }

  /** The processes that have a trouble of their own. */
  get processes(): string[] {
    return [...this.#owners].flatMap(([key, owners]) => (isOfService(key) ? [] : [...owners]));
  }

  /** A change that was applied before has no effect. */
  apply(change: NoticeChange): void {
    if (change.type === "begin") this.#begin(change.notice, change.by);
    else if (change.type === "end") this.#end(change.notice, change.by);
    else if (change.type === "settle") for (const key of change.keys) this.#delete(key);
    else if (change.type === "failed") this.#fail(change);
    else this.#endFailure(change.mailbox, (key) => this.#end(overOf(key, change.atMs)));
  }

  /** The process has ended. The disk may still be full: that trouble is over with the next delivery. */
  release(process: string, nowMs: number): void {
    for (const key of [...this.#owners.keys()]) {
      if (this.#disown(key, process) && key !== "disk") this.#end(overOf(key, nowMs));
    }
  }

  /** Forgets mailboxes that are no longer polled, and the troubles that only they had. */
  keepPolled(isPolled: (mailbox: string) => boolean): void {
    const failing = [...this.#owners].flatMap(([key, owners]) => (isOfService(key) ? [...owners] : []));
    for (const mailbox of failing.filter((each) => !isPolled(each))) {
      this.#endFailure(mailbox, (key) => this.#delete(key));
    }
  }

  /** Pending notices, to compute the time of the next message. A kind without details has a placeholder. */
  details(): Notice[] {
    return this.#pending().flatMap(({ kind, details, counted }) =>
      details.length === 0 && counted.length > 0 ? [placeholderFor(kind)] : details,
    );
  }

  /** All notices that are ready to be sent and allowed. */
  select(nowMs: number, isAllowed: (notice: Notice) => boolean): Batch {
    const chosen = this.#pending().map(({ kind, details, counted }) => {
      const notices = details.filter((notice) => notice.atMs <= nowMs && isAllowed(notice));
      // The counted ones are included only if all with details are.
      const hasAll =
        details.length === 0 ? isAllowed(placeholderFor(kind)) : notices.length === details.length;
      return { kind, notices, counted: hasAll ? counted : [] };
    });
    const groups = chosen.flatMap(({ kind, notices, counted }) =>
      [false, true].map((isOver) => {
        const shown = notices.filter((notice) => (notice.isOver === true) === isOver);
        return { kind, isOver, count: shown.length + (isOver ? 0 : counted.length), notices: shown };
      }),
    );
    return {
      groups: groups.filter(({ count }) => count > 0),
      counted: chosen.flatMap(({ counted }) => counted),
    };
  }

  /** A message with these notices was sent. Nothing has changed since `select`. */
  report({ groups, counted }: Batch, sent: SentTimes): void {
    const notices = groups.flatMap((group) => group.notices);
    for (const { key } of notices) this.#details.delete(key);
    for (const key of [...notices.map(({ key }) => key), ...counted]) this.#notices.set(key, REPORTED);
    for (const { key, isOver } of notices) if (isOver) this.#notices.delete(key);
    this.#sent = sent;
    this.revision++;
  }

  clone(): ChannelState {
    const copy = ChannelState.parse(this.serialize()) ?? new ChannelState();
    copy.revision = this.revision;
    for (const [key, atMs] of this.#ended) copy.#ended.set(key, atMs);
    return copy;
  }

  serialize(): string {
    const saved: v.InferOutput<typeof SavedShape> = {
      version: 3,
      positions: [...this.positions],
      sent: this.#sent,
      notices: [...this.#notices],
      details: [...this.#details.values()],
      owners: [...this.#owners].map(([key, owners]) => [key, [...owners]]),
    };
    return JSON.stringify(saved);
  }

  /** `undefined` if the text is damaged or of another version. */
  static parse(text: string): ChannelState | undefined {
    try {
      const saved = v.parse(SavedShape, JSON.parse(text));
      const state = new ChannelState();
      state.positions = new Map(saved.positions);
      state.#sent = saved.sent;
      for (const [key, kind] of saved.notices) state.#notices.set(key, kind);
      for (const notice of saved.details) state.#details.set(notice.key, notice);
      for (const [key, owners] of saved.owners) state.#owners.set(key, new Set(owners));
      return state;
    } catch {
      return undefined;
    }
  }

  #begin(notice: Notice, by?: string): void {
    const { key, isTrouble } = notice;
    if (by !== undefined && (this.#ended.get(`${key} ${by}`) ?? 0) > notice.atMs) return;
    const owners = this.#owners.get(key) ?? new Set();
    if (by !== undefined && !owners.has(by)) {
      this.#owners.set(key, owners.add(by));
      this.revision++;
    }
    const { count, atMs } = this.#details.get(key) ?? notice;
    // One more mailbox has this trouble.
    if (count !== notice.count) this.#add({ ...notice, atMs: Math.min(notice.atMs, atMs) });
    if (this.#notices.has(key)) return;
    // If the end of this trouble is still pending, neither the end nor the new beginning is reported.
    if (isTrouble && this.#delete(overKey(key))) this.#notices.set(key, REPORTED);
    else this.#add(notice);
  }

  #end(over: Notice, by?: string): void {
    const { key } = over;
    if (by !== undefined) {
      this.#disown(key, by);
      if (this.#ended.size >= MAX_ENDED) this.#ended.clear();
      this.#ended.set(`${key} ${by}`, over.atMs);
    }
    if (this.#owners.has(key)) return;
    const wasReported = this.#notices.get(key) === REPORTED;
    this.#delete(key);
    if (wasReported) this.#add({ ...over, key: overKey(key) });
  }

  #fail({ mailbox, service, cause, atMs, waitMs, text, advice }: NoticeChange & { type: "failed" }): void {
    const key = serviceKey(service, cause);
    if (this.#owners.get(key)?.has(mailbox)) return;
    this.#endFailure(mailbox, (past) => this.#delete(past));
    const mailboxes = [...(this.#owners.get(key) ?? []), mailbox];
    const facts = {
      service,
      count: mailboxes.length,
      mailboxes: mailboxes.slice(0, MAX_NAMED),
      text,
      advice,
    };
    this.#begin({ kind: "service", key, atMs: atMs + waitMs, isTrouble: true, ...facts }, mailbox);
  }

  /** The mailbox no longer has its trouble. `end` is called if no other mailbox has it. */
  #endFailure(mailbox: string, end: (key: string) => void): void {
    for (const key of [...this.#owners.keys()].filter(isOfService)) {
      if (this.#disown(key, mailbox) && !this.#owners.has(key)) end(key);
    }
  }

  #disown(key: string, process: string): boolean {
    const owners = this.#owners.get(key);
    if (!owners?.delete(process)) return false;
    if (owners.size === 0) this.#owners.delete(key);
    this.revision++;
    return true;
  }

  #add(notice: Notice): void {
    const { kind, key, isTrouble, isOver } = notice;
    const details = [...this.#details.values()].filter((each) => each.kind === kind).length;
    if (isTrouble || isOver || details < MAX_DETAILS) this.#details.set(key, notice);
    this.#notices.set(key, kind);
    this.revision++;
    const oldest = this.#notices.size > MAX_KEYS && this.#notices.entries().find(([, it]) => it === REPORTED);
    if (this.#notices.size > MAX_KEYS) this.#delete(oldest ? oldest[0] : key);
  }

  #delete(key: string): boolean {
    this.#details.delete(key);
    if (!this.#notices.delete(key)) return false;
    this.revision++;
    return true;
  }

  /** The pending notices of each kind: those with details, and the keys of the others. */
  #pending(): { kind: NoticeKind; details: Notice[]; counted: string[] }[] {
    const pending = NOTICE_KINDS.map((kind) => ({ kind, details: [] as Notice[], counted: [] as string[] }));
    const ofKind = new Map<string, (typeof pending)[number]>(pending.map((each) => [each.kind, each]));
    for (const [key, kind] of this.#notices) {
      const notice = this.#details.get(key);
      if (notice === undefined) ofKind.get(kind)?.counted.push(key);
      else ofKind.get(kind)?.details.push(notice);
    }
    return pending;
  }
}

/** Represents notices without details. */
export function placeholderFor(kind: NoticeKind): Notice {
  return { kind, key: "", atMs: 0 };
}

function overKey(key: string): string {
  return `${key} over`;
}
