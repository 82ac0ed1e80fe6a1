/** Joins the hand-offs with what they need of the rest of the house. */
import { uptime } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Settings } from "../config/settings.ts";
import { openHandoffs } from "../handoff/open.ts";
import type { HandoffPatience, OpenHandoffs } from "../handoff/port.ts";
import type { Inbox } from "../inbox/port.ts";
import { LedgerPaths } from "../ledger/paths.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { DaemonWatch } from "./watching.ts";

const PATIENCE: HandoffPatience = {
  retryMs: 60_000,
  giveUpMs: 3 * 24 * 3_600_000,
  scanMs: 10_000,
  killMs: 5_000,
};

interface Surroundings {
  readonly ledger: Ledger;
  readonly inbox: Inbox;
  readonly clock: Clock;
  readonly watch: DaemonWatch;
  readonly stop: AbortSignal;
  /** Where it differs from the usual. */
  readonly patience: Partial<HandoffPatience> | undefined;
  /** As it is configured now. */
  handoff(): Handoff;
  /** The clock agrees with that of the services. */
  isClockRight(): boolean;
}

export function openDaemonHandoffs(
  { work, queue }: Settings,
  { patience, ...rest }: Surroundings,
): Promise<OpenHandoffs> {
  const paths = new LedgerPaths(work);
  return openHandoffs({
    ...rest,
    work,
    isAlone: queue === "embedded",
    finishedPath: (name, round) => paths.handoff(name, round),
    uptimeMs: () => uptime() * 1_000,
    random: Math.random,
    patience: { ...PATIENCE, ...patience },
  });
}
