/** Judges how rounds end: whether a rule, an order or the service says so, and where a delivery is to go. */
import type { TransferRecord } from "../../../src/model/record.ts";
import type { Process } from "../ground/process.ts";
import type { OrderAct } from "../plan/plan.ts";
import type { SentTransfer } from "../plan/sent.ts";
import type { Action, RawRoute, Site } from "../plan/site.ts";
import type { World } from "../world.ts";
import { boxOf, decide, handoffOf, identityOf, ownerOf } from "./expect.ts";
import type { Delivered, Observer, Received } from "./observer.ts";
import { CONSUMER, resolveInbox } from "./paths.ts";

const MINUTE_MS = 60_000;

/** A job that runs: when it began, and what daemons had applied then. */
interface Job {
  readonly trackingId: string;
  readonly process: Process;
  readonly atMs: number;
  readonly sites: readonly Site[];
}

/** What the record of an ended round says, and what was going on when it got its name. */
interface Ended {
  /** The work folder. */
  readonly work: string;
  /** The name of its records. */
  readonly name: string;
  readonly round: number;
  readonly record: TransferRecord;
  readonly of: Received;
  readonly jobs: readonly Job[];
  /** In force at some time during these jobs. */
  readonly sites: readonly Site[];
}

/** What a configuration says of a transfer. */
interface Ruling {
  readonly site: Site;
  readonly route: RawRoute | undefined;
  readonly action: Action;
  readonly inbox: string;
}

export class Decisions {
  readonly #observer: Observer;
  readonly #world: World;
  readonly #jobs = new Set<Job>();
  /** Transfers whose archives were delivered as they are, by key. */
  readonly #packed = new Set<string>();

  constructor(observer: Observer, world: World) {
    this.#observer = observer;
    this.#world = world;
  }

  /** Returns how it ends. */
  jobBegan(process: Process, trackingId: string): () => void {
    const job = { trackingId, process, atMs: this.#nowMs, sites: this.#world.appliedSites };
    this.#jobs.add(job);
    return () => this.#jobs.delete(job);
  }

  archiveLeft(key: string): void {
    this.#packed.add(key);
  }

  /** The end record of a round gets its name: from now on the round has ended. */
  decided(work: string, name: string, round: number, bytes: Buffer): void {
    const observer = this.#observer;
    const record = JSON.parse(bytes.toString()) as TransferRecord & { token?: string };
    const of = observer.received.get(record.transferId);
    if (of === undefined) {
      observer.violate(`a record of an unknown transfer: ${name}`);
      return;
    }
    const { trackingId } = of.transfer;
    observer.checkName(of.address, record.mailbox);
    this.#world.note(`${trackingId} of ${of.address}: round ${round} ended as ${record.state}`);
    const jobs = [...this.#jobs].filter((job) => job.trackingId === trackingId && !job.process.isDead);
    const begunMs = Math.min(this.#nowMs, ...jobs.map(({ atMs }) => atMs));
    const sites = [...new Set([...observer.sitesSince(begunMs), ...jobs.flatMap((job) => job.sites)])];
    observer.ends.set(of.key, { ...record, atMs: this.#nowMs });
    if (record.state === "quarantined") observer.quarantines++;
    if (record.state === "gone") {
      this.#checkIgnored(record, of, sites);
      this.#checkGone(record, of);
    }
    if (record.state !== "delivered" || record.token === undefined) return;
    this.#delivered({ work, name, round, record, of, jobs, sites }, record.token);
  }

  #delivered(ended: Ended, token: string): void {
    const { work, name, round, record, of, sites } = ended;
    const { key, address, transfer } = of;
    this.#checkAllowed(record, key);
    const rulings = this.#findRulings(ended);
    const identities = new Set(this.#findFitting(ended, rulings).map(({ route }) => identityOf(route)));
    const owners = (step: "command" | "webhook") =>
      new Set(rulings.map(({ site, route }) => ownerOf(step, site, address, route)));
    const delivery: Delivered = {
      key,
      of,
      name,
      trackingId: transfer.trackingId,
      round,
      token,
      atMs: this.#nowMs,
      clockErrorMs: this.#world.wallOffsetMs,
      identity: identities.size === 1 ? [...identities][0] : undefined,
      owners: { command: owners("command"), webhook: owners("webhook") },
      record,
      sites,
      paths: [],
      seen: new Map(),
      // Nothing of a transfer without files appears by itself.
      hasAppeared: record.placement === "files" && transfer.files.length === 0,
      isTouched: false,
      acknowledged: new Set(),
      id: undefined,
      programs: [],
      calls: [],
    };
    this.#observer.deliveries.push(delivery);
    this.#checkFolder(delivery);
    this.#checkLimits(delivery);
    this.#checkSums(ended);
    this.#springTrap(work, delivery);
  }

  /** What each configuration says, with and without the names in archives. */
  #findRulings({ record, of, sites }: Ended): Ruling[] {
    const { address } = of;
    return sites.flatMap((site) =>
      this.#waysOf(of).map((way) => {
        const { route, action } = decide(site, address, way, isAllowed(record));
        const inbox = route?.inbox ?? boxOf(site, address)?.inbox ?? site.inbox;
        return { site, route, action, inbox };
      }),
    );
  }

  /** Some archives may have been left as they are, and rules are asked with the names in the others. */
  #waysOf({ key, transfer }: Received): readonly SentTransfer[] {
    return this.#packed.has(key) ? [transfer, withoutMembers(transfer)] : [transfer];
  }

  /** Those that deliver it to where its record says. There is one. */
  #findFitting({ work, record, of }: Ended, rulings: readonly Ruling[]): readonly Ruling[] {
    const stored = record.inbox === undefined ? undefined : resolveInbox(work, record.inbox);
    const isUrgent = (record.folder ?? "").startsWith("urgent/");
    const fitting = rulings.filter(
      ({ site, route, action, inbox }) =>
        (action === "deliver" || isAllowed(record)) &&
        inbox === (stored ?? site.inbox) &&
        isUrgent === (route?.layout !== undefined),
    );
    if (fitting.length === 0) {
      const wanted = rulings.map(({ route, action, inbox }) => JSON.stringify({ route, action, inbox }));
      this.#observer.violate(
        `${of.transfer.trackingId} is delivered to ${stored ?? ""} ${record.folder}, against ${wanted}`,
      );
    }
    return fitting;
  }

  /** Only an operator's order lets a held or refused transfer pass. */
  #checkAllowed({ released, allowedBy, trackingId }: TransferRecord, key: string): void {
    const { orders } = this.#observer;
    const isOrdered = (...acts: OrderAct[]) =>
      orders.some((order) => order.key === key && acts.includes(order.act));
    if (released !== undefined && !isOrdered("release"))
      this.#observer.violate(`${trackingId} is released, and nobody has ordered that`);
    if (allowedBy !== undefined && !isOrdered("release", "retry"))
      this.#observer.violate(`${trackingId} is allowed, and nobody has ordered that`);
  }

  #checkIgnored(
    { reason, trackingId }: TransferRecord,
    { address, transfer }: Received,
    sites: readonly Site[],
  ): void {
    const isIgnored = sites.some((site) => decide(site, address, transfer).action === "ignore");
    // An operator may have adopted it.
    if (reason === "ignored" && !isIgnored && !this.#world.hasLost)
      this.#observer.violate(`${trackingId} is ignored, and no rule says so`);
  }

  /** It ends without content because the service has it no longer, or an operator or a rule does not want it. */
  #checkGone({ reason, trackingId }: TransferRecord, { key, transfer }: Received): void {
    const { service } = transfer;
    const isListed = this.#world.services[service]?.stateOf(transfer) === "active";
    const isDiscarded = this.#observer.orders.some((order) => order.key === key && order.act === "discard");
    if (reason === "discarded" && !isDiscarded)
      this.#observer.violate(`${trackingId} is discarded, and nobody has ordered that`);
    if (["ignored", "discarded"].includes(reason ?? "") || isDiscarded) return;
    // Lists that omitted it said so.
    const wasForgotten = this.#world.calm.hadWeather(
      service,
      ["forgetful", "cutting", "stripping", "lying", "confused"],
      this.#nowMs - 60 * MINUTE_MS,
    );
    if (isListed && !wasForgotten)
      this.#observer.violate(`I7: ${trackingId} ends as gone (${reason}), and the service lists it`);
  }

  /** The folder is the one that a layout gives, with a number if its name was taken. */
  #checkFolder({ record, sites, of, trackingId }: Delivered): void {
    const folder = record.folder ?? "";
    const { address, transfer } = of;
    const rulings = sites.flatMap((site) =>
      this.#waysOf(of).map((way) => ({ site, ...decide(site, address, way, true) })),
    );
    const isRight = rulings.some(({ site, route }) => {
      const layout = route?.layout ?? site.layout ?? "{mailbox}/{sender}/{trackingId}";
      const isInFolder = handoffOf(site, address, route).deliver === "files";
      const path = layout
        .replace("{mailbox}", record.mailbox)
        .replace("{sender}", transfer.sender)
        .replace("{trackingId}", trackingId);
      return (
        folder === path ||
        (!isInFolder && folder.startsWith(`${path}-`) && /^-\d+$/.test(folder.slice(path.length)))
      );
    });
    const isCommon =
      transfer.sender.isWellFormed() && rulings.every(({ route }) => route?.layout === undefined);
    if (!isRight && isCommon) this.#observer.violate(`${trackingId} is delivered to the folder ${folder}`);
  }

  /** As it was sent, it is within the limits, or an operator has released it. */
  #checkLimits({ record, sites, of: { key, transfer }, trackingId }: Delivered): void {
    const isOrdered = this.#observer.orders.some((order) => order.act === "release" && order.key === key);
    if (record.released !== undefined || isOrdered) return;
    const bytes = transfer.files.reduce((sum, file) => sum + file.bytes.length, 0);
    const isWithin = sites.some(
      ({ maxFiles = 1_000, maxBytes = 1_000_000 }) => transfer.files.length <= maxFiles && bytes <= maxBytes,
    );
    if (!isWithin) this.#observer.violate(`I8: ${trackingId} is larger than the limits allow`);
  }

  /** The service has told no wrong checksum to the job that delivers it. */
  #checkSums({ record, of, jobs }: Ended): void {
    const { trackingId } = of.transfer;
    const [job, ...others] = jobs;
    if (job === undefined || others.length > 0) return;
    const wasToldWrongly = this.#world.requests.falseSums.some(
      (each) =>
        each.transferId === record.transferId && job.process === each.process && job.atMs <= each.atMs,
    );
    if (wasToldWrongly && record.released === undefined && record.verified !== "none")
      this.#observer.violate(
        `I1: ${trackingId} is delivered, and one of its checksums is that of another file`,
      );
  }

  /** In this moment, somebody else takes a name of the delivery. */
  #springTrap(work: string, { name, round, token, record }: Delivered): void {
    const { traps } = this.#observer;
    const at = traps.findIndex(({ trackingId }) => trackingId === record.trackingId);
    const [trap] = at < 0 ? [] : traps.splice(at, 1);
    if (trap === undefined) return;
    const text = this.#world.disk.text(`${work}/placements/${name}~${round}~${token}/placement.json`);
    const root = record.inbox === undefined ? work.replace("/.inlet", "") : resolveInbox(work, record.inbox);
    const placement = text === undefined ? undefined : (JSON.parse(text) as StoredPlacement);
    const names = placement?.phases.flat().map(({ as }) => `${placement.parent}/${as}`) ?? [
      record.folder ?? "",
    ];
    const path = `${root}/${names[trap.number % names.length]}`.replaceAll("//", "/");
    this.#observer.asOutsider(() => this.#observer.putForeign(path, CONSUMER));
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }
}

interface StoredPlacement {
  readonly parent: string;
  readonly phases: readonly (readonly { readonly as: string }[])[];
}

/** A person wants it, whatever a rule says. */
function isAllowed({ allowedBy, released }: TransferRecord): boolean {
  return allowedBy !== undefined || released !== undefined;
}

/** As it is judged if its archives were not unpacked, such as after a long pause. */
function withoutMembers(transfer: SentTransfer): SentTransfer {
  return { ...transfer, files: transfer.files.map(({ members: _, ...file }) => file) };
}
