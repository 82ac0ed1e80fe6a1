/**
 * Commands that outlived the process that started them. A delivery never has two commands at a time, even if Inlet was
 * killed, so an orphan has to end before the command starts again.
 */

import { Coalesced } from "../base/concurrency.ts";
import { readdir, readFile } from "../base/files.ts";
import { signalGroup } from "../base/system-program.ts";
import { monotonicMs, pauseOrAbort } from "../base/timers.ts";
import type { HandoffPatience } from "./port.ts";

const PROCESSES = "/proc";
const DELIVERY = /(?:^|\0)INLET_ID=([0-9a-f]{32})(?=\0|$)/;
const EVENT = /(?:^|\0)INLET_EVENT=(\w+)(?=\0|$)/;

/** Why a command runs: after a delivery, or to check a transfer before it. */
export type CommandEvent = "delivered" | "check";

/** Process ids by the delivery id in their environment. */
type Found = ReadonlyMap<string, readonly number[]>;

export class Orphans {
  readonly #patience: Pick<HandoffPatience, "scanMs" | "killMs">;
  readonly #scan: Coalesced<Found>;

  /** Only commands that run for this `event` are found, and ended. */
  constructor(patience: Pick<HandoffPatience, "scanMs" | "killMs">, event: CommandEvent = "delivered") {
    this.#patience = patience;
    this.#scan = new Coalesced(() => findProcesses(event));
  }

  /**
   * Waits until no process of this delivery is left, and ends the ones that are left after `timeoutMs`. False if one
   * may still run, or the signal aborts.
   */
  async clear(id: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const { scanMs, killMs } = this.#patience;
    const deadlineMs = monotonicMs() + timeoutMs;
    let pids = await this.#find(id);
    while (pids.length > 0 && monotonicMs() < deadlineMs && !signal.aborted) {
      await pauseOrAbort(scanMs, signal);
      pids = await this.#find(id);
    }
    for (const name of ["SIGTERM", "SIGKILL"] as const) {
      if (pids.length === 0 || signal.aborted) break;
      for (const pid of pids) await end(pid, pids, name);
      await pauseOrAbort(killMs, signal);
      pids = await this.#find(id);
    }
    return pids.length === 0 && !signal.aborted;
  }

  async #find(id: string): Promise<readonly number[]> {
    return (await this.#scan.run()).get(id) ?? [];
  }
}

/** Skips processes whose environment cannot be read; finds none if there is no `/proc`. */
async function findProcesses(event: CommandEvent): Promise<Found> {
  const found = new Map<string, number[]>();
  // There is no `/proc`.
  for (const name of await readdir(PROCESSES).catch(() => [])) {
    if (!/^\d+$/.test(name) || name === String(process.pid)) continue;
    // Empty for a process that has ended and is not reaped yet.
    const environment = await readFile(`${PROCESSES}/${name}/environ`, "latin1").catch(() => "");
    const id = DELIVERY.exec(environment)?.[1];
    // A process without the variable counts for every event.
    const ranFor = EVENT.exec(environment)?.[1] ?? event;
    if (id !== undefined && ranFor === event) found.set(id, [...(found.get(id) ?? []), Number(name)]);
  }
  return found;
}

/** Signals the whole group only if its leader belongs to the delivery too. */
async function end(pid: number, pids: readonly number[], name: NodeJS.Signals): Promise<void> {
  // It has ended.
  const stat = await readFile(`${PROCESSES}/${pid}/stat`, "latin1").catch(() => "");
  if (stat === "") return;
  // `PID (PROGRAM) STATE PARENT GROUP …`; the program's name may hold anything.
  const group = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
  if (pids.includes(group)) signalGroup(group, name);
  else {
    try {
      process.kill(pid, name);
    } catch {
      // It has ended.
    }
  }
}
