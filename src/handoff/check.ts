/** Checks one delivery: whether its folder was picked up, is overdue, or was kept long enough. */
import type { Delivered } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import { isDelivered } from "../model/record.ts";
import { deliveredOf } from "./delivery.ts";
import { type Entry, kindOf, openSteps } from "./entry.ts";
import type { Outbox, Stored } from "./outbox.ts";
import {
  type FolderStatus,
  findByName,
  locate,
  type Opened,
  type OutboxDelivery,
  openOutboxDelivery,
} from "./outbox-delivery.ts";
import type { HandoffTools } from "./tools.ts";

/** A smaller correction of the clock is no jump. */
const TOLERANCE_MS = 60_000;
/**
 * The clock may be wrong, so a second check has to confirm that a folder is old. It comes later by this part of the time
 * that the folder is kept, at most by `mostMs`.
 */
const CONFIRM = { part: 1 / 100, mostMs: 3_600_000 };

interface Moment {
  readonly atMs: number;
  /** Since the machine started. */
  readonly uptimeMs: number;
  readonly isClockRight: boolean;
}

/** The next action for a delivery. `gone`: the folder that we were removing is gone. */
type Action =
  | { readonly type: "none" | "remove" | "gone" | "finish" }
  | { readonly type: "change"; readonly entry: Entry; readonly event?: "picked-up" | "overdue" };

const NONE: Action = { type: "none" };

/** Pure. Called again with the changed entry until nothing is left to do now. */
export function nextAction(
  entry: Entry,
  status: FolderStatus,
  deliveredAt: string,
  handoff: Handoff,
  now: Moment,
): Action {
  if (status === "unknown") return NONE;
  if (entry.isRemoving) {
    if (status === "gone") return { type: "gone" };
    // Since the removal began, the folder may have been acknowledged, or the configuration may have changed.
    const kept = { ...entry, isRemoving: false };
    const action = nextAction(kept, status, deliveredAt, handoff, now);
    return action.type === "remove" ? action : { type: "change", entry: kept };
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

function afterPickUp(
  entry: Entry,
  since: string,
  status: FolderStatus,
  handoff: Handoff,
  now: Moment,
): Action {
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
): Action {
  const { foundOld, isOver } = judgeAge(entry.foundOld, since, keptMs, now);
  if (foundOld !== entry.foundOld) return { type: "change", entry: { ...entry, foundOld } };
  // A pending step may need the folder.
  const isPending = openSteps(entry, handoff).some((step) => entry[step]?.state === "pending");
  return isOver && !isPending ? { type: "remove" } : NONE;
}

function isOlder(since: string | undefined, thanMs: number | undefined, nowMs: number): boolean {
  return since !== undefined && thanMs !== undefined && nowMs - Date.parse(since) >= thanMs;
}

/**
 * Pure. A removed folder does not come back, so a wrong clock must not remove one. `isOver`: an earlier check found the
 * folder old too, and the clock has kept pace with the machine since. `foundOld`: to be stored for the next check.
 */
function judgeAge(
  foundOld: Entry["foundOld"],
  since: string | undefined,
  keptMs: number | undefined,
  { atMs, uptimeMs, isClockRight }: Moment,
): { readonly foundOld: Entry["foundOld"]; readonly isOver: boolean } {
  if (!isClockRight) return { foundOld, isOver: false };
  if (keptMs === undefined || !isOlder(since, keptMs, atMs)) return { foundOld: undefined, isOver: false };
  const upMs = uptimeMs - (foundOld?.uptimeMs ?? 0);
  const hasKeptPace = foundOld !== undefined && Math.abs(atMs - foundOld.atMs - upMs) <= TOLERANCE_MS;
  if (!hasKeptPace || upMs < 0) return { foundOld: { atMs, uptimeMs }, isOver: false };
  return { foundOld, isOver: upMs >= Math.min(keptMs * CONFIRM.part, CONFIRM.mostMs) };
}

/**
 * Does everything that is due for a delivery. Called within `Outbox.change`; a crash at any point is safe. Returns the
 * delivery as it is afterwards; `undefined` if it is finished, or not ready.
 */
export async function checkDelivery(
  tools: HandoffTools,
  outbox: Outbox,
  key: string,
): Promise<OutboxDelivery | undefined> {
  const opened = await openOutboxDelivery(tools, outbox, key);
  if (opened === undefined) return undefined;
  const check = new DeliveryCheck(tools, outbox, opened);
  while (!(await check.advance())) {}
  return check.stored === undefined ? undefined : { ...opened, stored: check.stored };
}

/** Whether nothing is due. `isThorough`: the folder is found by its manifest. */
export async function isUpToDate(
  tools: HandoffTools,
  item: OutboxDelivery,
  isThorough: boolean,
): Promise<boolean> {
  const { end, stored, delivery } = item;
  const handoff = tools.handoff();
  if (!isDelivered(end) || kindOf(stored.entry, handoff) !== stored.kind) return false;
  const { folder, deliveredAt } = delivery;
  const byName = async () => ({ folder, status: await findByName(tools.inbox, delivery) });
  const located = await (isThorough ? locate(tools, item) : byName());
  if (located?.folder !== folder) return located === undefined;
  return nextAction(stored.entry, located.status, deliveredAt, handoff, momentOf(tools)).type === "none";
}

function momentOf({ clock, uptimeMs, isClockRight }: HandoffTools): Moment {
  return { atMs: clock.now(), uptimeMs: uptimeMs(), isClockRight: isClockRight() };
}

class DeliveryCheck {
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
  async advance(): Promise<boolean> {
    const { status, delivery } = this.#opened;
    const action = nextAction(
      this.#entry,
      status,
      delivery.deliveredAt,
      this.#handoff,
      momentOf(this.#tools),
    );
    switch (action.type) {
      case "none":
        await this.#save();
        return true;
      case "finish":
        return this.#finish();
      case "change":
        this.#entry = action.entry;
        if (action.event !== undefined) this.#events.push(this.#eventOf(action.event));
        return false;
      default:
        return this.#remove(action.type === "gone");
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
    // Also where it is gone: a crash may have interrupted an earlier call.
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
