/** Opens the hand-offs with the parts of the daemon that they need. */
import { machine } from "../base/machine.ts";
import { random } from "../base/random.ts";
import { handoffOf } from "../config/settings.ts";
import { openHandoffs } from "../handoff/open.ts";
import type { HandoffPatience, OpenHandoffs } from "../handoff/port.ts";
import type { HandoffTools } from "../handoff/tools.ts";
import { LedgerPaths } from "../ledger/paths.ts";
import type { LiveSettings } from "./live-settings.ts";

export const HANDOFF_PATIENCE: HandoffPatience = {
  retryMs: 60_000,
  giveUpMs: 3 * 24 * 3_600_000,
  scanMs: 10_000,
  killMs: 5_000,
};

type DaemonParts = Pick<HandoffTools, "ledger" | "inbox" | "clock" | "emit" | "stop" | "isClockRight">;

/** `patience`: overrides some of the defaults. */
export function openDaemonHandoffs(
  live: LiveSettings,
  parts: DaemonParts,
  patience: Partial<HandoffPatience> = {},
): Promise<OpenHandoffs> {
  const { work, queue } = live.now;
  const paths = new LedgerPaths(work);
  return openHandoffs({
    ...parts,
    work,
    handoffOf: (delivery) => handoffOf(live.now, delivery),
    console: () => live.now.http?.publicUrl,
    isAlone: queue === "embedded",
    finishedPath: (name, round) => paths.handoff(name, round),
    uptimeMs: () => machine().uptimeMs(),
    random,
    patience: { ...HANDOFF_PATIENCE, ...patience },
  });
}
