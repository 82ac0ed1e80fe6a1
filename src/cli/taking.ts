/** Waits for the daemon to take what was laid down for it. */
import { setTimeout as pause } from "node:timers/promises";
import { exists } from "../base/durable.ts";
import { countMembers } from "../inbox/members.ts";

const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/**
 * Whether a daemon removed the file in time. `nobody`: no daemon works on the inbox, and nothing is waited for.
 */
export async function untilTaken(
  path: string,
  work: string,
  signal: AbortSignal,
): Promise<"taken" | "late" | "nobody"> {
  if ((await countMembers(work)) === 0) return "nobody";
  const isTaken = await until(async () => ((await exists(path)) ? undefined : true), signal);
  return isTaken === true ? "taken" : "late";
}

/** What `look` finds, as soon as it does; `undefined` where it does not in time. */
export async function until<Found>(
  look: () => Promise<Found | undefined>,
  signal: AbortSignal,
): Promise<Found | undefined> {
  for (let waitedMs = 0; waitedMs < WAIT_MS && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(LOOK_EVERY_MS);
  }
  return undefined;
}
