/**
 * The notices of one channel: the pending ones, and the keys of all that were reported. The first notices of each kind
 * are kept with details, and the others as keys, so 50,000 of one kind need little memory.
 */
import * as v from "valibot";
import { NOTICE_KINDS, type NoticeKind } from "../model/notify.ts";
import { type Notice, type NoticeChanges, NoticeShape } from "./notices.ts";

/** Details kept per kind. */
const MAX_DETAILS = 100;
/** Limits of remembered keys and of open troubles. Beyond them, an old notice may be sent again. */
const MAX_KEYS = 50_000;
const MAX_OPEN = 1_000;

export const PendingShape = v.object({
  notices: v.array(NoticeShape),
  /** Per kind: keys without details. */
  counted: v.array(v.tuple([v.picklist(NOTICE_KINDS), v.array(v.string())])),
  /** Troubles that were reported and are not over. */
  open: v.array(v.string()),
  /** For each local trouble: the processes that have it, and when each was last known to be alive. */
  owners: v.array(v.tuple([v.string(), v.array(v.tuple([v.string(), v.number()]))])),
  seen: v.array(v.string()),
});

export type PendingSnapshot = v.InferOutput<typeof PendingShape>;

/** Notices that were taken for a message. */
export type Taken = Pick<PendingSnapshot, "notices" | "counted">;

/** Notices of one kind for one message. */
export interface NoticeGroup {
  readonly kind: NoticeKind;
  readonly isOver: boolean;
  /** How many there are, including those without details. */
  readonly count: number;
  readonly notices: readonly Notice[];
}

/** The content of a message, and the notices that it covers. */
export interface Batch {
  readonly groups: readonly NoticeGroup[];
  readonly taken: Taken;
}

/** `by`: the process in which an event happened. */
export class Pending implements NoticeChanges {
  /** Increases with each change that `snapshot` would contain. */
  revision = 0;
  /** By kind and key. Beyond `MAX_DETAILS`, notices are only counted: `undefined`. */
  readonly #pending = new Map<NoticeKind, Map<string, Notice | undefined>>();
  /** Keys of notices that are pending or were reported. Troubles are not among them. */
  readonly #seen = new Set<string>();
  /** Troubles that were reported and are not over. */
  readonly #open = new Set<string>();
  /** By key of a local trouble: the running processes that have it, and when each was last known to be alive. */
  readonly #owners = new Map<string, Map<string, number>>();

  get size(): number {
    return [...this.#pending.values()].reduce((sum, { size }) => sum + size, 0);
  }

  begin(notice: Notice, by = ""): void {
    if (notice.isTrouble) this.#beginTrouble(notice, by);
    else if (this.#remember(notice.key)) this.#add(notice);
  }

  #beginTrouble(notice: Notice, by: string): void {
    const { key, kind } = notice;
    if (notice.isLocal) this.#addOwner(key, by, notice.atMs);
    if (this.#open.has(key)) return;
    const known = this.#pending.get(kind)?.get(key);
    if (known !== undefined) this.#add({ ...notice, atMs: Math.min(notice.atMs, known.atMs) });
    // The end of this trouble is still pending. Drop it, and do not report the new beginning either.
    else if (this.#remove(overKey(key))) this.#openTrouble(key);
    else this.#add(notice);
  }

  settle(...keys: string[]): void {
    for (const key of keys) {
      if (!this.#seen.delete(key)) continue;
      this.#remove(key);
      this.revision++;
    }
  }

  end(over: Notice, by = ""): void {
    const { key } = over;
    this.#removeOwners(key, (owner) => owner === by);
    if (this.#owners.has(key)) return;
    const wasOpen = this.#open.delete(key);
    const wasPending = this.#remove(key);
    if (wasOpen) this.#add({ ...over, key: overKey(key) });
    if (wasOpen || wasPending) this.revision++;
  }

  endEarlier(over: Notice): void {
    if (this.#open.has(over.key) && !this.#owners.has(over.key)) this.end(over);
  }

  /** Forgets a trouble without reporting its end: it has become another one, or its mailboxes are no longer polled. */
  drop(key: string): void {
    if (this.#open.delete(key) || this.#remove(key)) this.revision++;
  }

  /** The process `by` is alive. Processes without a refresh for `abandonedMs` have ended. */
  refresh(by: string, nowMs: number, abandonedMs: number): void {
    for (const [key, owners] of this.#owners) {
      if (owners.has(by)) this.#addOwner(key, by, nowMs);
      this.#removeOwners(key, (_, aliveMs) => Math.abs(nowMs - aliveMs) > abandonedMs);
    }
  }

  /** Local troubles of processes that have ended no longer belong to them. */
  release(hasEnded: (process: string) => boolean): void {
    for (const key of this.#owners.keys()) this.#removeOwners(key, hasEnded);
  }

  /** Notices with details, to compute the time of the next message. A kind that is only counted has a placeholder. */
  *details(): Iterable<Notice> {
    for (const [kind, ofKind] of this.#pending) {
      const known = [...ofKind.values()].filter((notice) => notice !== undefined);
      yield* known.length === 0 && ofKind.size > 0 ? [placeholderFor(kind)] : known;
    }
  }

  /** Drops pending notices that new settings do not ask for. */
  keepOnly(isWanted: (notice: Notice) => boolean): void {
    for (const [kind, ofKind] of this.#pending) {
      for (const [key, notice] of ofKind) {
        if (isWanted(notice ?? placeholderFor(kind))) continue;
        ofKind.delete(key);
        this.revision++;
      }
    }
  }

  /** All notices that are ready to be sent and allowed. */
  select(nowMs: number, isAllowed: (notice: Notice) => boolean): Batch {
    const taken: { notices: Notice[]; counted: [NoticeKind, string[]][] } = { notices: [], counted: [] };
    const groups = NOTICE_KINDS.flatMap((kind) => {
      const ofKind = this.#pending.get(kind) ?? new Map<string, Notice | undefined>();
      const known = [...ofKind.values()].filter((notice) => notice !== undefined);
      const chosen = known.filter((notice) => notice.atMs <= nowMs && isAllowed(notice));
      // Counted notices are included only if all detailed ones of their kind are.
      const hasAll = known.length === 0 ? isAllowed(placeholderFor(kind)) : chosen.length === known.length;
      const counted = hasAll ? countedOf(ofKind) : [];
      taken.notices.push(...chosen);
      if (counted.length > 0) taken.counted.push([kind, counted]);
      return [false, true].map((isOver) => {
        const notices = chosen.filter((notice) => (notice.isOver === true) === isOver);
        return { kind, isOver, count: notices.length + (isOver ? 0 : counted.length), notices };
      });
    });
    return { groups: groups.filter(({ count }) => count > 0), taken };
  }

  /** A message with these is about to be sent: they count as reported, unless `putBack` follows. */
  take({ taken: { notices, counted } }: Batch): void {
    for (const { kind, key, atMs, isTrouble } of notices) {
      const ofKind = this.#ofKind(kind);
      // Skip a notice that has begun anew since `select`.
      if (ofKind.get(key)?.atMs !== atMs) continue;
      ofKind.delete(key);
      if (isTrouble) this.#openTrouble(key);
    }
    for (const [kind, keys] of counted) for (const key of keys) this.#pending.get(kind)?.delete(key);
    this.revision++;
  }

  /** They were not sent. Notices that are no longer true are dropped. */
  putBack({ notices, counted }: Taken): void {
    for (const notice of notices) {
      const { kind, key, isTrouble, isOver } = notice;
      if (isTrouble) {
        if (this.#open.delete(key)) this.#add(notice);
        // It ended meanwhile. Its beginning was not reported, so its end is not either.
        else this.#remove(overKey(key));
      } else if (isOver) {
        const begun = key.slice(0, -OVER.length);
        // It began again meanwhile. Its first beginning was reported, and its end was not: it is still open.
        if (this.#remove(begun)) this.#openTrouble(begun);
        else this.#add(notice);
      } else if (this.#isReported(kind, key)) this.#add(notice);
    }
    for (const [kind, keys] of counted) {
      for (const key of keys) if (this.#isReported(kind, key)) this.#addCounted(kind, key);
    }
    this.revision++;
  }

  snapshot(): PendingSnapshot {
    const all = [...this.#pending];
    return {
      notices: all.flatMap(([, ofKind]) => [...ofKind.values()].filter((notice) => notice !== undefined)),
      counted: all.map(([kind, ofKind]): [NoticeKind, string[]] => [kind, countedOf(ofKind)]),
      open: [...this.#open],
      owners: [...this.#owners].map(([key, owners]): [string, [string, number][]] => [key, [...owners]]),
      seen: [...this.#seen],
    };
  }

  restore({ notices, counted, open, owners, seen }: PendingSnapshot): void {
    for (const key of seen) this.#seen.add(key);
    for (const key of open) this.#open.add(key);
    for (const [key, ofKey] of owners) this.#owners.set(key, new Map(ofKey));
    for (const notice of notices) this.#add(notice);
    for (const [kind, keys] of counted) for (const key of keys) this.#addCounted(kind, key);
  }

  /** Whether the key is new. The oldest keys are forgotten. */
  #remember(key: string): boolean {
    const isNew = !this.#seen.delete(key);
    this.#seen.add(key);
    const [oldest] = this.#seen;
    if (this.#seen.size > MAX_KEYS && oldest !== undefined) this.#seen.delete(oldest);
    return isNew;
  }

  /** Whether it was reported, and neither settled nor begun again since. */
  #isReported(kind: NoticeKind, key: string): boolean {
    return this.#seen.has(key) && this.#pending.get(kind)?.has(key) !== true;
  }

  #openTrouble(key: string): void {
    this.#open.add(key);
    const [oldest] = this.#open;
    if (this.#open.size > MAX_OPEN && oldest !== undefined) this.#open.delete(oldest);
    this.revision++;
  }

  #addOwner(key: string, by: string, aliveMs: number): void {
    const owners = this.#owners.get(key) ?? new Map<string, number>();
    this.#owners.set(key, owners.set(by, aliveMs));
    this.revision++;
  }

  #removeOwners(key: string, isMatch: (process: string, aliveMs: number) => boolean): void {
    const owners = this.#owners.get(key);
    for (const [process, aliveMs] of owners ?? []) {
      if (isMatch(process, aliveMs) && owners?.delete(process)) this.revision++;
    }
    if (owners?.size === 0) this.#owners.delete(key);
  }

  #add(notice: Notice): void {
    const { kind, key } = notice;
    const ofKind = this.#ofKind(kind);
    const isFull = ofKind.size >= MAX_DETAILS && !notice.isTrouble && !notice.isOver;
    if (isFull) this.#addCounted(kind, key);
    else ofKind.set(key, notice);
    this.revision++;
  }

  #addCounted(kind: NoticeKind, key: string): void {
    const ofKind = this.#ofKind(kind);
    if (ofKind.size < MAX_KEYS) ofKind.set(key, undefined);
    this.revision++;
  }

  #ofKind(kind: NoticeKind): Map<string, Notice | undefined> {
    const ofKind = this.#pending.get(kind) ?? new Map<string, Notice | undefined>();
    this.#pending.set(kind, ofKind);
    return ofKind;
  }

  #remove(key: string): boolean {
    return [...this.#pending.values()].some((ofKind) => ofKind.delete(key));
  }
}

function countedOf(ofKind: ReadonlyMap<string, Notice | undefined>): string[] {
  return [...ofKind].flatMap(([key, notice]) => (notice === undefined ? [key] : []));
}

/** Represents notices without details. */
export function placeholderFor(kind: NoticeKind): Notice {
  return { kind, key: "", atMs: 0 };
}

const OVER = " over";

function overKey(key: string): string {
  return `${key}${OVER}`;
}
