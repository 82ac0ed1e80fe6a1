/** Judges what appears in the inboxes and what is removed from them, in the moment in which it happens. */
import { type Machine, machine } from "../../../src/base/machine.ts";
import type { AnyEntry, FolderEntry } from "../ground/disk.ts";
import { INBOX, MOVED_INBOX } from "../plan/site.ts";
import type { World } from "../world.ts";
import { checkBytes, checkNames, checkSums, type Found } from "./contents.ts";
import { handoffFor, handoffOf, handoffsOf } from "./expect.ts";
import { checkManifest, type Manifest, parseManifest } from "./manifest.ts";
import type { Delivered, Observer } from "./observer.ts";
import { CLAIM, CONSUMER, endOf, isInInbox, isSynced, resolveInbox, STAGED } from "./paths.ts";

const MINUTE_MS = 60_000;
/** A clock that differs from the services' by more is known to be wrong. */
const UNNOTICED_MS = 60 * MINUTE_MS;

export class Appearance {
  readonly #observer: Observer;
  readonly #world: World;
  /** The process that made a claim. */
  readonly #claimants = new WeakMap<AnyEntry, Machine>();

  constructor(observer: Observer, world: World) {
    this.#observer = observer;
    this.#world = world;
  }

  // In an inbox

  moved(from: string, to: string, entry: AnyEntry | undefined, replaced: AnyEntry | undefined): void {
    if (isInInbox(from) && !isInInbox(to)) this.removed(from);
    const [, name = "", round, token, suffix, part] = STAGED.exec(from) ?? [];
    if (token === undefined || !isInInbox(to) || entry === undefined) return;
    const observer = this.#observer;
    if (replaced !== undefined && replaced.uid !== CONSUMER)
      observer.violate(`I5: a delivery replaces ${to}`);
    const ends = observer.deliveries.filter((each) => each.name === name && each.round === Number(round));
    const delivery = ends.find((each) => each.token === token);
    if (delivery === undefined) {
      observer.violate(`I2: ${to} appears, and no record says so`);
      return;
    }
    const isFirst = this.#checkFirst(delivery, `${suffix ?? ""}${part ?? ""}`, to);
    if (entry.kind === "file" && !isSynced(entry)) observer.violate(`I1: ${to} appears, and is not synced`);
    this.#checkRights(delivery, to, entry);
    this.#checkRecord(delivery, from, to);
    if (suffix === undefined && entry.kind === "folder") this.#judgeFolder(delivery, to, entry);
    else if (part !== undefined)
      this.#judgeFile(delivery, to, entry, { isSent: suffix === undefined, isFirst });
    // Without the record of a round, a transfer begins with it again: then its deliveries are counted.
    if (ends.length > 1 && !this.#world.hasLost)
      observer.violate(`I2: round ${round} of ${delivery.trackingId} ended twice`);
  }

  /** Something of the inbox is gone: only a rule may say so. */
  removed(path: string): void {
    // An earlier one may have been taken away from the same path.
    const delivery = this.#observer.deliveries.findLast(({ paths }) => paths.includes(path));
    if (delivery === undefined) return;
    delivery.paths.splice(delivery.paths.indexOf(path), 1);
    const { identity, trackingId, atMs, of, clockErrorMs } = delivery;
    if (identity === undefined) return;
    // A clock that was wrong for a moment is no reason, unless the error is too small to be noticed.
    const errorMs = Math.abs(clockErrorMs);
    const ageMs = this.#nowMs - atMs + 1_000 + (errorMs <= UNNOTICED_MS ? errorMs : 0);
    const isAllowed = this.#observer.sitesSince(this.#nowMs - 5 * MINUTE_MS).some((site) => {
      const { keep } = handoffFor(site, of.address, identity) ?? {};
      return (
        (keep?.notPickedUp !== undefined && ageMs >= 5 * MINUTE_MS) ||
        (keep?.pickedUp !== undefined && ageMs >= 2 * MINUTE_MS)
      );
    });
    if (!isAllowed)
      this.#observer.violate(`${trackingId} is removed from the inbox, and its rule ${identity} keeps it`);
  }

  /** Each part appears once. Only a power cut may take it back. */
  #checkFirst(delivery: Delivered, what: string, to: string): boolean {
    const wasSeen = delivery.seen.has(what);
    const isAgain = wasSeen && !this.#world.calm.hadPowerCut(delivery.atMs);
    if (isAgain || delivery.paths.includes(to)) this.#observer.violate(`I2: ${to} appears a second time`);
    delivery.seen.set(what, to);
    return !wasSeen;
  }

  /** Consumers can use it. */
  #checkRights({ sites, of, trackingId }: Delivered, to: string, entry: AnyEntry): void {
    const modes = handoffsOf(sites, of.address, of.transfer).map(
      ({ fileMode = "0640", folderMode = "0750" }) =>
        Number.parseInt(entry.kind === "folder" ? folderMode : fileMode, 8),
    );
    const permissions = entry.mode & 0o777;
    if (!modes.includes(permissions))
      this.#observer.violate(
        `${to} appears, and consumers cannot use it: its mode is ${permissions.toString(8)}`,
      );
    if (entry.uid !== (process.geteuid?.() ?? 0))
      this.#observer.violate(`${trackingId} belongs to user ${entry.uid}`);
  }

  /** It appears where its record says, and after that record is durable. */
  #checkRecord(delivery: Delivered, from: string, to: string): void {
    const { record, name, round } = delivery;
    const { inbox } = record;
    const work = from.slice(0, from.indexOf("/staging/"));
    const roots = inbox === undefined ? [INBOX, MOVED_INBOX] : [resolveInbox(work, inbox)];
    if (!roots.some((root) => to.startsWith(`${root}/`)))
      this.#observer.violate(`I2: ${to} appears, and its record says ${roots}`);
    delivery.paths.push(to);
    delivery.hasAppeared = true;
    if (!this.#isRecordDurable(from, name, round))
      this.#observer.violate(`I2: ${to} appears before its record is durable`);
  }

  #isRecordDurable(from: string, name: string, round: number): boolean {
    const root = from.slice(0, from.indexOf("/.inlet/"));
    const path = endOf(root, name, round);
    const folder = this.#world.disk.tryGet(path.slice(0, path.lastIndexOf("/")));
    const entry =
      folder?.kind === "folder" ? folder.durableEntries.get(`${name}.end-${round}.json`) : undefined;
    return entry?.kind === "file" && isSynced(entry);
  }

  // Its content

  /** The folder that appears now has all that was sent, and is on the disk. */
  #judgeFolder(delivery: Delivered, path: string, folder: FolderEntry): void {
    const { trackingId } = delivery;
    const found = this.#readSynced(delivery, path, folder);
    const circumstances = this.#observer.circumstances(delivery);
    const marker = delivery.sites
      .map((site) => handoffOf(site, delivery.of.address).marker)
      .find((name) => name !== undefined && found.has(name));
    if (marker !== undefined) found.delete(marker);
    this.#report(checkBytes(found, circumstances));
    this.#checkSize(delivery, found);
    const own = ["transfer.json", "SHA256SUMS"];
    const manifest = parseManifest(found.get("transfer.json"));
    const sums = found.get("SHA256SUMS");
    const sent = manifest?.files.filter(({ from }) => from === undefined);
    const originals = new Map(sent?.map(({ name, originalName }) => [name, originalName]));
    const names = [...found.keys()].filter((name) => !own.includes(name));
    this.#report(checkNames(names, circumstances, originals));
    if (manifest !== undefined) this.#report(checkManifest(manifest, found, circumstances));
    if (sums !== undefined) this.#report(checkSums(sums.toString(), found, trackingId));
    this.#checkManifestIsWanted(delivery, manifest !== undefined, sums !== undefined);
    if (manifest !== undefined) this.#claimId(delivery, manifest);
  }

  /** The files of a folder, all of which are on the disk. */
  #readSynced(delivery: Delivered, path: string, folder: FolderEntry): Map<string, Buffer> {
    const { trackingId } = delivery;
    const found = new Map<string, Buffer>();
    for (const [file, entry] of folder.entries) {
      if (!isSynced(entry)) this.#observer.violate(`I1: ${trackingId}/${file} appears, and is not synced`);
      if (folder.durableEntries.get(file) !== entry)
        this.#observer.violate(`I1: the name ${file} is not synced`);
      if (entry.kind === "file") found.set(file, entry.bytes);
      else this.#observer.violate(`I1: ${trackingId}/${file} is no file`);
      this.#checkRights(delivery, `${path}/${file}`, entry);
    }
    return found;
  }

  /** With everything that was unpacked from it, it is within the limits of today or of the time at which its attempt began. */
  #checkSize({ sites, record, trackingId, of }: Delivered, found: Found): void {
    if (record.released !== undefined) return;
    const own = ["transfer.json", "SHA256SUMS", "message.eml"];
    const bytes = [...found].reduce((sum, [name, each]) => sum + (own.includes(name) ? 0 : each.length), 0);
    const wasReleased = this.#observer.orders.some(({ act, key }) => act === "release" && key === of.key);
    const isWithin = sites.some(
      ({ maxBytes = 1_000_000, maxFiles = 1_000 }) => bytes <= maxBytes && found.size - 3 <= maxFiles,
    );
    if (!isWithin && !wasReleased)
      this.#observer.violate(`I8: ${trackingId} has ${bytes} bytes, which is more than the limits allow`);
  }

  /** The manifest and its sums are in the folder if, and only if, they belong there. */
  #checkManifestIsWanted(delivery: Delivered, hasManifest: boolean, hasSums: boolean): void {
    const { sites, of, trackingId } = delivery;
    const places = new Set(
      handoffsOf(sites, of.address, of.transfer).map(({ manifest = "inside" }) => manifest),
    );
    // Any of them may have applied.
    if (places.size !== 1) return;
    if (places.has("inside") !== hasManifest || hasSums !== hasManifest)
      this.#observer.violate(`${trackingId} appears ${hasManifest ? "with" : "without"} its manifest`);
  }

  /** A file that is delivered by itself, or one of ours beside others. */
  #judgeFile(
    delivery: Delivered,
    path: string,
    entry: AnyEntry,
    { isSent, isFirst }: { readonly isSent: boolean; readonly isFirst: boolean },
  ): void {
    if (entry.kind !== "file") return;
    if (isSent) {
      this.#judgeSentFile(delivery, path, isFirst);
      return;
    }
    const isManifest = entry.bytes.length > 0 && entry.bytes[0] === 0x7b;
    if (!isManifest || delivery.record.placement !== "files") return;
    // It comes last, so everything is there now, or was taken.
    const manifest = parseManifest(entry.bytes);
    if (manifest !== undefined) this.#claimId(delivery, manifest);
  }

  /** A power cut may take back what a consumer has moved away before it was synced: then it appears once more. */
  #judgeSentFile(delivery: Delivered, path: string, isFirst: boolean): void {
    const { trackingId, seen } = delivery;
    const name = path.slice(path.lastIndexOf("/") + 1);
    this.#report(checkNames([name], this.#observer.circumstances(delivery)));
    if (!name.startsWith(`${trackingId}_`)) this.#observer.violate(`${trackingId} appears as ${name}`);
    if (isFirst && [...seen.keys()].some((what) => what.startsWith(".beside")))
      this.#observer.violate(`I1: ${path} appears after what says that all is there`);
  }

  /** Its delivery-id stays the same, and is that of no other delivery. */
  #claimId(delivery: Delivered, { deliveryId }: Manifest): void {
    const other = this.#observer.deliveries.find((each) => each !== delivery && each.id === deliveryId);
    if (other !== undefined && other.key !== delivery.key)
      this.#observer.violate(`${delivery.trackingId} has the id of another delivery`);
    if (delivery.id !== undefined && delivery.id !== deliveryId)
      this.#observer.violate(`${delivery.trackingId} has two ids`);
    delivery.id = deliveryId;
  }

  #report(problems: Iterable<string>): void {
    for (const text of problems) this.#observer.violate(text);
  }

  // Claims of names

  /** The running process gives a folder of claims its place. */
  claimed(path: string, entry: AnyEntry | undefined): void {
    if (!path.includes("/.inlet/names/") || entry?.kind !== "folder") return;
    for (const claim of entry.entries.values()) this.#claimants.set(claim, machine());
  }

  /**
   * A claim is removed: by its process, because its round has ended and no part of it is left in its stage, or because no attempt
   * with a stage is left that could end the round.
   */
  released(path: string, entry: AnyEntry): void {
    const [, owner, name = "", , round] = CLAIM.exec(path) ?? [];
    if (owner === undefined || this.#claimants.get(entry) === machine()) return;
    const { disk } = this.#world;
    const root = path.slice(0, path.indexOf("/.inlet/"));
    const text = disk.text(endOf(root, name, Number(round)));
    const { token, placement } = JSON.parse(text ?? "{}") as { token?: string; placement?: unknown };
    const staged = `${root}/.inlet/staging/${owner}~${token}`;
    // Without a placement, a power cut may have brought back files beside the stage that are of no use.
    const folders = placement === undefined ? [staged] : [staged, `${staged}.beside`];
    const isLeft = folders.some((each) => disk.tryGet(each) !== undefined);
    const isStage = (each: string) => each.startsWith(`${owner}~`) && /~[0-9a-f]+$/.test(each);
    const isOpen = text === undefined && disk.names(`${root}/.inlet/staging`).some(isStage);
    if (isOpen || isLeft) this.#observer.violate(`the claim of ${owner} is removed, and it is not placed`);
  }

  get #nowMs(): number {
    return this.#world.schedule.nowMs;
  }
}
