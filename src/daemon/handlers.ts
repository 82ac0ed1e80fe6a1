/** The jobs that the engine runs: polls of mailboxes, and downloads of their transfers. */

import type { DeadlineLimits } from "../base/deadline.ts";
import { Fault } from "../base/faults.ts";
import { random } from "../base/random.ts";
import { handoffOf } from "../config/settings.ts";
import { createChecker } from "../handoff/content-check.ts";
import { pollMailbox, reportRecovery } from "../mailbox/poll.ts";
import { DONE, NO_WAIT } from "../model/job.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { Routed } from "../model/record.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import { downloadOf, type Pulse } from "../observe/pulse.ts";
import type { Handlers } from "../queue/port.ts";
import { downloadTransfer } from "../transfer/download.ts";
import type { Patience } from "../transfer/run.ts";
import { clearDiskWait } from "../transfer/settle.ts";
import { LargeTransfers } from "../transfer/turns.ts";
import { type DaemonPatience, HANDOFF_PATIENCE, type Parts } from "./parts.ts";

/** Long lists take time. The total is below the watchdog's limit for hanging work. */
const POLL_DEADLINE: DeadlineLimits = { stallMs: 10 * 60_000, totalMs: 25 * 60_000 };

interface HandlerOptions {
  readonly mode: "run" | "once";
  readonly patience: Patience & DaemonPatience;
  readonly pulse: Pulse;
  /** Aborts if a folder is lost that everything needs. */
  readonly lost: AbortSignal;
}

export interface DaemonHandlers extends Handlers {
  /** How many polls failed so far. */
  failedPolls(): number;
  /** A mailbox was not polled, because its service rests. */
  skipped(mailbox: string): void;
}

export function createHandlers(parts: Parts, options: HandlerOptions): DaemonHandlers {
  const { live, mailboxes, expected, clock, demandFolders, queue, ledger } = parts;
  const { mode, patience, pulse, lost } = options;
  let failedPolls = 0;
  const pollTools = {
    ...parts,
    atOnce: () => live.now.limits.transfers,
    deadline: patience.poll ?? POLL_DEADLINE,
  };
  // A download does not give way under our own bandwidth limit, where every download is slow, nor in `once`, which would
  // end before the download continues.
  const mayGiveWay = () => mode === "run" && (live.now.limits.bandwidth ?? []).length === 0;
  const downloadTools = {
    ...parts,
    checker: createChecker({ ...HANDOFF_PATIENCE, ...patience.handoff }),
    random,
    patience,
    large: new LargeTransfers(),
    stuck: new Set<string>(),
    othersWait: async () => mayGiveWay() && ((await queue.depth()) ?? 0) > 0,
  };
  const pollByName = async (name: string, signal: AbortSignal, isProbe: boolean) => {
    const state = mailboxes.states.get(mailboxIdOf(name));
    if (state === undefined) return NO_WAIT;
    const beganMs = clock.now();
    const { isGood, ...wait } = await pollMailbox(pollTools, state, signal, isProbe);
    if (isGood) await expected.check(name, beganMs);
    else failedPolls++;
    return wait;
  };
  // The daemon closes its parts if a folder is lost, and finds all work again when it has reopened them.
  const areFoldersThere = () =>
    demandFolders().then(
      () => true,
      () => false,
    );
  const orLost = (signal: AbortSignal) => AbortSignal.any([signal, lost]);
  return {
    failedPolls: () => failedPolls,
    skipped(name) {
      const state = mailboxes.states.get(mailboxIdOf(name));
      if (state === undefined) return;
      failedPolls++;
      const fault = new Fault("SERVICE_RESTS");
      const { isFirst } = state.health.fail(fault, clock.now());
      const facts = { isFirst, waitMs: 0, tookMs: 0, token: state.tokens.facts };
      parts.emit({ type: "poll-failed", mailbox: state.mailbox.name, fault, ...facts });
    },
    async poll(name, signal, isProbe) {
      if (!(await areFoldersThere())) return NO_WAIT;
      return pulse.during(`the poll of ${name}`, () => pollByName(name, orLost(signal), isProbe));
    },
    served(name) {
      const id = mailboxIdOf(name);
      parts.diskTrouble.clear(id);
      reportRecovery(parts, name, mailboxes.states.get(id)?.health.recover());
    },
    async download(key, signal, freeSlot) {
      if (!(await areFoldersThere())) return DONE;
      const state = mailboxes.states.get(mailboxIdOf(key.mailbox));
      if (state === undefined) {
        clearDiskWait(parts, ledger.nameOf(key));
        return DONE;
      }
      // A change of the hand-off applies to downloads that start later.
      const settings = live.now;
      const tools = {
        ...downloadTools,
        limits: settings.limits,
        // An open round has no owners: each attempt decides about its steps.
        handoffOf: ({ mailbox, rule }: Routed) => handoffOf(settings, { mailbox, rule }),
        check: () => mailboxOf(live.now.mailboxes, key)?.check,
        freeSlot,
      };
      return pulse.during(downloadOf(key), () => downloadTransfer(tools, state, key, orLost(signal)));
    },
  };
}
