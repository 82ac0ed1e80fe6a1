/** What the engine runs: polls of mailboxes that there are, and the download of their transfers. */
import type { Clock } from "../base/clock.ts";
import type { Expected } from "../mailbox/expected.ts";
import { pollMailbox } from "../mailbox/poll.ts";
import type { MailboxState } from "../mailbox/state.ts";
import type { PollTools } from "../mailbox/tools.ts";
import { DONE } from "../model/job.ts";
import type { Handlers } from "../queue/port.ts";
import { downloadTransfer } from "../transfer/download.ts";
import { clearDiskWait } from "../transfer/settle.ts";
import type { TransferTools } from "../transfer/tools.ts";
import type { Desk } from "./desk.ts";
import { workOn } from "./hearing.ts";
import { sourceOf } from "./mailboxes.ts";

/** What a reload replaces. */
export interface Current extends Pick<TransferTools, "limits" | "handoff"> {
  readonly expected: Expected;
}

interface HandlerTools {
  /** As it is now. */
  current(): Current;
  readonly mailboxes: ReadonlyMap<string, MailboxState>;
  readonly poll: PollTools;
  readonly transfer: Omit<TransferTools, keyof Current>;
  readonly clock: Clock;
  readonly desk: Desk | undefined;
}

export interface DaemonHandlers extends Handlers {
  /** How many polls failed so far. */
  failedPolls(): number;
}

export function createHandlers(tools: HandlerTools): DaemonHandlers {
  const { current, mailboxes, poll, transfer, clock, desk } = tools;
  const during: Desk["pulse"]["during"] = (what, work) => desk?.pulse.during(what, work) ?? work();
  let failedPolls = 0;
  const pollByName = async (name: string, signal: AbortSignal) => {
    const state = mailboxes.get(name);
    if (state === undefined) return 0;
    const beganMs = clock.now();
    const { isGood, waitMs } = await pollMailbox(poll, state, signal);
    if (isGood) await current().expected.check(name, beganMs);
    else failedPolls++;
    desk?.polled(state, isGood, (clock.now() - beganMs) / 1000);
    desk?.showOverdue(current().expected.overdue());
    return waitMs;
  };
  return {
    failedPolls: () => failedPolls,
    poll: (name, signal) => during(`the poll of ${name}`, () => pollByName(name, signal)),
    async download(key, signal) {
      const state = mailboxes.get(key.mailbox);
      if (state === undefined) {
        clearDiskWait(transfer, transfer.ledger.nameOf(key));
        return DONE;
      }
      const { limits, handoff } = current();
      const now = { ...transfer, limits, handoff };
      return during(workOn(key), () => downloadTransfer(now, sourceOf(state), key, signal));
    },
  };
}
