/** The people around a daemon: its operator, the consumers of its deliveries, and others who change what is on its disk. */
import { hash } from "node:crypto";
import { Secret } from "../../src/base/secret.ts";
import { giveAnswer } from "../../src/inbox/work-folder.ts";
import { withKeys } from "../../src/ledger/keys.ts";
import type { Decision } from "../../src/model/order.ts";
import { isDoubtful, type TransferRecord, waitsForPassword } from "../../src/model/record.ts";
import { type ActTools, objectionToAct, submitAct, supplyPassword } from "../../src/operate/act.ts";
import { findQuestion } from "../../src/operate/records.ts";
import type { OnChange, Snapshot } from "./ground/disk.ts";
import { Process } from "./ground/process.ts";
import { CONSUMER, type Delivered } from "./judge/observer.ts";
import type { Happening, Loss, OrderAct } from "./plan/plan.ts";
import { ACKNOWLEDGEMENTS, INBOX, MOVED_INBOX, OUTSIDE, STATE } from "./plan/site.ts";
import type { World } from "./world.ts";

const MINUTE_MS = 60_000;
const HUGE_BYTES = 500_000_000;
const OPERATOR = { who: "anna", from: "desk" };
/** A delivery may have been on its way when a backup was made. */
const BACKUP_MS = 1_000;
/** Which of the foreign things is a link in place of the sender's folder. */
const LINK = 5;

/** Each of its methods is one thing that somebody does. */
export class People {
  /** The process of the operator's commands, whom nothing disturbs. */
  readonly operator: Process;
  /** A consumer takes each delivery in the moment in which it appears. */
  isGreedy = false;
  readonly #world: World;
  #backup:
    | {
        readonly atMs: number;
        readonly spent: ReadonlyMap<string, number>;
        readonly folders: ReadonlyMap<string, Snapshot>;
      }
    | undefined;

  constructor(world: World) {
    this.#world = world;
    this.operator = new Process("operator", world);
    this.operator.isPrompt = true;
  }

  // The operator

  order(trackingId: string, act: OrderAct, withPassword: boolean, next?: OrderAct): void {
    this.#command(async () => {
      await this.#order(act, trackingId, withPassword);
      if (next !== undefined) await this.#order(next, trackingId, false);
    });
  }

  /** `isCommon`: for every mailbox that received the transfer. */
  supply(trackingId: string, isRight: boolean, isCommon: boolean): void {
    this.#command(async () => {
      for (const record of await this.#world.ledger.findAll(trackingId)) {
        if (waitsForPassword(record) || this.#isTried(record))
          await this.#supplyFor(record, isRight, isCommon);
      }
    });
  }

  /** The password that was supplied before is tried now. */
  #isTried({ state, transferId }: TransferRecord): boolean {
    const { supplies } = this.#world.observer;
    return state === "downloading" && supplies.some(({ record }) => record.transferId === transferId);
  }

  /** The operator's command may fail: then nothing was promised. */
  #command(work: () => Promise<void>): void {
    this.operator
      .run(work)
      .catch((error: unknown) => this.#world.note(`the command fails: ${String(error)}`));
  }

  async #tools(): Promise<ActTools> {
    const { work, site, settings } = this.#world;
    return {
      work,
      inbox: site.inbox,
      state: STATE,
      mailboxes: await withKeys(work, settings.mailboxes, "foreseen"),
      asOwner: (_folder, write) => write(),
      isRunning: async () => true,
    };
  }

  async #order(act: OrderAct, trackingId: string, withPassword: boolean): Promise<void> {
    const { observer, schedule } = this.#world;
    const hasPassword = withPassword && act === "retry";
    for (const record of await this.#world.ledger.findAll(trackingId)) {
      const objection = await objectionToAct(await this.#tools(), act, record);
      this.#world.note(
        `the operator: ${act} ${trackingId} of ${record.mailbox}: ${objection?.detail ?? "given"}`,
      );
      if (objection !== undefined) continue;
      const given = observer.ordered(act, record, hasPassword);
      try {
        await submitAct(await this.#tools(), act, record, OPERATOR);
      } catch (error) {
        observer.orders.splice(observer.orders.indexOf(given), 1);
        throw error;
      }
      given.atMs = schedule.nowMs;
      observer.accepted(given);
      if (hasPassword) await this.#supplyFor(record, true, false);
    }
  }

  async #supplyFor(record: TransferRecord, isRight: boolean, isCommon: boolean): Promise<void> {
    const { observer, random, supplying } = this.#world;
    const { transfer } = observer.received.get(record.transferId) ?? {};
    const right = transfer?.password ?? "";
    const password = new Secret(isRight ? right : `Secret-wrong-${random.int(3)}`);
    const objection = await objectionToAct(await this.#tools(), "password", record, password);
    if (objection !== undefined) {
      this.#world.note(`the operator's password is refused: ${objection.detail}`);
      return;
    }
    supplying.add(`${transfer?.service} ${record.trackingId} ${password.reveal()}`);
    await supplyPassword(await this.#tools(), [record], OPERATOR, password, isCommon);
    this.#world.note(
      `the operator supplies a ${isRight ? "right" : "wrong"} password for ${record.trackingId}`,
    );
    observer.supplied(record, isRight, isCommon);
  }

  /** Answers what Inlet asks about records that are gone or older. */
  decide(decision: Decision): void {
    this.#command(async () => {
      const { settings, observer } = this.#world;
      const question = await findQuestion(settings);
      const waiting = (await this.#world.recordsNow()).filter(isDoubtful);
      if (question === undefined && waiting.length === 0) return;
      this.#world.note(`the operator: ${decision}, because ${question?.detail ?? "transfers wait"}`);
      if (decision === "anew") {
        // The operator wants whatever comes again.
        for (const { key } of observer.received.values())
          observer.excused.set(key, (observer.excused.get(key) ?? 0) + 1);
      }
      if (question !== undefined) await giveAnswer(settings, question, decision, OPERATOR);
      for (const { trackingId } of waiting)
        await this.#order(decision === "adopt" ? "discard" : "retry", trackingId, false);
    });
  }

  // Consumers

  consume(trackingId: string, how: (Happening & { kind: "consume" })["how"]): void {
    const { disk, observer } = this.#world;
    for (const delivery of observer.deliveries.filter((each) => each.trackingId === trackingId)) {
      const isFolder = (path: string) => disk.tryGet(path)?.kind === "folder";
      const there = delivery.paths.filter((path) => disk.tryGet(path) !== undefined);
      if (how === "take") this.#takeParts(delivery, there);
      else if (how === "pick") this.#takeParts(delivery, there.filter((path) => !isFolder(path)).slice(0, 1));
      else
        this.#acknowledge(delivery, there.filter(isFolder), ACKNOWLEDGEMENTS[how === "acknowledge" ? 0 : 1]);
    }
  }

  #takeParts({ paths }: Delivered, some: readonly string[]): void {
    for (const path of some) {
      this.#take(path);
      paths.splice(paths.indexOf(path), 1);
    }
  }

  #acknowledge({ acknowledged }: Delivered, folders: readonly string[], name: string): void {
    for (const folder of folders) {
      // A full disk refuses it.
      this.#world.disk.open(`${folder}/${name}`, "a", 0o644, CONSUMER).close();
      acknowledged.add(name);
    }
  }

  /** The manifest of a delivered folder. */
  replace(trackingId: string, by: (Happening & { kind: "replace" })["by"]): void {
    const { disk, observer } = this.#world;
    for (const delivery of observer.deliveries.filter((each) => each.trackingId === trackingId)) {
      for (const folder of delivery.paths) {
        const path = `${folder}/transfer.json`;
        if (disk.tryGet(path)?.kind !== "file") continue;
        delivery.isTouched = true;
        disk.unlink(path);
        if (by === "huge") disk.makeSparse(path, HUGE_BYTES, CONSUMER);
        if (by === "pipe") disk.makePipe(path, CONSUMER);
        if (by === "link") disk.symlink(path, path, CONSUMER);
      }
    }
  }

  /** To be called after each change of the disk. */
  saw({ type }: Parameters<OnChange>[0]): void {
    if (this.isGreedy && type === "rename") this.#world.schedule.after(0, () => this.#takeAll());
  }

  #takeAll(): void {
    const { observer } = this.#world;
    observer.asOutsider(() => {
      for (const { trackingId } of observer.deliveries) this.consume(trackingId, "take");
    });
  }

  /** Moves it to where nobody looks. */
  #take(path: string): void {
    const { disk, schedule } = this.#world;
    disk.rename(path, `/data/taken/${hash("sha1", `${path} ${schedule.nowMs}`).slice(0, 12)}`);
  }

  // Others

  /** Something that is not ours, where a delivery may go. */
  putForeign(trackingId: string, sender: string, number: number): void {
    const { observer, site } = this.#world;
    const [box] = site.boxes;
    const name = observer.nameOf(box?.email ?? "") ?? box?.name ?? box?.email;
    const parent = `${site.inbox}/${name}/${sender}`;
    if (number === LINK) {
      this.#putLink(parent);
      return;
    }
    const folder = `${parent}/${trackingId}`;
    const paths = [folder, `${folder}.transfer.json`, `${folder}.done`, `${site.inbox}/urgent/${trackingId}`];
    observer.putForeign(paths[number % paths.length] as string, CONSUMER);
  }

  /** For a minute, a link to the outside is in place of this folder. */
  #putLink(path: string): void {
    const { disk, schedule, calm, observer } = this.#world;
    if (disk.tryGet(path)?.kind !== "folder") return;
    this.#take(path);
    disk.symlink(OUTSIDE, path, CONSUMER);
    schedule.after(MINUTE_MS, () => observer.asOutsider(() => disk.unlink(path)));
    calm.disturb(2 * MINUTE_MS);
  }

  /** Bytes change on the disk, and nobody is told. */
  tamper(trackingId: string, where: (Happening & { kind: "tamper" })["where"]): void {
    const { disk, work, daemons, observer } = this.#world;
    // What a running daemon has in its hands is its own.
    const isIdle = daemons.running?.stop.signal.aborted !== false;
    if (where === "staging" && !isIdle) return;
    const delivered = observer.deliveries.filter((each) => each.trackingId === trackingId);
    const kept = disk.names(`${work}/${where}`).filter((name) => name.startsWith(`${trackingId}.`));
    const folders =
      where === "inbox"
        ? delivered.flatMap(({ paths }) => paths)
        : kept.map((name) => `${work}/${where}/${name}`);
    for (const folder of folders) {
      if (!this.spoil(folder, trackingId)) continue;
      this.#world.note(`somebody changes bytes in ${folder}`);
      for (const delivery of [...observer.deliveries]) {
        if (delivery.paths.includes(folder)) delivery.isTouched = true;
        if (folder.endsWith(`~${delivery.token}`)) observer.spoil(delivery);
      }
    }
  }

  /** Whether there were bytes to change in this folder. */
  spoil(folder: string, trackingId: string): boolean {
    const { disk, observer } = this.#world;
    const name = disk.names(folder).find((each) => !each.endsWith(".json") && each !== "SHA256SUMS");
    const entry = name === undefined ? undefined : disk.tryGet(`${folder}/${name}`);
    if (entry?.kind !== "file" || entry.bytes.length === 0) return false;
    entry.bytes = Buffer.alloc(entry.bytes.length, "?");
    entry.durableBytes = entry.bytes;
    observer.damaged.add(trackingId);
    return true;
  }

  backUp(): void {
    const { disk, work, schedule } = this.#world;
    const there = ["/data", STATE, work].filter((path) => disk.tryGet(path) !== undefined);
    this.#backup = {
      atMs: schedule.nowMs,
      spent: this.#world.requests.recorded,
      folders: new Map(there.map((path) => [path, disk.snapshot(path)])),
    };
  }

  /** The folders of a daemon that is stopped are lost, or come from a backup. */
  lose(loss: Loss): void {
    this.#world.note(() => `a person: ${JSON.stringify(loss)}`);
    if (loss.what === "inbox") {
      this.#changeInbox(loss.how);
      return;
    }
    const { disk, work } = this.#world;
    this.#world.hasLost = true;
    const folders = { work: [work], state: [STATE], both: [work, STATE], all: ["/data", STATE] }[loss.what];
    if (loss.how === "restored") {
      this.#restore(folders, loss.what);
      return;
    }
    for (const folder of folders) disk.removeTree(folder);
    if (folders.includes(work)) this.#world.requests.recordsLost(new Map());
    if (folders.includes(STATE)) disk.prepare(STATE, 0o755, 0);
  }

  #changeInbox(how: (Loss & { what: "inbox" })["how"]): void {
    const { disk, observer } = this.#world;
    if (how !== "moved") this.#world.hasLost = true;
    if (how === "copied") {
      disk.copyTree(INBOX, MOVED_INBOX, { without: (name) => name.startsWith(".") });
    }
    if (how !== "moved") return;
    disk.moveTree(INBOX, MOVED_INBOX);
    for (const { paths, seen } of observer.deliveries) {
      for (const [at, path] of paths.entries()) paths[at] = path.replace(INBOX, MOVED_INBOX);
      for (const [what, path] of seen) seen.set(what, path.replace(INBOX, MOVED_INBOX));
    }
  }

  #restore(folders: readonly string[], what: Loss["what"]): void {
    const backup = this.#backup;
    if (backup === undefined) return;
    for (const folder of folders) {
      const snapshot = backup.folders.get(folder);
      if (snapshot !== undefined) this.#world.disk.restore(folder, snapshot);
    }
    if (what !== "state") this.#world.requests.recordsLost(backup.spent);
    if (what === "both" || what === "all") this.#excuseSince(backup.atMs, what === "all");
  }

  /** What was delivered and taken since a backup of everything cannot be known. */
  #excuseSince(atMs: number, isInboxOlder: boolean): void {
    const { disk, observer } = this.#world;
    const { excused, deliveries } = observer;
    // Nobody can know what an empty folder was: it may be a consumer's.
    const hasContent = (path: string) => {
      const entry = disk.tryGet(path);
      return entry?.kind === "folder" ? entry.entries.size > 0 : entry !== undefined;
    };
    for (const { key, atMs: deliveredMs, paths } of deliveries) {
      const isThere = paths.some(hasContent);
      if (deliveredMs >= atMs - BACKUP_MS && (isInboxOlder || !isThere)) {
        excused.set(key, (excused.get(key) ?? 0) + 1);
      }
    }
  }
}
