/**
 * The protocol that delivers each transfer once. Its only primitive is creating a file that must not exist yet.
 *
 * Round R of a transfer is open until `NAME.end-R.json` exists. The first process that creates this record decides how
 * the round ended. `NAME.begin-R.json` begins the next round. Neither record is ever changed.
 *
 * Each attempt at a round has a random token, a ticket (`staging/NAME~R~TOKEN.ticket`) and a staged folder. To deliver:
 *   1. the staged folder is complete, and the folder and `staging/` are synced;
 *   2. the end record is written to the ticket, synced, and linked to its name, and the folder of the record is synced;
 *   3. the staged folder that the end record names is renamed to its target, and the target's parent is synced; a delivery
 *      with a placement is placed part by part instead.
 * Any process may do step 3, at any time and any number of times. A missing staged folder means that step 3 was done.
 *
 * The attempt itself may remove its staged folder. Other processes may do so once the round has ended with another
 * token, or after removing the ticket: without its ticket, an attempt cannot end the round.
 */

import { dirname } from "node:path";
import { FolderSyncs, meansNoLinks, tryUnlink } from "../base/disk.ts";
import { OnceFiles } from "../base/durable.ts";
import { Fault, systemCode } from "../base/faults.ts";
import type { OpenFile } from "../base/files.ts";
import { randomHex } from "../base/random.ts";
import type { Sum } from "../base/sums.ts";
import { KINDS, parseRoundKey, roundKey } from "../model/outbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { type BeginRecord, type EndRecord, formatRecord, Inboxes, readRecord, stageOf } from "./format.ts";
import { keyOf, nameOf, parseStaged, type Stage, type StageId, stagedEntry } from "./paths.ts";
import { PARENT, Placing, type PlacingOptions } from "./placing.ts";
import { Quarantine, type QuarantineReason } from "./quarantine.ts";

/** The last round of a transfer, according to its records. */
export interface Current {
  readonly round: number;
  /** Missing for round 1. */
  readonly begin: BeginRecord | undefined;
  /** Missing while the round is open. */
  readonly end: EndRecord | undefined;
}

interface OwnStage extends Stage {
  isNew: boolean;
  /** Open while the attempt runs. */
  ticket: OpenFile | undefined;
  /** The ticket may hold the end record, and may be linked to its name. */
  isWritten: boolean;
  isInUse: boolean;
}

export interface RoundsOptions extends PlacingOptions {
  /** No other process works here, so the ticket of an ended round stays until `close`. */
  readonly isAlone?: boolean;
}

export class Rounds {
  readonly disk: RoundsOptions["disk"];
  readonly paths: RoundsOptions["paths"];
  readonly syncs: FolderSyncs;
  readonly quarantine: Quarantine;
  readonly once: OnceFiles;
  readonly placing: Placing;
  readonly #inboxes: Inboxes;
  readonly #options: RoundsOptions;
  /** The stages of this process, for rounds that may be open, by `NAME~R`. */
  readonly #stages = new Map<string, OwnStage>();

  constructor(options: RoundsOptions) {
    const { disk, paths, root } = options;
    this.#options = options;
    this.disk = disk;
    this.paths = paths;
    this.syncs = new FolderSyncs(disk);
    this.quarantine = new Quarantine(paths.work, disk, this.syncs);
    this.once = new OnceFiles(disk, this.syncs, paths.temporary);
    this.#inboxes = new Inboxes(paths, root);
    this.placing = new Placing(options, this.syncs);
  }

  /** Throws `RECORD_UNREADABLE`. */
  async current(name: string): Promise<Current> {
    let begin: BeginRecord | undefined;
    for (let round = 1; ; round++) {
      const end = await this.readEnd(name, round);
      const next = end && (await this.#read(this.paths.begin(name, round + 1)));
      if (next === undefined) return { round, begin, end };
      begin = next;
    }
  }

  /** How a round ended; `undefined` while it is open. Throws `RECORD_UNREADABLE`. */
  readEnd(name: string, round: number): Promise<EndRecord | undefined> {
    return this.#read(this.paths.end(name, round));
  }

  /** Begins a round, after the one before it has ended. False if it has begun before. */
  async begin(record: BeginRecord): Promise<boolean> {
    const name = nameOf(record);
    // The process that ended the round before may have stopped before the sync.
    await this.syncs.sync(this.paths.ledgerFolder(name));
    return this.once.create(this.paths.begin(name, record.round), formatRecord(record));
  }

  /** Ends a round without content. False if it has ended before. */
  end(record: TransferRecord): Promise<boolean> {
    return this.once.create(this.paths.end(nameOf(record), record.round), formatRecord(record));
  }

  /** This process's stage for a round: its earlier one, unless that is in use. */
  async openStage(record: TransferRecord): Promise<Stage> {
    const { round } = record;
    const name = nameOf(record);
    const key = roundKey({ name, round });
    const known = this.#stages.get(key);
    if (known?.isInUse === false) {
      known.isInUse = true;
      // Content that the round has ended with must not change. Another process may have revoked the stage.
      const isSpent = known.isWritten && (await this.readEnd(name, round)) !== undefined;
      if (!isSpent && (await this.disk.kindOf(this.paths.ticket(known))) !== undefined) return known;
      if (isSpent) this.#stages.delete(key);
      else await this.dropStage(known);
    }
    const id: StageId = { name, round, token: randomHex(8) };
    const ticket = await this.disk.create(this.paths.ticket(id), 0o600);
    const stage: OwnStage = {
      ...id,
      folder: this.paths.staged(id),
      zip: this.paths.zip(id),
      beside: this.paths.beside(id),
      placement: this.paths.placement(id),
      isNew: true,
      proof: undefined,
      ticket,
      isWritten: false,
      isInUse: true,
    };
    try {
      await this.disk.makeFolder(stage.folder, this.#options.folderMode(record) | 0o700);
    } catch (error) {
      await this.#forget(stage);
      throw error;
    }
    if (!this.#stages.has(key)) this.#stages.set(key, stage);
    return stage;
  }

  /** The attempt is over for now. Its content stays for the next attempt of this process. */
  async closeStage(stage: Stage): Promise<void> {
    const own = stage as OwnStage;
    own.isInUse = false;
    own.isNew = false;
    own.proof = undefined;
    await closeTicket(own);
  }

  /** Removes the stage, unless the round has ended with it: a disk may fail after the end was decided. */
  async dropStage(stage: Stage): Promise<void> {
    const own = stage as OwnStage;
    await this.#forget(own);
    if ((await this.endedBy(own)) !== "this") await this.#remove(own);
  }

  /** Whether a worker of this process has a stage of the round. */
  isInUse(record: TransferRecord): boolean {
    return this.#stages.get(keyOf(record))?.isInUse === true;
  }

  /** Which attempt has ended the round of a stage; `undefined` while the round is open. */
  async endedBy({ name, round, token }: StageId): Promise<"this" | "another" | undefined> {
    const end = await this.readEnd(name, round);
    if (end === undefined) return undefined;
    return end.token === token ? "this" : "another";
  }

  /** Folders with content of the same transfer, of other attempts or in quarantine. Their files may be copied. */
  async otherContent(stage: StageId): Promise<string[]> {
    const { name, round } = stage;
    const others = (await this.otherStages(stage)).map((id) => this.paths.staged(id));
    return round === 1 ? others : [...others, this.quarantine.folderOf(name, round - 1)];
  }

  /** The other attempts' stages for a round. */
  async otherStages(id: StageId): Promise<StageId[]> {
    const stages = await this.stagesOf(id.name);
    return stages.filter(({ round, token }) => round === id.round && token !== id.token);
  }

  /** The stages of all attempts at any round of a transfer. */
  async stagesOf(name: string): Promise<StageId[]> {
    const found = (await this.disk.list(this.paths.staging)).map(parseStaged);
    return found.filter((it) => it !== undefined && it.suffix === "" && it.name === name) as StageId[];
  }

  /**
   * Removes the ticket of another attempt, then its content. Safe while that attempt runs: if it has ended the round
   * meanwhile, its content is placed.
   */
  async revoke(id: StageId): Promise<void> {
    await tryUnlink(this.disk, this.paths.ticket(id));
    await this.syncs.sync(this.paths.staging);
    const end = await this.readEnd(id.name, id.round);
    if (end?.token === id.token) await this.place(end);
    else await this.#remove(id);
  }

  /** Step 1. Every file in the stage is synced already; this syncs the folder and `staging/`. */
  async seal({ folder }: Stage): Promise<void> {
    await this.syncs.sync(folder);
    await this.syncs.sync(this.paths.staging);
  }

  /** The same for the quarantine: syncs every file in the stage first, and adds the reason. */
  async sealForQuarantine(stage: Stage, reason: QuarantineReason): Promise<void> {
    await this.quarantine.prepare(stage.folder, reason);
    await this.seal(stage);
  }

  /** Step 2. False if the round has ended before, or the ticket was removed: the stage is of no use then. */
  async endWith(stage: Stage, record: TransferRecord): Promise<boolean> {
    const own = stage as OwnStage;
    const { name, round, token } = stage;
    const target = this.paths.end(name, round);
    // An earlier call may have linked the ticket and failed afterwards.
    if (own.isWritten && (await this.readEnd(name, round)) !== undefined) return this.#isOurs(own);
    own.isWritten = true;
    const text = formatRecord(this.#inboxes.toStored({ ...record, token }));
    try {
      own.ticket ??= await this.disk.truncate(this.paths.ticket(own));
      const { ticket } = own;
      await ticket.write(text);
      await ticket.sync();
      await closeTicket(own);
      await this.disk.link(this.paths.ticket(own), target);
    } catch (error) {
      await closeTicket(own);
      if (meansNoLinks(error)) return this.once.writeInPlace(target, text);
      const code = systemCode(error);
      const isRevoked = code === "ENOENT" && (await this.disk.kindOf(this.paths.ticket(own))) === undefined;
      if (code !== "EEXIST" && !isRevoked) throw error;
      // A file server may have linked the ticket and lost its answer.
      return this.#isOurs(own);
    }
    await this.syncs.sync(dirname(target));
    return true;
  }

  async #isOurs(id: StageId): Promise<boolean> {
    if ((await this.endedBy(id)) !== "this") return false;
    await this.syncs.sync(this.paths.ledgerFolder(id.name));
    return true;
  }

  /**
   * Step 3: moves the staged folder that an end record names to the inbox or the quarantine. False if it was moved
   * before. `stage`: has just ended the round with this record, which is synced. Any other delivery is hashed again first.
   */
  async place(end: EndRecord, stage?: Stage): Promise<boolean> {
    const id = stageOf(end);
    if (id === undefined) return false;
    // The record's creator may have stopped before the sync: after a power cut, the round would be open again.
    if (stage === undefined) {
      if (await this.isPlaced(end)) return false;
      await this.syncs.sync(this.paths.ledgerFolder(id.name));
    }
    await this.#placeContent(end, id, stage?.proof);
    this.#stages.delete(roundKey(id));
    // The round has ended: the stages of other attempts are of no use.
    for (const other of await this.otherStages(id)) await this.#remove(other);
    await this.#clearEarlier(id);
    if (!this.#options.isAlone) await this.close(end);
    return true;
  }

  async #placeContent(end: EndRecord, id: StageId, proof?: Sum): Promise<void> {
    if (end.state === "delivered") return this.placing.place(id, end, this.#inboxes.rootOf(end), proof);
    // An earlier attempt with this stage may have prepared a delivery.
    await this.placing.drop(id);
    await this.quarantine.moveIn(this.paths.staged(id), id.name, id.round);
    // An order may have ended the next round meanwhile, and found nothing to remove.
    const next = id.round + 1;
    if ((await this.readEnd(id.name, next)) !== undefined) await this.quarantine.clear(id.name, next);
  }

  /** The earlier rounds' content in quarantine is delivered now, or replaced. */
  async #clearEarlier({ name, round }: StageId): Promise<void> {
    if (round > 1) await this.quarantine.clear(name, round);
  }

  /**
   * The last step of a round whose content is placed: removes its ticket, so that recovery does not return the round again.
   * A crash may have come before the quarantine was cleared.
   */
  async close(end: EndRecord): Promise<void> {
    const id = stageOf(end);
    if (id === undefined) return;
    await this.#clearEarlier(id);
    await tryUnlink(this.disk, this.paths.ticket(id));
  }

  /** Whether step 3 was done. */
  async isPlaced(end: EndRecord): Promise<boolean> {
    const id = stageOf(end);
    if (id === undefined) return true;
    if (end.placement !== undefined) return !(await this.placing.isOpen(id));
    return (await this.disk.kindOf(this.paths.staged(id))) === undefined;
  }

  /**
   * Finishes rounds that other attempts have ended: places the staged folders that end records name, and removes the
   * others. Leaves open rounds alone. May run beside workers, and twice at the same time. `onFailed` gets the end record
   * of content that cannot be placed.
   */
  async recover(onFailed: (entry: string, error: unknown, end?: EndRecord) => void): Promise<EndRecord[]> {
    await this.placing.claims
      .clear((owner) => this.#isOver(owner))
      .catch((error: unknown) => onFailed("", error));
    const ids = new Map<string, StageId>();
    for (const entry of await this.disk.list(this.paths.staging)) {
      const found = parseStaged(entry);
      // Left by a crash. A process that needs it now makes another one.
      if (entry.endsWith(PARENT)) await this.disk.removeFolder(this.paths.inStaging(entry)).catch(() => {});
      if (found !== undefined) ids.set(stagedEntry(found), found);
    }
    const recovered: EndRecord[] = [];
    for (const [entry, id] of ids) {
      // A worker of this process is using the stage.
      const own = this.#stages.get(roundKey(id));
      if (own?.token === id.token && own.isInUse) continue;
      let end: EndRecord | undefined;
      try {
        end = await this.readEnd(id.name, id.round);
        if (end !== undefined && (await this.#finish(end, id))) recovered.push(end);
      } catch (error) {
        onFailed(entry, error, end?.token === id.token ? end : undefined);
      }
    }
    return recovered;
  }

  /** Whether a round, named by `NAME~R`, has ended and its content is placed. */
  async #isOver(owner: string): Promise<boolean> {
    const { name, round } = parseRoundKey(owner);
    // A damaged record is reported elsewhere.
    const end = await this.readEnd(name, round).catch(() => undefined);
    return end !== undefined && (await this.isPlaced(end));
  }

  /** Places a stage of an ended round, or removes it. False if the round was settled before. */
  async #finish(end: EndRecord, id: StageId): Promise<boolean> {
    if (end.token !== id.token) {
      await this.#remove(id);
      return false;
    }
    const isNew = await this.place(end).catch((error: unknown) => this.#giveUp(error, id));
    // A power cut may have brought back what an attempt had prepared beside its folder.
    if (end.placement === undefined) await this.placing.drop(id);
    // For a process that works alone, the ticket is still there only if a crash came before the round was settled.
    if (this.#options.isAlone) return isNew || (await this.disk.kindOf(this.paths.ticket(id))) !== undefined;
    await this.close(end);
    return isNew;
  }

  /** Content that has changed is given up once an operator has had the transfer delivered again. */
  async #giveUp(error: unknown, id: StageId): Promise<false> {
    const { name, round } = id;
    const isChanged = error instanceof Fault && error.code === "CONTENT_CHANGED";
    if (!isChanged || (await this.#read(this.paths.begin(name, round + 1))) === undefined) throw error;
    for (const kind of KINDS) await tryUnlink(this.disk, this.paths.outboxEntry(name, round, kind));
    await this.#remove(id);
    return false;
  }

  async #remove(id: StageId): Promise<void> {
    await tryUnlink(this.disk, this.paths.ticket(id));
    await this.placing.drop(id);
    await this.disk.removeTree(this.paths.staged(id));
    await tryUnlink(this.disk, this.paths.zip(id));
    const own = this.#stages.get(roundKey(id));
    if (own?.token === id.token && !own.isInUse) this.#stages.delete(roundKey(id));
  }

  async #forget(own: OwnStage): Promise<void> {
    const key = roundKey(own);
    if (this.#stages.get(key) === own) this.#stages.delete(key);
    await closeTicket(own);
    await tryUnlink(this.disk, this.paths.ticket(own));
  }

  async #read(path: string): Promise<(EndRecord & BeginRecord) | undefined> {
    const record = await readRecord(this.disk, path);
    return record && this.#inboxes.fromStored(record, path);
  }
}

/** Does not close it twice, even if closing fails: its number may belong to another file by then. */
async function closeTicket(own: OwnStage): Promise<void> {
  const { ticket } = own;
  own.ticket = undefined;
  await ticket?.close();
}
