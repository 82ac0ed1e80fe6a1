/** Opens the hand-offs with the parts of the daemon that they need. */
import type { Clock } from "../base/clock.ts";
import { machine } from "../base/machine.ts";
import { random } from "../base/random.ts";
import { handoffOf } from "../config/settings.ts";
import { openHandoffs } from "../handoff/open.ts";
import type { HandoffPatience, OpenHandoffs } from "../handoff/port.ts";
import type { Inbox } from "../inbox/port.ts";
import { LedgerPaths } from "../ledger/paths.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Emit } from "../model/events.ts";
import type { LiveSettings } from "./live-settings.ts";

export const HANDOFF_PATIENCE: HandoffPatience = {
  retryMs: 60_000,
  giveUpMs: 3 * 24 * 3_600_000,
  scanMs: 10_000,
  killMs: 5_000,
};

interface DaemonParts {
  readonly ledger: Ledger;
  readonly inbox: Inbox;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly stop: AbortSignal;
  /** Overrides some of the defaults. */
  readonly patience: Partial<HandoffPatience> | undefined;
  /** Whether the clock agrees with that of the services. */
  isClockRight(): boolean;
}

export function openDaemonHandoffs(
  live: LiveSettings,
  { patience, ...rest }: DaemonParts,
): Promise<OpenHandoffs> {
  const { work, queue } = live.now;
  const paths = new LedgerPaths(work);
  return openHandoffs({
    ...rest,
    work,
    handoffOf: (delivery) => handoffOf(live.now, delivery),
    isAlone: queue === "embedded",
    finishedPath: (name, round) => paths.handoff(name, round),
    uptimeMs: () => machine().uptimeMs(),
    random,
    patience: { ...HANDOFF_PATIENCE, ...patience },
  });
}
