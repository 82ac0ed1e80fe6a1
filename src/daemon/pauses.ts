/** Puts operators' pauses in force while the daemon runs. */
import { isDeepStrictEqual } from "node:util";
import { Coalesced } from "../base/concurrency.ts";
import type { Fault } from "../base/faults.ts";
import { stat } from "../base/files.ts";
import type { Scope } from "../base/scope.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import { type Pauses, readPauses, watchPauses } from "../ledger/pauses.ts";
import type { Emit } from "../model/events.ts";
import type { LiveSettings } from "./live-settings.ts";

const LOOK_EVERY_MS = 30_000;

/** At a start: before anything is polled. */
export async function putPausesInForce(live: LiveSettings, emit: Emit): Promise<void> {
  const pauses = await readPauses(live.now.work);
  if (isDeepStrictEqual(pauses, live.pauses)) return;
  live.replace(live.configured, pauses);
  emit({ type: "pauses-changed", mailboxes: live.now.mailboxes });
}

/** Looks at each change and regularly, until the scope ends. Returns a function that looks now. */
export async function followPauses(
  live: LiveSettings,
  apply: (pauses: Pauses) => Promise<void>,
  emit: Emit,
  scope: Scope,
): Promise<() => Promise<void>> {
  const { work } = live.now;
  const looks = new Coalesced(async () => {
    const pauses = await readPauses(work);
    if (isDeepStrictEqual(pauses, live.pauses)) return;
    // Without the work folder, its disk is gone, and no pause has ended.
    await stat(work);
    await apply(pauses);
  });
  // Repeated, and a failing disk is a trouble of its own.
  const look = () => looks.run().catch(() => {});
  scope.use(looks, (it) => it.idle());
  const unwatchable = (fault: Fault) => emit({ type: "folder-unwatchable", fault });
  scope.use(await watchPauses(work, () => void look(), unwatchable), (it) => it.close());
  scope.use(
    setInterval(() => void look(), LOOK_EVERY_MS),
    clearInterval,
  );
  // Changes since the start.
  await look();
  return look;
}
