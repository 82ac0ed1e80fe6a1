/** Watches the disk of a world from outside: what appears in the inboxes, what is recorded, and what disappears. */
import type { DaemonEvent } from "../../../src/model/events.ts";
import type { TransferKey, TransferRecord } from "../../../src/model/record.ts";
import type { AnyEntry, OnChange } from "../ground/disk.ts";
import type { Process } from "../ground/process.ts";
import { happeningsOf, type OrderAct } from "../plan/plan.ts";
import type { StoredTransfer } from "../plan/sent.ts";
import { BOX, SECOND_BOX, type Site, THIRD_BOX } from "../plan/site.ts";
import { transferIdOf } from "../service/holdings.ts";
import type { World } from "../world.ts";
import { Appearance } from "./appearance.ts";
import { Attempts } from "./attempts.ts";
import type { Circumstances } from "./contents.ts";
import { Decisions } from "./deliveries.ts";
import { boxOf, fold, handoffsOf } from "./expect.ts";
import { HandOffs } from "./hand-offs.ts";
import { END, endOf, isInInbox, isOurs, ROOTS } from "./paths.ts";
import { checkPlaced } from "./placed.ts";

export { CONSUMER } from "./paths.ts";

/** A transfer for one of its recipients. */
export interface Received {
  /** `TRACKING-ID ADDRESS`: the same, whatever the mailbox is called. */
  readonly key: string;
  readonly address: string;
  readonly transferId: string;
  readonly transfer: StoredTransfer;
}

/** A round that ended with a delivery, and what of it has appeared. */
export interface Delivered {
  readonly key: string;
  readonly of: Received;
  /** The name of its records. */
  readonly name: string;
  readonly trackingId: string;
  readonly round: number;
  readonly token: string;
  readonly atMs: number;
  /** How far the clock was ahead. */
  readonly clockErrorMs: number;
  /** The rule that decided; `undefined` if that is not certain. */
  readonly identity: string | undefined;
  /** Who may have configured its command and its webhook. */
  readonly owners: Readonly<Record<"command" | "webhook", ReadonlySet<string | undefined>>>;
  readonly record: TransferRecord;
  /** In force during the attempt that delivered it: one of them applies to all of the attempt. */
  readonly sites: readonly Site[];
  /** Where its parts appeared and are. */
  readonly paths: string[];
  /** The path at which each of its parts has appeared, by what it is. */
  readonly seen: Map<string, string>;
  /** One of its parts was in the inbox at some time. */
  hasAppeared: boolean;
  /** Files that consumers have left in its folder. */
  readonly acknowledged: Set<string>;
  /** Somebody else has changed what is in the inbox. */
  isTouched: boolean;
  /** Of its first hand-off. */
  id: string | undefined;
  readonly programs: (Run & { readonly program: string })[];
  readonly calls: Run[];
}

/** One run of a step that follows a delivery. */
export interface Run {
  readonly process: Process;
  readonly atMs: number;
  readonly isGood: boolean;
}

export interface GivenOrder {
  readonly act: OrderAct;
  readonly record: TransferRecord;
  readonly key: string;
  readonly withPassword: boolean;
  /** When its command began. */
  readonly begunMs: number;
  /** When its command returned. */
  atMs: number;
  /** When a daemon has recorded it. */
  actedMs?: number;
  /** Requests that had named the transfer when it was given. */
  readonly opened: number;
  hasFailed?: boolean;
  /** An attempt has begun since. */
  isTried?: boolean;
}

const MINUTE_MS = 60_000;
/** Of one transfer in one world, in which it is tried some dozen times. */
const MAX_CHANGES = 300;

/** Events that hold no text. */
const FREQUENT: ReadonlySet<string> = new Set([
  "transfer-progressed",
  "outbox-scanned",
  "poll-succeeded",
  "overdue-listed",
]);

export class Observer {
  readonly violations: string[] = [];
  readonly deliveries: Delivered[] = [];
  readonly orders: GivenOrder[] = [];
  readonly supplies: { atMs: number; record: TransferRecord; isRight: boolean; isCommon: boolean }[] = [];
  readonly notices: {
    atMs: number;
    kind: string;
    trackingId: string | undefined;
    isOver: boolean;
    /** A process has just woken up, and sends first what it was about to send. */
    isLate: boolean;
  }[] = [];
  readonly traps: { trackingId: string; number: number }[] = [];
  /** Every configuration, and since when it is in force. */
  readonly timeline: { atMs: number; site: Site }[] = [];
  /** By transfer-id. */
  readonly received = new Map<string, Received>();
  /** Deliveries that nobody can know of: taken after the backup that was restored. By key. */
  readonly excused = new Map<string, number>();
  /** Paths that somebody else created, or changed. */
  readonly foreign = new Set<string>();
  /** Rounds that ended in quarantine. */
  quarantines = 0;
  /** How the last round of each transfer ended, by its key. */
  readonly ends = new Map<string, TransferRecord & { readonly atMs: number }>();
  /** When the last download of each transfer began, by its key. */
  readonly downloadingMs = new Map<string, number>();
  /** Tracking-ids of transfers that arrived with other bytes at some time, or were changed here. */
  readonly damaged = new Set<string>();
  /** Transfers that were decided, and whose content somebody changed before it was moved, by key. */
  readonly spoiled = new Set<string>();
  /** Everything that was said. */
  readonly #texts: string[] = [];
  /** How often each transfer has changed its state. */
  readonly #changes = new Map<string, number>();
  /** By what records call the mailbox, and the tracking-id. */
  readonly #listed = new Map<string, Received>();
  /** What records call each mailbox, by its address. */
  readonly #names = new Map<string, string>();
  readonly #world: World;
  readonly #decisions: Decisions;
  readonly #appearance: Appearance;
  readonly #handOffs: HandOffs;
  readonly #attempts: Attempts;
  #isOutsider = false;

  constructor(world: World) {
    this.#world = world;
    this.#decisions = new Decisions(this, world);
    this.#appearance = new Appearance(this, world);
    this.#handOffs = new HandOffs(this, world);
    this.#attempts = new Attempts(world);
    for (const transfer of world.transfers) {
      for (const address of [BOX, SECOND_BOX, THIRD_BOX, ...transfer.recipients.map(fold)]) {
        const transferId = transferIdOf(transfer, address);
        const key = `${transfer.trackingId} ${address}`;
        this.received.set(transferId, { key, address, transferId, transfer });
      }
    }
  }

  violate(text: string): void {
    if (this.violations.includes(text)) return;
    this.violations.push(text);
    this.#world.note(`VIOLATION: ${text}`);
  }

  // What daemons do

  readonly changed: OnChange = ({ type, path, from, entry, replaced }) => {
    if (this.#isOutsider) return;
    if (!isOurs(path)) this.violate(`I5: ${type} ${path}`);
    if (type === "create") this.#created(path, entry);
    if (type === "rename" && from !== undefined) this.#appearance.moved(from, path, entry, replaced);
    if (type === "rename") this.#appearance.claimed(path, entry);
    if (type === "remove") {
      if (isInInbox(path)) this.#appearance.removed(path);
      if (entry !== undefined) this.#appearance.released(path, entry);
    }
  };

  #created(path: string, entry: AnyEntry | undefined): void {
    const [, work, name = "", round] = END.exec(path) ?? [];
    if (work !== undefined && entry?.kind === "file")
      this.#decisions.decided(work, name, Number(round), entry.bytes);
    if (entry?.kind !== "folder" && isInInbox(path) && !this.foreign.has(path))
      this.violate(`I1: ${path} is written where consumers look`);
  }

  /** An attempt may use the configurations that are in force when its job begins, and later ones. Returns how it ends. */
  jobBegan(process: Process, { trackingId, mailbox }: TransferKey): () => void {
    const of = this.#listed.get(`${fold(mailbox)} ${trackingId}`);
    for (const order of this.orders)
      if (order.key === of?.key && order.actedMs !== undefined) order.isTried = true;
    const ends = [this.#decisions.jobBegan(process, trackingId), of && this.#attempts.began(process, of)];
    return () => {
      for (const end of ends) end?.();
    };
  }

  emitted(process: Process, event: DaemonEvent): void {
    if (FREQUENT.has(event.type)) return;
    if (event.type === "transfer-discovered" || event.type === "transfer-changed")
      this.#changed(process, event.record);
    this.#handOffs.reported(event);
    if (event.type === "archive-left") this.#decisions.archiveLeft(this.keyOf(event.record));
    if (event.type === "operator-acted" && event.trackingId !== undefined)
      this.#acted(event.act, event.mailbox, event.trackingId);
    if (event.type === "order-failed") {
      for (const order of this.orders)
        if (order.record.trackingId === event.order.trackingId) order.hasFailed = true;
    }
    this.#texts.push(
      JSON.stringify(event, (_key, value) => (value instanceof Error ? String(value) : value)),
    );
  }

  #changed(process: Process, record: TransferRecord): void {
    this.#count(record);
    const { mailbox, trackingId, transferId } = record;
    const of = this.received.get(transferId);
    if (of === undefined) return;
    if (record.state === "downloading") this.downloadingMs.set(of.key, this.#nowMs);
    this.#listed.set(`${fold(mailbox)} ${trackingId}`, of);
    this.#attempts.changed(process, of, record);
  }

  /** An attempt follows a pause, an order or a password: it is never repeated at once, again and again. */
  #count({ trackingId, mailbox }: TransferRecord): void {
    const name = `${trackingId} of ${mailbox}`;
    const times = (this.#changes.get(name) ?? 0) + 1;
    this.#changes.set(name, times);
    if (times === MAX_CHANGES) this.violate(`I8: ${name} changes its state again and again`);
  }

  /** Orders for one transfer are taken up in the order in which they were given. */
  #acted(act: string, mailbox: string, trackingId: string): void {
    if (act === "password") return;
    const all = this.orders.filter(
      ({ record }) =>
        record.trackingId === trackingId && record.mailbox.toLowerCase() === mailbox.toLowerCase(),
    );
    const first = all.find((order) => order.act === act && order.actedMs === undefined);
    // A second daemon, or a crash, repeats one.
    if (first === undefined) return;
    // Of two equal ones it is not known which was carried out, nor of two commands at once which came first.
    const earlier = all.find(
      (order) => order.actedMs === undefined && order.atMs < first.begunMs && order.act !== act,
    );
    if (earlier !== undefined)
      this.violate(`an order is overtaken: ${earlier.act} of ${trackingId} by a later ${act}`);
    first.actedMs = this.#nowMs;
  }

  /** `env`: what the program got. */
  programRan(
    process: Process,
    argv: readonly string[],
    env: Readonly<Record<string, string>>,
    isGood: boolean,
  ): void {
    this.#handOffs.programRan(process, argv, env, isGood);
  }

  /** The webhook of a delivery was called, with this body. */
  called(
    process: Process,
    body: { readonly id?: string; readonly transferId?: string },
    isGood: boolean,
  ): void {
    this.#handOffs.called(process, body, isGood);
  }

  notified(body: unknown): void {
    const text = JSON.stringify(body);
    this.#texts.push(text);
    for (const { kind, over, first } of (body as { notices?: NoticeGroup[] }).notices ?? []) {
      const ids = first.map(({ trackingId }) => trackingId);
      this.#world.note(`a notification: ${kind} ${over ? "is over" : ""} ${ids.join()}`);
      for (const trackingId of ids)
        this.notices.push({
          atMs: this.#nowMs,
          kind,
          trackingId,
          isOver: over,
          isLate: this.#hasJustWoken(),
        });
    }
  }

  #hasJustWoken(): boolean {
    return this.#world.daemons.all.some(({ process: { frozenUntilMs } }) => {
      const agoMs = this.#nowMs - frozenUntilMs;
      return agoMs >= 0 && agoMs < MINUTE_MS;
    });
  }

  get texts(): readonly string[] {
    return this.#texts;
  }

  // What others do

  /** Whatever `work` changes, no daemon does. */
  asOutsider(work: () => void): void {
    this.#isOutsider = true;
    try {
      work();
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
    } finally {
      this.#isOutsider = false;
    }
  }

  putForeign(path: string, uid: number): void {
    const { disk } = this.#world;
    if (disk.tryGet(path) !== undefined) return;
    disk.open(path, "wx", 0o644, uid).write("foreign");
    this.foreign.add(path);
    this.#world.note(`somebody else creates ${path}`);
  }

  /** What is left of this delivery must never appear: an operator has the transfer delivered again. */
  spoil(delivery: Delivered): void {
    this.deliveries.splice(this.deliveries.indexOf(delivery), 1);
    this.spoiled.add(delivery.key);
  }

  ordered(act: OrderAct, record: TransferRecord, withPassword: boolean): GivenOrder {
    const key = this.keyOf(record);
    const opened = this.received.get(record.transferId)?.transfer.opened ?? 0;
    const given = { act, record, key, withPassword, begunMs: this.#nowMs, atMs: this.#nowMs, opened };
    this.orders.push(given);
    return given;
  }

  supplied(record: TransferRecord, isRight: boolean, isCommon: boolean): void {
    this.supplies.push({ atMs: this.#nowMs, record, isRight, isCommon });
    this.#want(record, "the password for");
  }

  /** An order that was accepted; to be called when its command has returned. */
  accepted({ act, record }: GivenOrder): void {
    const isOpen = ["discovered", "downloading", "checking", "waiting"].includes(record.state);
    if ((act === "retry" || act === "release") && isOpen && record.reason !== "doubt")
      this.#want(record, `the order to ${act}`);
  }

  #want({ transferId, round }: TransferRecord, what: string): void {
    const of = this.received.get(transferId);
    if (of !== undefined) this.#attempts.wanted(of, round, what);
  }

  siteApplied(site: Site): void {
    this.timeline.push({ atMs: this.#nowMs, site });
  }

  powerCut(): void {
    const { disk } = this.#world;
    // A record that was not durable is made again.
    for (const [at, { name, round, paths, trackingId }] of [...this.deliveries.entries()].toReversed()) {
      const isRecorded = ROOTS.some((root) => disk.tryGet(endOf(root, name, round)) !== undefined);
      if (isRecorded) continue;
      if (paths.length > 0) this.violate(`I2: the record of ${trackingId} is lost`);
      this.deliveries.splice(at, 1);
    }
    // A delivery that was not synced is moved again.
    for (const { paths } of this.deliveries) {
      const lost = paths.filter((path) => disk.tryGet(path) === undefined);
      for (const path of lost) if (!path.startsWith("/taken")) paths.splice(paths.indexOf(path), 1);
    }
  }

  // What is known

  isDamaged(trackingId: string): boolean {
    return this.damaged.has(trackingId);
  }

  keyOf(record: Pick<TransferRecord, "transferId">): string {
    return this.received.get(record.transferId)?.key ?? "";
  }

  /** The configurations that were in force at some time since then. */
  sitesSince(ms: number): Site[] {
    const first = this.timeline.findLastIndex(({ atMs }) => atMs <= ms);
    return [...this.timeline.slice(Math.max(0, first)).map(({ site }) => site), ...this.#world.appliedSites];
  }

  /** What records call a mailbox is one of the names that it had, never changes, and is never that of another one. */
  checkName(address: string, name: string): void {
    if (this.#world.hasLost) return;
    const first = this.nameOf(address) ?? name;
    const [other] =
      [...this.#names].find(([each, known]) => each !== address && fold(known) === fold(name)) ?? [];
    const had = this.timeline.flatMap(({ site }) => boxOf(site, address)?.name ?? []);
    const isOwn =
      [...had, address].some((each) => fold(each) === fold(name)) || fold(name).startsWith(`${address}-`);
    if (fold(first) !== fold(name)) this.violate(`records call ${address} ${name}, and called it ${first}`);
    if (other !== undefined) this.violate(`records call ${address} ${name}, as they call ${other}`);
    if (!isOwn) this.violate(`records call ${address} ${name}, and nobody else does`);
    this.#names.set(address, first);
  }

  nameOf(address: string): string | undefined {
    return this.#names.get(fold(address));
  }

  /** A part of it may still be in its stage. */
  isStaged({ name, round, token }: Delivered): boolean {
    const { disk, work } = this.#world;
    const staged = `${work}/staging/${name}~${round}~${token}`;
    return [staged, `${staged}.beside`].some((path) => disk.tryGet(path) !== undefined);
  }

  /** What is known of a delivery when a consumer looks at it. */
  circumstances({ of, record, sites }: Delivered): Circumstances {
    const { transfer, address, transferId } = of;
    const { calm, requests } = this.#world;
    return {
      receivedByMs: this.#isFoundOnce(transfer) ? requests.firstAskedMs.get(transferId) : undefined,
      transfer,
      address,
      name: record.mailbox,
      transferId,
      isReleased: record.released !== undefined,
      unpack: new Set(handoffsOf(sites, address, transfer).map(({ unpack = "none" }) => unpack)),
      mayBeWrong:
        (record.released !== undefined &&
          requests.falseSums.some((each) => each.transferId === transferId)) ||
        (transfer.checksums === "none" &&
          (calm.hadWeather(transfer.service, ["lying"], 0) || this.isDamaged(transfer.trackingId))),
      mayLackFields: this.#world.services[transfer.service]?.hasHidden !== false,
      hasNoModes: this.#world.services[transfer.service]?.habits.hasNoModes === true,
      isMessageRefused: requests.hasRefusedMessage(transfer),
    };
  }

  /** It is not discovered anew: after a crash, or because it was gone for a while. Clocks were right. */
  #isFoundOnce({ service }: StoredTransfer): boolean {
    const { calm, daemons, plan } = this.#world;
    const isGone = calm.hadWeather(service, ["forgetful", "cutting", "stripping", "lying", "confused"], 0);
    const isRevoked = happeningsOf(plan).some(({ kind }) => kind === "vanish");
    return daemons.started === 1 && calm.jumpsMs.length === 0 && !isGone && !isRevoked;
  }

  /** To be called when all parts of the delivery should be placed. */
  checkPlaced(delivery: Delivered): Iterable<string> {
    const isTouched = delivery.isTouched || this.foreign.size > 0;
    return isTouched ? [] : checkPlaced(this.#world.disk, delivery, this.circumstances(delivery));
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }
}

interface NoticeGroup {
  readonly kind: string;
  readonly over: boolean;
  readonly first: readonly { readonly trackingId?: string }[];
}
