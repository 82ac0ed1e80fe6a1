/**
 * The notices of one way: pending ones, and the keys of all that were notified. Details are kept of the first ones of
 * each kind, and the others are counted, so 50,000 equal ones need little memory.
 */
import * as v from "valibot";
import { NOTICE_KINDS, type NoticeKind } from "../model/notify.ts";
import { type Notice, type NoticeChanges, NoticeShape } from "./notices.ts";

/** Details kept per kind. */
const MAX_DETAILS = 100;
/** Keys of pending and of notified ones. Beyond these limits an old one may be notified again. */
const MAX_KEYS = 50_000;
const MAX_OPEN = 1_000;

export const PendingShape = v.object({
  notices: v.array(NoticeShape),
  /** Per kind: keys without details. */
  counted: v.array(v.tuple([v.picklist(NOTICE_KINDS), v.array(v.string())])),
  /** Troubles that were notified and are not over. */
  open: v.array(v.string()),
  seen: v.array(v.string()),
});

export type PendingSnapshot = v.InferOutput<typeof PendingShape>;

/** This run, an earlier one that this run continues, or another process. */
type NotifiedBy = "this" | "earlier" | "other";

/** Notices of one kind for one message. */
export interface NoticeGroup {
  readonly kind: NoticeKind;
  readonly isOver: boolean;
  /** How many there are, also without details. */
  readonly count: number;
  readonly notices: readonly Notice[];
}

/** The content of a message, and the keys that it covers. */
export interface Batch {
  readonly groups: readonly NoticeGroup[];
  readonly keys: ReadonlyMap<string, NoticeKind>;
}

export class Pending implements NoticeChanges {
  /** Without details beyond `MAX_DETAILS`. */
  readonly #pending = new Map<NoticeKind, Map<string, Notice | undefined>>();
  readonly #seen = new Set<string>();
  /** Troubles that were notified and are not over. */
  readonly #open = new Map<string, NotifiedBy>();
  /** Troubles in the message that is being sent. */
  #sending: ReadonlyMap<string, NoticeKind> = new Map();
  readonly #onAdded: (notice: Notice) => void;
  readonly #onChanged: () => void;

  /** `onAdded` is called for each new notice, `onChanged` where a snapshot differs from the one before. */
  constructor(onAdded: (notice: Notice) => void, onChanged: () => void) {
    this.#onAdded = onAdded;
    this.#onChanged = onChanged;
  }

  get size(): number {
    return [...this.#pending.values()].reduce((sum, { size }) => sum + size, 0);
  }

  begin(notice: Notice): void {
    if (notice.isTrouble) this.#beginTrouble(notice);
    else if (this.#remember(notice.key)) this.#add(notice);
  }

  #beginTrouble(notice: Notice): void {
    const { key, kind } = notice;
    const notifiedBy = this.#open.get(key);
    if (notifiedBy === "earlier") this.#open.set(key, "this");
    if (notifiedBy !== undefined) return;
    const known = this.#pending.get(kind)?.get(key);
    if (known !== undefined) {
      this.#pending.get(kind)?.set(key, { ...notice, atMs: Math.min(notice.atMs, known.atMs) });
    } else if (this.#remove(overKey(key))) {
      // The end of the same trouble was not notified yet: neither is this begin.
      this.#openTrouble(key, "this");
      this.#onChanged();
    } else this.#add(notice);
  }

  settle(...keys: string[]): void {
    if (this.#seen.size === 0) return;
    for (const key of keys) {
      if (!this.#seen.delete(key)) continue;
      this.#remove(key);
      this.#onChanged();
    }
  }

  end(over: Notice): void {
    const { key } = over;
    const notifiedBy = this.#open.get(key);
    this.#open.delete(key);
    const wasPending = this.#remove(key);
    if (notifiedBy === undefined && !wasPending) return;
    const isToNotify = notifiedBy === undefined ? this.#sending.has(key) : notifiedBy !== "other";
    if (isToNotify) this.#add({ ...over, key: overKey(key) });
    this.#onChanged();
  }

  endEarlier(over: Notice): void {
    if (this.#open.get(over.key) === "earlier") this.end(over);
  }

  /** A trouble has turned into another one. */
  drop(key: string): void {
    this.#open.delete(key);
    this.#remove(key);
    this.#onChanged();
  }

  /** Notices with details, for the time of the next message. One stands for a kind without any. */
  *details(): Iterable<Notice> {
    for (const [kind, ofKind] of this.#pending) {
      const known = [...ofKind.values()].filter((notice) => notice !== undefined);
      yield* known.length === 0 && ofKind.size > 0 ? [anyOf(kind)] : known;
    }
  }

  /** Drops pending notices that new settings do not ask for. */
  keepOnly(isWanted: (notice: Notice) => boolean): void {
    for (const [kind, ofKind] of this.#pending) {
      for (const [key, notice] of ofKind) if (!isWanted(notice ?? anyOf(kind))) ofKind.delete(key);
    }
  }

  /** Everything that may be sent now and is wanted. Nothing is removed until `sent`. */
  take(nowMs: number, isWanted: (notice: Notice) => boolean): Batch {
    const keys = new Map<string, NoticeKind>();
    const groups = NOTICE_KINDS.flatMap((kind) => {
      const ofKind = this.#pending.get(kind) ?? new Map<string, Notice | undefined>();
      const known = [...ofKind.values()].filter((notice) => notice !== undefined);
      const wanted = known.filter((notice) => notice.atMs <= nowMs && isWanted(notice));
      for (const { key } of wanted) keys.set(key, kind);
      // Counted ones have no details: they go with the others of their kind.
      const isWhole = known.length === 0 ? isWanted(anyOf(kind)) : wanted.length === known.length;
      const counted = isWhole ? ofKind.size - known.length : 0;
      if (isWhole) for (const key of ofKind.keys()) keys.set(key, kind);
      return [false, true].map((isOver) => {
        const notices = wanted.filter((notice) => (notice.isOver === true) === isOver);
        return { kind, isOver, count: notices.length + (isOver ? 0 : counted), notices };
      });
    });
    return { groups: groups.filter(({ count }) => count > 0), keys };
  }

  /** Call it before a message is sent, and `sent` or `unsent` afterwards. */
  sending({ keys }: Batch): void {
    this.#sending = keys;
  }

  sent({ keys }: Batch): void {
    this.#sending = new Map();
    for (const [key, kind] of keys) {
      const notice = this.#pending.get(kind)?.get(key);
      if (notice?.isTrouble) this.#openTrouble(key, "this");
      this.#pending.get(kind)?.delete(key);
    }
    this.#onChanged();
  }

  unsent(): void {
    this.#sending = new Map();
  }

  /** Another process has notified of these. */
  dropSeen(others: ReadonlySet<string>): void {
    if (others.size === 0) return;
    for (const [kind, ofKind] of this.#pending) {
      for (const [key, notice] of ofKind) {
        if (!others.has(key) || notice?.isOver) continue;
        if (notice?.isTrouble) this.#openTrouble(key, "other");
        this.#pending.get(kind)?.delete(key);
      }
    }
  }

  /** Keys that were notified: without the pending ones. */
  #notified(): string[] {
    const pending = new Set([...this.#pending.values()].flatMap((ofKind) => [...ofKind.keys()]));
    return [...this.#seen].filter((key) => !pending.has(key));
  }

  snapshot(): PendingSnapshot {
    const counted = [...this.#pending].flatMap(([kind, ofKind]) => {
      const keys = [...ofKind].filter(([, notice]) => notice === undefined).map(([key]) => key);
      return keys.length === 0 ? [] : [[kind, keys] as [NoticeKind, string[]]];
    });
    const notices = [...this.#pending.values()].flatMap((ofKind) =>
      [...ofKind.values()].filter((notice) => notice !== undefined),
    );
    const open = [...this.#open].filter(([, by]) => by !== "other").map(([key]) => key);
    return { notices, counted, open, seen: this.#notified() };
  }

  /** Of an earlier run, or of a process that has ended. */
  restore({ notices, counted, open, seen }: PendingSnapshot): void {
    for (const key of seen) this.#remember(key);
    for (const key of open) if (!this.#open.has(key)) this.#openTrouble(key, "earlier");
    for (const notice of notices) {
      const isState = notice.isTrouble || notice.isOver;
      const isNew = isState ? !this.#isKnownTrouble(notice) : this.#remember(notice.key);
      if (isNew) this.#add(notice);
    }
    for (const [kind, keys] of counted) {
      for (const key of keys) if (this.#remember(key)) this.#addCounted(kind, key);
    }
  }

  /** Whether the key is new. The oldest keys are forgotten. */
  #remember(key: string): boolean {
    const isNew = !this.#seen.delete(key);
    this.#seen.add(key);
    const [oldest] = this.#seen;
    if (this.#seen.size > MAX_KEYS && oldest !== undefined) this.#seen.delete(oldest);
    return isNew;
  }

  #isKnownTrouble({ kind, key }: Notice): boolean {
    return this.#open.has(key) || this.#pending.get(kind)?.has(key) === true;
  }

  #openTrouble(key: string, by: NotifiedBy): void {
    this.#open.set(key, by);
    const [oldest] = this.#open.keys();
    if (this.#open.size > MAX_OPEN && oldest !== undefined) this.#open.delete(oldest);
  }

  #add(notice: Notice): void {
    const { key } = notice;
    const ofKind = this.#pending.get(notice.kind) ?? new Map<string, Notice | undefined>();
    this.#pending.set(notice.kind, ofKind);
    if (ofKind.size >= MAX_DETAILS && !notice.isTrouble && !notice.isOver) this.#addCounted(notice.kind, key);
    else ofKind.set(key, notice);
    this.#onAdded(notice);
    this.#onChanged();
  }

  #addCounted(kind: NoticeKind, key: string): void {
    const ofKind = this.#pending.get(kind) ?? new Map<string, Notice | undefined>();
    this.#pending.set(kind, ofKind);
    if (ofKind.size < MAX_KEYS) ofKind.set(key, undefined);
  }

  #remove(key: string): boolean {
    return [...this.#pending.values()].some((ofKind) => ofKind.delete(key));
  }
}

/** Stands for notices without details. */
function anyOf(kind: NoticeKind): Notice {
  return { kind, key: "", atMs: 0 };
}

function overKey(key: string): string {
  return `${key} over`;
}
