/** Waits for the daemon to take what was laid down for it. */
import { setTimeout as pause } from "node:timers/promises";
import { exists } from "../base/durable.ts";
import { countMembers } from "../inbox/members.ts";

const WAIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/**
 * Whether the file was taken away in time; where nobody works on the inbox, nobody is waited for. `isThere`: whether it
 * was not, for what is not a file alone.
 */
export async function untilTaken(
  path: string,
  work: string,
  signal: AbortSignal,
  isThere: (path: string) => Promise<boolean> = exists,
): Promise<boolean> {
  if ((await countMembers(work)) === 0) return false;
  for (let waitedMs = 0; waitedMs < WAIT_MS && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
    if (!(await isThere(path))) return true;
    await pause(LOOK_EVERY_MS);
  }
  return false;
}
