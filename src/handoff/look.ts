/** One look at a delivery: whether its folder was picked up, is overdue, or was kept long enough. */
import type { Delivered } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import { isDelivered } from "../model/record.ts";
import { isOlder, judgeAge, type Moment } from "./age.ts";
import { deliveredOf } from "./delivery.ts";
import { type Entry, kindOf, openSteps } from "./entry.ts";
import {
  type FolderStatus,
  findByName,
  type Handover,
  locate,
  type Opened,
  openHandover,
} from "./handover.ts";
import type { Outbox, Stored } from "./outbox.ts";
import type { HandoffTools } from "./tools.ts";

/** What to do next for a delivery. `gone`: the folder that we were removing is gone. */
type Move =
  | { readonly type: "none" | "remove" | "gone" | "finish" }
  | { readonly type: "change"; readonly entry: Entry; readonly event?: "picked-up" | "overdue" };

const NONE: Move = { type: "none" };

/** Pure. Repeated with the changed entry until nothing is left to do now. */
export function nextMove(
  entry: Entry,
  status: FolderStatus,
  deliveredAt: string,
  handoff: Handoff,
  now: Moment,
): Move {
  if (status === "unknown") return NONE;
  if (entry.isRemoving) {
    if (status === "gone") return { type: "gone" };
    // Since the removal began, the folder may have been acknowledged, or the configuration may have changed.
    const kept = { ...entry, isRemoving: false };
    const move = nextMove(kept, status, deliveredAt, handoff, now);
    return move.type === "remove" ? move : { type: "change", entry: kept };
  }
  if (entry.pickedUpAt !== undefined) return afterPickUp(entry, entry.pickedUpAt, status, handoff, now);
  if (status !== "there") {
    const how = status === "gone" ? "taken" : "acknowledged";
    const pickedUpAt = new Date(now.atMs).toISOString();
    return { type: "change", entry: { ...entry, pickedUpAt, how, foundOld: undefined }, event: "picked-up" };
  }
  if (!entry.reported && isOlder(deliveredAt, handoff.expectWithinMs, now.atMs)) {
    return { type: "change", entry: { ...entry, reported: true }, event: "overdue" };
  }
  const keptMs = entry.isForeign ? undefined : handoff.keep?.notPickedUpMs;
  return judgeKept(entry, deliveredAt, keptMs, handoff, now);
}

function afterPickUp(entry: Entry, since: string, status: FolderStatus, handoff: Handoff, now: Moment): Move {
  const keptMs = handoff.keep?.pickedUpMs;
  const isFolderDone = status === "gone" || entry.isForeign || keptMs === undefined;
  if (!isFolderDone) return judgeKept(entry, since, keptMs, handoff, now);
  return openSteps(entry, handoff).length > 0 ? NONE : { type: "finish" };
}

function judgeKept(
  entry: Entry,
  since: string,
  keptMs: number | undefined,
  handoff: Handoff,
  now: Moment,
): Move {
  const { foundOld, isOver } = judgeAge(entry.foundOld, since, keptMs, now);
  if (foundOld !== entry.foundOld) return { type: "change", entry: { ...entry, foundOld } };
  // A pending step may need the folder.
  const isPending = openSteps(entry, handoff).some((step) => entry[step]?.state === "pending");
  return isOver && !isPending ? { type: "remove" } : NONE;
}

/**
 * Does everything that is to be done for a delivery now. Called while its entry may be changed; safe to be cut short.
 * Returns the delivery as it is then; `undefined` where it is finished, or not ready.
 */
export async function lookAt(
  tools: HandoffTools,
  outbox: Outbox,
  key: string,
): Promise<Handover | undefined> {
  const opened = await openHandover(tools, outbox, key);
  if (opened === undefined) return undefined;
  const look = new Look(tools, outbox, opened);
  while (!(await look.move())) {}
  return look.stored === undefined ? undefined : { ...opened, stored: look.stored };
}

/** Whether nothing has to be changed now. `isThorough`: the folder is found by its manifest. */
export async function isQuiet(
  tools: HandoffTools,
  handover: Handover,
  isThorough: boolean,
): Promise<boolean> {
  const { end, stored, delivery } = handover;
  const handoff = tools.handoff();
  if (!isDelivered(end) || kindOf(stored.entry, handoff) !== stored.kind) return false;
  const { folder, deliveredAt } = delivery;
  const byName = async () => ({ folder, status: await findByName(tools.inbox, delivery) });
  const located = await (isThorough ? locate(tools, handover) : byName());
  if (located?.folder !== folder) return located === undefined;
  return nextMove(stored.entry, located.status, deliveredAt, handoff, momentOf(tools)).type === "none";
}

function momentOf({ clock, uptimeMs, isClockRight }: HandoffTools): Moment {
  return { atMs: clock.now(), uptimeMs: uptimeMs(), isClockRight: isClockRight() };
}

class Look {
  readonly #tools: HandoffTools;
  readonly #handoff: Handoff;
  readonly #outbox: Outbox;
  readonly #opened: Opened;
  readonly #delivered: Delivered;
  /** Emitted once the entry is stored. */
  readonly #events: (() => void)[] = [];
  #entry: Entry;
  /** `undefined` once the entry is finished. */
  stored: Stored | undefined;

  constructor(tools: HandoffTools, outbox: Outbox, opened: Opened) {
    this.#tools = tools;
    this.#handoff = tools.handoff();
    this.#outbox = outbox;
    this.#opened = opened;
    this.#delivered = deliveredOf(opened.delivery);
    this.#entry = opened.stored.entry;
    this.stored = opened.stored;
  }

  /** True where nothing is left to do now. */
  async move(): Promise<boolean> {
    const { status, delivery } = this.#opened;
    const move = nextMove(this.#entry, status, delivery.deliveredAt, this.#handoff, momentOf(this.#tools));
    switch (move.type) {
      case "none":
        await this.#save();
        return true;
      case "finish":
        return this.#finish();
      case "change":
        this.#entry = move.entry;
        if (move.event !== undefined) this.#events.push(this.#eventOf(move.event));
        return false;
      default:
        return this.#remove(move.type === "gone");
    }
  }

  #eventOf(type: "picked-up" | "overdue"): () => void {
    const { ledger, clock, emit } = this.#tools;
    const delivered = this.#delivered;
    const { end, delivery } = this.#opened;
    const { pickedUpAt = "", how = "taken" } = this.#entry;
    if (type === "overdue") {
      const deliveredMs = Date.parse(delivery.deliveredAt);
      return () => emit({ type: "pick-up-overdue", delivered, sinceMs: clock.now() - deliveredMs });
    }
    return () => {
      ledger.pickedUp({ ...end, folder: delivery.folder }, pickedUpAt);
      emit({ type: "folder-picked-up", delivered, how });
    };
  }

  async #remove(isGone: boolean): Promise<boolean> {
    const { clock, inbox, emit } = this.#tools;
    const delivered = this.#delivered;
    const { id, folder } = this.#opened.delivery;
    const isPickedUp = this.#entry.pickedUpAt !== undefined;
    if (!isPickedUp && !isGone) {
      // Otherwise a folder that is gone after a crash would count as picked up.
      this.#entry = { ...this.#entry, isRemoving: true };
      await this.#save();
    }
    // Also where it is gone: an earlier call may have been cut short.
    const result = await inbox.removeDelivered({ id, folder });
    if (result === "foreign" && !isGone) {
      this.#events.push(() => emit({ type: "folder-left", delivered }));
      this.#entry = { ...this.#entry, isRemoving: false, isForeign: true };
      return false;
    }
    const after = isPickedUp ? "picked-up" : "not-picked-up";
    this.#events.push(() => emit({ type: "folder-removed", delivered, after }));
    const removedAt = new Date(clock.now()).toISOString();
    this.#entry = { ...this.#entry, isRemoving: false, isForeign: true, removedAt };
    return isPickedUp ? false : this.#finish();
  }

  async #save(): Promise<void> {
    if (this.stored === undefined) return;
    const kind = kindOf(this.#entry, this.#handoff);
    this.stored = await this.#outbox.save(this.#opened.key, this.stored, this.#entry, kind);
    this.#emit();
  }

  async #finish(): Promise<true> {
    if (this.stored !== undefined) await this.#outbox.finish(this.#opened.key, this.stored, this.#entry);
    this.stored = undefined;
    this.#emit();
    return true;
  }

  #emit(): void {
    for (const event of this.#events.splice(0)) event();
  }
}
