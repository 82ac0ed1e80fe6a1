/** Joins the hand-offs with what they need of the rest of the house. */
import { uptime } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Settings } from "../config/settings.ts";
import { type OpenHandoffs, openHandoffs } from "../handoff/open.ts";
import type { HandoffPatience } from "../handoff/port.ts";
import type { Members } from "../inbox/members.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { Receipts } from "../receipts/port.ts";
import type { DaemonWatch } from "./watching.ts";

/** A process that has the inbox alone is always called the same: a restart finds what is its own. */
const ALONE = "alone";

const PATIENCE: HandoffPatience = {
  retryMs: 60_000,
  giveUpMs: 3 * 24 * 3_600_000,
  lookMs: 10_000,
  killMs: 5_000,
};

interface Surroundings {
  readonly members: Members;
  readonly receipts: Receipts;
  readonly inbox: Inbox;
  readonly clock: Clock;
  readonly watch: DaemonWatch;
  readonly stop: AbortSignal;
  /** Where it differs from the usual. */
  readonly patience: Partial<HandoffPatience> | undefined;
  /** As it is configured now. */
  handoff(): Handoff;
}

export function openDaemonHandoffs(
  { work, queue }: Settings,
  { members, patience, ...rest }: Surroundings,
): Promise<OpenHandoffs> {
  const isAlone = queue === "embedded";
  return openHandoffs({
    ...rest,
    work,
    isAlone,
    owner: isAlone ? ALONE : members.self,
    isGone: async (owner) => isAlone || members.isGone(owner),
    uptimeMs: () => uptime() * 1_000,
    random: Math.random,
    patience: { ...PATIENCE, ...patience },
  });
}
