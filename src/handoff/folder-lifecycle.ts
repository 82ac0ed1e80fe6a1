/** The life cycle of a delivered folder: waiting, perhaps overdue, picked up, and removed when it was kept long enough. */
import { isoOf } from "../base/phrases.ts";
import type { DaemonEvent } from "../model/events.ts";
import type { Delivered } from "../model/handoff.ts";
import type { Entry, Stored } from "../model/outbox.ts";
import { isDelivered } from "../model/record.ts";
import {
  type FolderStatus,
  findByName,
  findStatus,
  followingOf,
  type OutboxDelivery,
  type OutboxTools,
  openOutboxDelivery,
} from "./delivery.ts";
import { type Following, keptFrom, kindOf, openSteps, stepOf } from "./entry.ts";
import type { HandoffTools } from "./port.ts";

/** The clock has jumped if it and the machine's uptime have moved apart by more than this. */
const TOLERANCE_MS = 60_000;
/**
 * The clock may be wrong, so a folder that was found old is removed only if it is found old again after a delay. The
 * delay is this share of the retention time, and at most `maxMs`.
 */
const CONFIRM = { share: 1 / 100, maxMs: 3_600_000 };

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
  following: Following,
  now: Moment,
): Action {
  const { handoff } = following;
  if (status === "unknown") return NONE;
  if (entry.isRemoving) {
    if (status === "gone") return { type: "gone" };
    // Since the removal began, the folder may have been acknowledged, or the configuration may have changed.
    const kept = { ...entry, isRemoving: false };
    const action = nextAction(kept, status, deliveredAt, following, now);
    return action.type === "remove" ? action : { type: "change", entry: kept };
  }
  if (entry.pickedUpAt !== undefined) return afterPickUp(entry, entry.pickedUpAt, status, following, now);
  if (status !== "there") {
    const how = status === "gone" ? "taken" : "acknowledged";
    const pickedUp = { pickedUpAt: isoOf(now.atMs), how, ...keptFrom(now.isClockRight) } as const;
    return { type: "change", entry: { ...entry, ...pickedUp, foundOld: undefined }, event: "picked-up" };
  }
  if (!entry.reported && isOlder(deliveredAt, handoff.expectWithinMs, now.atMs)) {
    return { type: "change", entry: { ...entry, reported: true }, event: "overdue" };
  }
  const keepMs = entry.isForeign ? undefined : handoff.keep?.notPickedUpMs;
  return judgeKept(entry, deliveredAt, keepMs, following, now);
}

function afterPickUp(
  entry: Entry,
  since: string,
  status: FolderStatus,
  following: Following,
  now: Moment,
): Action {
  const keepMs = following.handoff.keep?.pickedUpMs;
  const isFolderDone = status === "gone" || entry.isForeign || keepMs === undefined;
  if (!isFolderDone) return judgeKept(entry, since, keepMs, following, now);
  return openSteps(entry, following).length > 0 ? NONE : { type: "finish" };
}

function judgeKept(
  entry: Entry,
  since: string,
  keepMs: number | undefined,
  following: Following,
  now: Moment,
): Action {
  if (entry.keptFrom === "" && keepMs !== undefined && now.isClockRight)
    return { type: "change", entry: { ...entry, keptFrom: isoOf(now.atMs) } };
  const { foundOld, isOver } = judgeAge(entry.foundOld, entry.keptFrom || since, keepMs, now);
  if (foundOld !== entry.foundOld) return { type: "change", entry: { ...entry, foundOld } };
  // A pending step may need the folder.
  const isPending = openSteps(entry, following).some((step) => stepOf(entry, step).state === "pending");
  return isOver && !isPending ? { type: "remove" } : NONE;
}

function isOlder(since: string | undefined, thanMs: number | undefined, nowMs: number): boolean {
  return since !== undefined && thanMs !== undefined && nowMs - Date.parse(since) >= thanMs;
}

/**
 * Pure. A removed folder does not come back, so a wrong clock must not remove one. `isOver`: the folder was found old
 * before too, the delay of `CONFIRM` has passed since, and the clock has not jumped. `foundOld`: to be stored in the entry.
 */
function judgeAge(
  foundOld: Entry["foundOld"],
  since: string | undefined,
  keepMs: number | undefined,
  { atMs, uptimeMs, isClockRight }: Moment,
): { readonly foundOld: Entry["foundOld"]; readonly isOver: boolean } {
  if (!isClockRight) return { foundOld, isOver: false };
  if (keepMs === undefined || !isOlder(since, keepMs, atMs)) return { foundOld: undefined, isOver: false };
  const elapsedMs = uptimeMs - (foundOld?.uptimeMs ?? 0);
  const hasKeptPace = foundOld !== undefined && Math.abs(atMs - foundOld.atMs - elapsedMs) <= TOLERANCE_MS;
  if (!hasKeptPace || elapsedMs < 0) return { foundOld: { atMs, uptimeMs }, isOver: false };
  return { foundOld, isOver: elapsedMs >= Math.min(keepMs * CONFIRM.share, CONFIRM.maxMs) };
}

/**
 * Does everything that is due for the folder of a delivery. Called within `Outbox.change`; a crash at any point is safe.
 * Returns the delivery as it is afterwards; `undefined` if it is finished, or its folder is not placed yet.
 */
export async function advanceFolder(tools: OutboxTools, key: string): Promise<OutboxDelivery | undefined> {
  const opened = await openOutboxDelivery(tools, key);
  if (opened === undefined) return undefined;
  const { delivery, status, problem } = opened;
  const { clock, emit, ledger, inbox, outbox } = tools;
  const following = followingOf(tools, delivery);
  let stored: Stored = opened;
  let { entry } = stored;
  /** Emitted once the entry is stored. */
  const events: DaemonEvent[] = [];
  if (problem !== entry.problem) {
    entry = { ...entry, problem };
    if (problem !== undefined) events.push({ type: "manifest-changed", delivered: delivery, problem });
  }
  const report = () => {
    for (const event of events.splice(0)) {
      if (event.type === "folder-picked-up") ledger.pickedUp(delivery);
      emit(event);
    }
  };
  const save = async () => {
    stored = await outbox.save(key, stored, entry, kindOf(entry, following));
    report();
  };
  /** True if the folder of a delivery that no consumer picked up is gone. */
  const remove = async (isGone: boolean) => {
    const isPickedUp = entry.pickedUpAt !== undefined;
    // Called even if the folder is gone: a crash may have interrupted an earlier removal.
    if (!isGone) {
      // Otherwise a folder that is gone after a crash would count as picked up, and what was moved aside would stay.
      entry = { ...entry, isRemoving: true };
      await save();
    }
    const placement = await ledger.placements.find(delivery);
    const { id, folder, inbox: own } = delivery;
    const result = await inbox.removeDelivered({ id, folder, inbox: own, placement });
    entry = { ...entry, isRemoving: false, isForeign: true };
    if (result === "foreign" && !isGone) {
      events.push({ type: "folder-left", delivered: delivery });
      return false;
    }
    const after = isPickedUp ? "picked-up" : "not-picked-up";
    events.push({ type: "folder-removed", delivered: delivery, after });
    entry = { ...entry, removedAt: isoOf(clock.now()) };
    return !isPickedUp;
  };
  for (;;) {
    const action = nextAction(entry, status, delivery.deliveredAt, following, momentOf(tools));
    if (action.type === "none") {
      await save();
      return { ...opened, ...stored };
    }
    if (action.type === "change") {
      entry = action.entry;
      if (action.event !== undefined) events.push(eventOf(action.event, delivery, entry, clock.now()));
    } else if (action.type === "finish" || (await remove(action.type === "gone"))) break;
  }
  // First: without its placement, the delivery counts as picked up if a crash comes between.
  await ledger.placements.forget(delivery);
  await outbox.finish(key, stored, entry);
  report();
  return undefined;
}

function eventOf(
  type: "picked-up" | "overdue",
  delivered: Delivered,
  { how = "taken" }: Entry,
  nowMs: number,
): DaemonEvent {
  return type === "overdue"
    ? { type: "pick-up-overdue", delivered, sinceMs: nowMs - Date.parse(delivered.deliveredAt) }
    : { type: "folder-picked-up", delivered, how };
}

/** Whether nothing is due for the folder. `isThorough`: its manifest is read too. */
export async function isUpToDate(
  tools: HandoffTools,
  item: OutboxDelivery,
  isThorough: boolean,
): Promise<boolean> {
  const { entry, kind, delivery } = item;
  const following = followingOf(tools, delivery);
  if (!isDelivered(delivery) || kindOf(entry, following) !== kind) return false;
  const { problem } = entry;
  const found = isThorough
    ? await findStatus(tools, delivery)
    : { status: await findByName(tools, delivery), problem };
  // The folder is still staged: nothing can be due.
  if (found === undefined) return true;
  const { status } = found;
  return (
    found.problem === problem &&
    nextAction(entry, status, delivery.deliveredAt, following, momentOf(tools)).type === "none"
  );
}

function momentOf({ clock, uptimeMs, isClockRight }: HandoffTools): Moment {
  return { atMs: clock.now(), uptimeMs: uptimeMs(), isClockRight: isClockRight() };
}
