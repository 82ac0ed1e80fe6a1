/** Whether the daemon is able to work: for those who restart it, or send traffic elsewhere. */
import type { Status } from "../model/status.ts";

export interface Readiness {
  readonly ready: boolean;
  /** Why not; one sentence each. */
  readonly reasons: readonly string[];
}

/** The disk and the queue concern everything. Mailboxes fail one by one: only when none can be polled nothing works. */
export function readinessOf({ troubles, mailboxes, daemon }: Status): Readiness {
  const general = troubles.filter(({ what }) => what === "disk" || what === "queue");
  const active = mailboxes.filter(({ paused }) => !paused);
  const polls = daemon.role !== "worker" && active.length > 0;
  const isDeaf = polls && active.every(({ trouble }) => trouble !== undefined);
  const isNew = polls && active.every(({ lastPoll }) => lastPoll === undefined);
  const reasons = [
    ...general.map(({ message }) => message),
    ...(isDeaf ? ["No mailbox can be polled."] : []),
    ...(isNew ? ["No mailbox has been polled yet."] : []),
  ];
  return { ready: reasons.length === 0, reasons };
}
