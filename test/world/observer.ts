/** Watches a world from outside, remembers what happened, and reports at once what may never happen. */
import { type Machine, machine } from "../../src/base/machine.ts";
import { nameOf } from "../../src/ledger/paths.ts";
import type { DaemonEvent } from "../../src/model/events.ts";
import { deliveryId } from "../../src/model/manifest.ts";
import type { TransferKey, TransferRecord } from "../../src/model/record.ts";
import type { AnyEntry, FolderEntry, OnChange } from "./disk.ts";
import { BOX, INBOX, OTHER_INBOX, SECOND_BOX, type Site, STATE, sha256, WORK } from "./plan.ts";
import type { Process } from "./process.ts";
import { decide, handoffFor, identityOf } from "./routing.ts";
import type { SentTransfer } from "./service.ts";
import type { World } from "./world.ts";

/** A round that ended with a delivery, and what of it has appeared. */
export interface Delivered {
  readonly name: string;
  readonly mailbox: string;
  readonly trackingId: string;
  readonly round: number;
  readonly token: string;
  readonly id: string;
  readonly atMs: number;
  /** The rule that decided; `undefined` if that is not certain. */
  readonly identity: string | undefined;
  readonly record: TransferRecord;
  /** In force during the attempt that delivered it: one of them applies to all of the attempt. */
  readonly sites: readonly Site[];
  /** Where its parts appeared. */
  readonly paths: string[];
  /** One of its parts was in the inbox at some time. */
  hasAppeared: boolean;
  programs: string[];
  calls: number;
}

const MINUTE_MS = 60_000;
const INBOXES = [INBOX, OTHER_INBOX];
const OURS = [...INBOXES, STATE];
const STAGED = new RegExp(`^${WORK}/staging/(.+)~(\\d+)~([0-9a-f]{16})(\\.beside)?(/|$)`);
const CLAIM = new RegExp(`^${WORK}/names/[^/]+/((.+\\.(.)[0-9a-f]{31})~(\\d+))$`);
const END = new RegExp(`^${WORK}/ledger/./(.+)\\.end-(\\d+)\\.json$`);

/** Of deliveries: no site configures others. */
const MODES: Readonly<Record<string, number>> = { folder: 0o750, file: 0o640 };

export class Observer {
  readonly violations: string[] = [];
  readonly deliveries: Delivered[] = [];
  readonly orders: { act: string; record: TransferRecord; withPassword: boolean; atMs: number }[] = [];
  /** Passwords that a person is about to supply, each with its tracking-id. */
  readonly supplying = new Set<string>();
  readonly supplies: { record: TransferRecord; isRight: boolean }[] = [];
  readonly notices: { atMs: number; kind: string; trackingId: string | undefined; isOver: boolean }[] = [];
  readonly traps: { trackingId: string; number: number }[] = [];
  /** Every configuration, and since when it is in force. */
  readonly timeline: { atMs: number; site: Site }[] = [];
  /** Jobs that run: when they began, and what daemons had applied then. */
  readonly #jobs = new Set<{ name: string; process: Process; atMs: number; sites: readonly Site[] }>();
  /** Everything that was said. */
  readonly #texts: string[] = [];
  readonly #world: World;
  /** Transfers whose archives were delivered as they are. */
  readonly #packed = new Set<string>();
  readonly #transfers = new Map<string, { mailbox: string; transfer: SentTransfer }>();
  /** The process that made a claim. */
  readonly #claimants = new WeakMap<AnyEntry, Machine>();
  #isOutsider = false;
  /** Paths that somebody else created. */
  readonly foreign = new Set<string>();

  constructor(world: World) {
    this.#world = world;
    for (const transfer of world.plan.transfers) {
      for (const mailbox of [BOX, SECOND_BOX]) {
        this.#transfers.set(nameOf({ mailbox, trackingId: transfer.trackingId }), { mailbox, transfer });
      }
    }
  }

  violate(text: string): void {
    if (this.violations.includes(text)) return;
    this.violations.push(text);
    this.#world.note(`VIOLATION: ${text}`);
  }

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

  powerCut(): void {
    // A record that was not durable is made again.
    for (const [at, { name, round, paths }] of [...this.deliveries.entries()].toReversed()) {
      const path = `${WORK}/ledger/${name.slice(name.lastIndexOf(".") + 1).slice(0, 1)}/${name}.end-${round}.json`;
      if (this.#world.disk.tryGet(path) !== undefined) continue;
      if (paths.length > 0) this.violate(`I2: the record of ${paths[0]} is lost`);
      this.deliveries.splice(at, 1);
    }
    // A delivery that was not synced is moved again.
    for (const { paths } of this.deliveries) {
      const lost = paths.filter((path) => this.#world.disk.tryGet(path) === undefined);
      for (const path of lost) if (!path.startsWith("/taken")) paths.splice(paths.indexOf(path), 1);
    }
  }

  // What daemons do

  readonly changed: OnChange = ({ type, path, from, entry, replaced }) => {
    if (this.#isOutsider) return;
    const isOurs = OURS.some((root) => path === root || path.startsWith(`${root}/`));
    if (!isOurs) this.violate(`I5: ${type} ${path}`);
    const end = type === "create" ? END.exec(path) : null;
    if (end !== null && entry?.kind === "file") this.#decided(end[1] ?? "", Number(end[2]), entry.bytes);
    if (type === "rename" && from !== undefined) this.#moved(from, path, entry, replaced);
    if (type === "remove" && isInInbox(path)) this.#removed(path);
    if (type === "rename" && path.startsWith(`${WORK}/names/`) && entry?.kind === "folder") {
      for (const claim of entry.entries.values()) this.#claimants.set(claim, machine());
    }
    if (type === "remove" && entry !== undefined) this.#released(path, entry);
  };

  /** An attempt may use the configurations that are in force when its job begins, and later ones. Returns how it ends. */
  jobBegan(process: Process, key: TransferKey): () => void {
    const job = { name: nameOf(key), process, atMs: this.#nowMs, sites: this.#world.appliedSites };
    this.#jobs.add(job);
    return () => this.#jobs.delete(job);
  }

  emitted(event: DaemonEvent): void {
    if (event.type === "transfer-progressed" || event.type === "outbox-scanned") return;
    if (event.type === "archive-left") this.#packed.add(nameOf(event.record));
    this.#texts.push(
      JSON.stringify(event, (_key, value) => (value instanceof Error ? String(value) : value)),
    );
  }

  programRan(program: string, id: string): void {
    const delivery = this.deliveries.find((each) => each.id === id);
    delivery?.programs.push(program);
    const { identity } = delivery ?? {};
    if (delivery === undefined) this.violate(`a command ran for an unknown delivery ${id}`);
    if (delivery === undefined || identity === undefined) return;
    const isKnown = this.sitesSince(this.#nowMs - 2 * MINUTE_MS).some(
      (site) => handoffFor(site, identity)?.command?.[0] === program,
    );
    if (!isKnown)
      this.violate(`${program} ran for ${delivery.trackingId}, whose rule ${identity} has no such command`);
  }

  called({ id }: { readonly id?: string }): void {
    const delivery = this.deliveries.find((each) => each.id === id);
    if (delivery !== undefined) delivery.calls++;
  }

  notified(body: unknown): void {
    const text = JSON.stringify(body);
    this.#texts.push(text);
    for (const { kind, over, first } of (body as { notices?: NoticeGroup[] }).notices ?? []) {
      const ids = first.map(({ trackingId }) => trackingId);
      this.#world.note(`a notification: ${kind} ${over ? "is over" : ""} ${ids.join()}`);
      for (const trackingId of ids) this.notices.push({ atMs: this.#nowMs, kind, trackingId, isOver: over });
    }
  }

  ordered(act: string, record: TransferRecord, withPassword: boolean): void {
    this.orders.push({ act, record, withPassword, atMs: this.#nowMs });
  }

  /** In another security mode than one-time passwords, only a person's password may arrive. */
  passwordSent({ trackingId, securityMode, state }: SentTransfer, password: string | undefined): void {
    if (securityMode !== undefined && !this.supplying.has(`${trackingId} ${password}`)) {
      this.violate(`I3: ${trackingId} got a password by itself in the mode ${securityMode}`);
    }
    if (state === "processing") this.violate(`I3: ${trackingId} got a password before it was active`);
  }

  supplied(record: TransferRecord, isRight: boolean): void {
    this.supplies.push({ record, isRight });
  }

  siteApplied(site: Site): void {
    this.timeline.push({ atMs: this.#nowMs, site });
  }

  /** The configurations that were in force at some time since then. */
  sitesSince(ms: number): Site[] {
    const first = this.timeline.findLastIndex(({ atMs }) => atMs <= ms);
    return [...this.timeline.slice(Math.max(0, first)).map(({ site }) => site), ...this.#world.appliedSites];
  }

  get texts(): readonly string[] {
    return this.#texts;
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }

  // Decisions

  /** The end record of a round gets its name: from now on the round has ended. */
  #decided(name: string, round: number, bytes: Buffer): void {
    const known = this.#transfers.get(name);
    if (known === undefined) throw new Error(`a record of an unknown transfer: ${name}`);
    const record = JSON.parse(bytes.toString()) as TransferRecord & { token?: string };
    const { mailbox, transfer } = known;
    const { trackingId } = transfer;
    this.#world.note(`${trackingId} of ${mailbox}: round ${round} ended as ${record.state}`);
    const jobs = [...this.#jobs].filter((job) => job.name === name && !job.process.isDead);
    const begunMs = Math.min(this.#nowMs, ...jobs.map(({ atMs }) => atMs));
    const sites = [...this.sitesSince(begunMs), ...jobs.flatMap((job) => job.sites)];
    if (record.state === "gone" && record.reason === "ignored") {
      const isIgnored = sites.some((site) => decide(site, mailbox, transfer).action === "ignore");
      if (!isIgnored) this.violate(`${trackingId} is ignored, and no rule says so`);
    }
    if (record.state !== "delivered" || record.token === undefined) return;
    const isAllowed = record.allowedBy !== undefined || record.released !== undefined;
    const judged = this.#packed.has(name) ? withoutMembers(transfer) : transfer;
    const decideHere = (site: Site) => decide(site, mailbox, judged, isAllowed);
    const fitting = sites.filter((site) => {
      const { route, action } = decideHere(site);
      const inbox = route?.inbox ?? INBOX;
      const stored = record.inbox === undefined ? INBOX : resolveInbox(record.inbox);
      const isUrgent = (record.folder ?? "").startsWith("urgent/");
      return (
        (action === "deliver" || isAllowed) && inbox === stored && isUrgent === (route?.layout !== undefined)
      );
    });
    if (fitting.length === 0) {
      const wanted = sites.map((site) => JSON.stringify(decideHere(site)));
      this.violate(`${trackingId} is delivered to ${record.inbox} ${record.folder}, against ${wanted}`);
    }
    const identities = new Set(fitting.map((site) => identityOf(decideHere(site).route)));
    const { token } = record;
    this.deliveries.push({
      name,
      mailbox,
      trackingId,
      round,
      token,
      id: deliveryId(name, round),
      atMs: this.#nowMs,
      identity: identities.size === 1 ? [...identities][0] : undefined,
      record,
      sites,
      paths: [],
      hasAppeared: false,
      programs: [],
      calls: 0,
    });
    this.#spring(name, round, token, record);
  }

  /** A trap: somebody else takes a name of the delivery. */
  #spring(name: string, round: number, token: string, record: TransferRecord): void {
    const at = this.traps.findIndex(({ trackingId }) => trackingId === record.trackingId);
    const [trap] = at < 0 ? [] : this.traps.splice(at, 1);
    if (trap === undefined) return;
    const text = this.#world.disk.text(`${WORK}/placements/${name}~${round}~${token}/placement.json`);
    const root = record.inbox === undefined ? INBOX : resolveInbox(record.inbox);
    const placement = text === undefined ? undefined : (JSON.parse(text) as StoredPlacement);
    const names = placement?.phases.flat().map(({ as }) => `${placement.parent}/${as}`) ?? [
      record.folder ?? "",
    ];
    const path = `${root}/${names[trap.number % names.length]}`.replaceAll("//", "/");
    this.asOutsider(() => this.putForeign(path, 4_000));
  }

  #moved(from: string, to: string, entry: AnyEntry | undefined, replaced: AnyEntry | undefined): void {
    if (isInInbox(from) && !isInInbox(to)) this.#removed(from);
    const [, name = "", round, token] = STAGED.exec(from) ?? [];
    if (token === undefined || !isInInbox(to) || entry === undefined) return;
    if (from.includes(".beside") === false && entry.kind === "folder")
      this.#judge(name, entry, Number(round));
    if (replaced !== undefined && replaced.uid !== 4_000) this.violate(`I5: a delivery replaces ${to}`);
    const end = this.deliveries.filter((each) => each.name === name && each.round === Number(round));
    const delivery = end.find((each) => each.token === token);
    if (delivery === undefined) this.violate(`I2: ${to} appears, and no record says so`);
    if (delivery === undefined) return;
    if (delivery.paths.includes(to)) this.violate(`I2: ${to} appears a second time`);
    if (entry.kind === "file" && !isSynced(entry)) this.violate(`I1: ${to} appears, and is not synced`);
    const permissions = entry.mode & 0o777;
    if (permissions !== MODES[entry.kind]) {
      this.violate(`${to} appears, and consumers cannot use it: its mode is ${permissions.toString(8)}`);
    }
    const { inbox } = delivery.record;
    const root = inbox === undefined ? INBOX : resolveInbox(inbox);
    if (!to.startsWith(`${root}/`)) this.violate(`I2: ${to} appears, and its record says ${root}`);
    delivery.paths.push(to);
    delivery.hasAppeared = true;
    if (!this.#isRecordDurable(name, Number(round)))
      this.violate(`I2: ${to} appears before its record is durable`);
  }

  #isRecordDurable(name: string, round: number): boolean {
    const path = `${WORK}/ledger/${name.slice(name.lastIndexOf(".") + 1).slice(0, 1)}`;
    const folder = this.#world.disk.tryGet(path);
    const entry =
      folder?.kind === "folder" ? folder.durableEntries.get(`${name}.end-${round}.json`) : undefined;
    return entry?.kind === "file" && isSynced(entry);
  }

  /** The folder that appears now has all that was sent, and is on the disk. */
  #judge(name: string, folder: FolderEntry, round: number): void {
    const known = this.#transfers.get(name);
    if (known === undefined) return;
    const { trackingId, files, message } = known.transfer;
    const own = new Set(["transfer.json", "SHA256SUMS"]);
    const delivery = this.deliveries.findLast((each) => each.name === name && each.round === round);
    const sums: string[] = [];
    for (const [file, entry] of folder.entries) {
      if (!isSynced(entry)) this.violate(`I1: ${trackingId}/${file} appears, and is not synced`);
      if (folder.durableEntries.get(file) !== entry) this.violate(`I1: the name ${file} is not synced`);
      if (entry.kind === "file" && !own.has(file)) sums.push(sha256(entry.bytes));
    }
    if (delivery?.record.released !== undefined) return;
    const messages = message === undefined ? [] : [sha256(message)];
    const packed = [...files.map((file) => file.sha256), ...messages];
    const unpacked = [
      ...files.flatMap(({ members, sha256: sum }) => members?.map(({ bytes }) => sha256(bytes)) ?? [sum]),
      ...messages,
    ];
    const text = sums.toSorted().join();
    const isWhole = [packed, unpacked].some((wanted) => wanted.toSorted().join() === text);
    if (!isWhole) this.violate(`I1: ${trackingId} appears with other content`);
  }

  /** A claim is removed: by its process, or because its round has ended and no part of it is left in its stage. */
  #released(path: string, entry: AnyEntry): void {
    const [, owner, name, shard, round] = CLAIM.exec(path) ?? [];
    if (owner === undefined || this.#claimants.get(entry) === machine()) return;
    const { disk } = this.#world;
    const text = disk.text(`${WORK}/ledger/${shard}/${name}.end-${round}.json`);
    const { token, placement } = JSON.parse(text ?? "{}") as { token?: string; placement?: unknown };
    const staged = `${WORK}/staging/${owner}~${token}`;
    // Without a placement, a power cut may have brought back files beside the stage that are of no use.
    const folders = placement === undefined ? [staged] : [staged, `${staged}.beside`];
    const isLeft = folders.some((each) => disk.tryGet(each) !== undefined);
    if (text === undefined || isLeft) this.violate(`the claim of ${owner} is removed, and it is not placed`);
  }

  /** Something of the inbox is gone: only a rule may say so. */
  #removed(path: string): void {
    // An earlier one may have been taken away from the same path.
    const delivery = this.deliveries.findLast(({ paths }) => paths.includes(path));
    if (delivery === undefined) return;
    delivery.paths.splice(delivery.paths.indexOf(path), 1);
    const { identity, trackingId, atMs } = delivery;
    if (identity === undefined) return;
    const ageMs = this.#nowMs - atMs;
    const isAllowed = this.sitesSince(this.#nowMs - 5 * MINUTE_MS).some((site) => {
      const { keep } = handoffFor(site, identity) ?? {};
      return (
        (keep?.notPickedUp !== undefined && ageMs >= 5 * MINUTE_MS) ||
        (keep?.pickedUp !== undefined && ageMs >= 2 * MINUTE_MS)
      );
    });
    if (!isAllowed)
      this.violate(`${trackingId} is removed from the inbox, and its rule ${identity} keeps it`);
  }
}

interface NoticeGroup {
  readonly kind: string;
  readonly over: boolean;
  readonly first: readonly { readonly trackingId?: string }[];
}

interface StoredPlacement {
  readonly parent: string;
  readonly phases: readonly (readonly { readonly as: string }[])[];
}

function isSynced(entry: AnyEntry): boolean {
  return entry.kind !== "file" || (entry.lost.length === 0 && entry.durableBytes.equals(entry.bytes));
}

function isInInbox(path: string): boolean {
  return INBOXES.some((root) => path.startsWith(`${root}/`)) && !path.startsWith(`${WORK}/`);
}

/** Records hold the path from the work folder. */
function resolveInbox(inbox: string): string {
  return new URL(inbox === "" ? "." : inbox, `file://${WORK}/`).pathname.replace(/\/$/, "");
}

/** As it is judged if its archives were not unpacked, such as after a long pause. */
function withoutMembers(transfer: SentTransfer): SentTransfer {
  return { ...transfer, files: transfer.files.map(({ members: _, ...file }) => file) };
}
