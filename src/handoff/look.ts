/** One look at a delivered folder: whether it was collected, is overdue, or has been there for long enough. */
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import type { HandoffStep } from "../model/handoff.ts";
import { isOlder, judgeAge } from "./age.ts";
import { deliveredOf, type Entry, isCurrent, isDelivered, openSteps } from "./entry.ts";
import type { HandoffTools } from "./tools.ts";

type Place = "there" | "acknowledged" | "gone" | "unknown";

/** Makes what it is given durable. */
type Save = (entry: Entry) => Promise<void>;

/** The hand-off as it is after the look; `undefined` where nothing is left to do for it. Safe to be cut short. */
export async function lookAt(tools: HandoffTools, entry: Entry, save: Save): Promise<Entry | undefined> {
  const place = await findFolder(tools.inbox, entry);
  if (entry.isRemoving) {
    if (place === "unknown") return entry;
    if (place === "gone") return finishRemoval(tools, entry);
    // We did not come to it: since then it may have been acknowledged, or is to be kept after all.
    return lookAt(tools, { ...entry, isRemoving: false }, save);
  }
  if (entry.collectedAt !== undefined) return endCollected(tools, entry, place);
  if (place === "gone" || place === "acknowledged") {
    const collected = await noteCollected(tools, entry, place === "gone" ? "taken" : "acknowledged");
    return collected === undefined ? entry : endCollected(tools, collected, place);
  }
  return place === "there" ? judgeUncollected(tools, entry, save) : entry;
}

/** Only that nothing is found counts as gone, and only in the inbox that was there at the start. */
async function findFolder(inbox: HandoffTools["inbox"], entry: Entry): Promise<Place> {
  const folder = join(inbox.root, entry.folder);
  const found = await isFound(folder);
  if (found === false) return (await inbox.isHere()) ? "gone" : "unknown";
  if (found === undefined || entry.acknowledgement === undefined) return found ? "there" : "unknown";
  const isAcknowledged = await isFound(join(folder, entry.acknowledgement));
  return isAcknowledged === undefined ? "unknown" : isAcknowledged ? "acknowledged" : "there";
}

/** `undefined` where it cannot be told. */
async function isFound(path: string): Promise<boolean | undefined> {
  try {
    await lstat(path);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT" ? false : undefined;
  }
}

/** `undefined` where its receipt does not say yet that it was delivered: somebody was faster than we are. */
async function noteCollected(
  { receipts, clock, watch }: HandoffTools,
  entry: Entry,
  how: "taken" | "acknowledged",
): Promise<Entry | undefined> {
  const receipt = await receipts.find(entry);
  if (receipt !== undefined && !isDelivered(entry, receipt)) return undefined;
  const collectedAt = new Date(clock.now()).toISOString();
  if (receipt?.state === "delivered" && isCurrent(entry, receipt)) {
    const at = { ...receipt.at, collected: collectedAt };
    await receipts.put({ ...receipt, state: "collected", at }, receipt);
    watch.collected(deliveredOf(entry), how);
  }
  return { ...entry, collectedAt, foundOld: undefined };
}

/** It is over when its steps are, and its folder need not be removed any more. */
async function endCollected(tools: HandoffTools, entry: Entry, place: Place): Promise<Entry | undefined> {
  const handoff = tools.handoff();
  const steps = openSteps(entry, handoff);
  const isLeft = place === "gone" || entry.isForeign || handoff.keep?.collectedMs === undefined;
  if (isLeft) return steps.length > 0 ? entry : undefined;
  const { entry: seen, isOver } = judgeAge(tools, entry, entry.collectedAt, handoff.keep?.collectedMs);
  if (!isOver || place === "unknown" || isPending(seen, steps)) return seen;
  // Whether removed or not ours to remove, there is nothing more to be done about the folder.
  await remove(tools, seen, "collected");
  return steps.length > 0 ? { ...seen, isForeign: true } : undefined;
}

async function judgeUncollected(tools: HandoffTools, entry: Entry, save: Save): Promise<Entry | undefined> {
  const { receipts, watch, clock } = tools;
  const handoff = tools.handoff();
  const isOverdue = !entry.reported && isOlder(tools, entry.deliveredAt, handoff.expectWithinMs);
  const keptMs = entry.isForeign ? undefined : handoff.keep?.uncollectedMs;
  const { entry: seen, isOver } = judgeAge(tools, entry, entry.deliveredAt, keptMs);
  if (!isOverdue && !isOver) return seen;
  const receipt = await receipts.find(entry);
  if (receipt === undefined || !isDelivered(seen, receipt)) return seen;
  const steps = openSteps(seen, handoff);
  // It was delivered once more since: what became of the first folder is nobody's concern.
  if (!isCurrent(seen, receipt)) return steps.length > 0 ? seen : undefined;
  const told = isOverdue ? { ...seen, reported: true } : seen;
  if (isOverdue) {
    await save(told);
    watch.uncollected(deliveredOf(entry), clock.now() - Date.parse(entry.deliveredAt));
  }
  if (!isOver || isPending(told, steps)) return told;
  // Without that a crash after the removal would make it look collected.
  const removing = { ...told, isRemoving: true };
  await save(removing);
  return finishRemoval(tools, removing);
}

async function finishRemoval(tools: HandoffTools, entry: Entry): Promise<Entry | undefined> {
  if (await remove(tools, entry, "uncollected")) return undefined;
  return { ...entry, isRemoving: false, isForeign: true };
}

const WHY_REMOVED = {
  collected: "Its folder was removed: it was collected, and kept for as long as wanted.",
  uncollected: "Its folder was removed: nobody collected it for as long as it was to be kept.",
} as const;

/**
 * False where the folder is not that of this delivery: it may have been delivered once more, to the same place. The
 * receipt stays in its state.
 */
async function remove(tools: HandoffTools, entry: Entry, after: keyof typeof WHY_REMOVED): Promise<boolean> {
  const { receipts, inbox, watch } = tools;
  const receipt = await receipts.find(entry);
  if (receipt === undefined || !isCurrent(entry, receipt)) return false;
  if ((await inbox.removeDelivered(entry)) === "foreign") {
    watch.leftInPlace(deliveredOf(entry));
    return false;
  }
  await receipts.put({ ...receipt, reason: "removed", message: WHY_REMOVED[after] }, receipt);
  watch.removed(deliveredOf(entry), after);
  return true;
}

/** A step that is still tried may need the folder. */
function isPending(entry: Entry, steps: readonly HandoffStep[]): boolean {
  return steps.some((step) => entry[step]?.state === "pending");
}
