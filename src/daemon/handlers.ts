/** The jobs that the engine runs: polls of mailboxes, and downloads of their transfers. */

import { handoffOf } from "../config/settings.ts";
import { pollMailbox } from "../mailbox/poll.ts";
import type { PollTools } from "../mailbox/tools.ts";
import { DONE, NO_WAIT } from "../model/job.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { Routed } from "../model/record.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import { downloadOf, type Pulse } from "../observe/pulse.ts";
import type { Handlers } from "../queue/port.ts";
import { downloadTransfer } from "../transfer/download.ts";
import { clearDiskWait } from "../transfer/settle.ts";
import type { TransferTools } from "../transfer/tools.ts";
import { sourceOf } from "./mailboxes.ts";
import type { Parts } from "./parts.ts";

/** The tools that each job gets anew. */
export type JobTools = "limits" | "handoffOf" | "check" | "freeSlot";

interface HandlerTools extends Pick<Parts, "live" | "mailboxes" | "expected" | "clock" | "demandFolders"> {
  readonly poll: PollTools;
  readonly transfer: Omit<TransferTools, JobTools>;
  readonly pulse: Pulse;
  /** Aborts if a folder is lost that everything needs. */
  readonly lost: AbortSignal;
}

export interface DaemonHandlers extends Handlers {
  /** How many polls failed so far. */
  failedPolls(): number;
}

export function createHandlers(tools: HandlerTools): DaemonHandlers {
  const { live, mailboxes, expected, poll, transfer, pulse, clock, demandFolders } = tools;
  let failedPolls = 0;
  const pollByName = async (name: string, signal: AbortSignal) => {
    const state = mailboxes.states.get(mailboxIdOf(name));
    if (state === undefined) return NO_WAIT;
    const beganMs = clock.now();
    const { isGood, ...wait } = await pollMailbox(poll, state, signal);
    if (isGood) await expected.check(name, beganMs);
    else failedPolls++;
    return wait;
  };
  // The daemon closes its parts if a folder is lost, and the next opening finds all work again.
  const isUsable = () =>
    demandFolders().then(
      () => true,
      () => false,
    );
  const either = (signal: AbortSignal) => AbortSignal.any([signal, tools.lost]);
  return {
    failedPolls: () => failedPolls,
    async poll(name, signal) {
      if (!(await isUsable())) return NO_WAIT;
      return pulse.during(`the poll of ${name}`, () => pollByName(name, either(signal)));
    },
    async download(key, signal, freeSlot) {
      if (!(await isUsable())) return DONE;
      const state = mailboxes.states.get(mailboxIdOf(key.mailbox));
      if (state === undefined) {
        clearDiskWait(transfer, transfer.ledger.nameOf(key));
        return DONE;
      }
      // A change of the hand-off applies to downloads that start later.
      const settings = live.now;
      const check = () => mailboxOf(live.now.mailboxes, key)?.check;
      const jobTools = {
        ...transfer,
        limits: settings.limits,
        handoffOf: (record: Routed) => handoffOf(settings, record),
        check,
        freeSlot,
      };
      return pulse.during(downloadOf(key), () =>
        downloadTransfer(jobTools, sourceOf(state), key, either(signal)),
      );
    },
  };
}
