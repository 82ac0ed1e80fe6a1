/**
 * The processes that share an inbox, as each of them reports itself: every few seconds, in its own file of the work folder.
 * Clocks may differ, so a report says how long ago something was, and a reader notes when it saw the report change.
 */
import type { Clock } from "../base/clock.ts";
import { clearInterval, setInterval } from "../base/timers.ts";
import type { Settings } from "../config/settings.ts";
import { type MemberReport, type Membership, readReports } from "../inbox/members.ts";
import { type Events, listenTo } from "../model/events.ts";
import { type Promised, WITHIN_MS } from "../model/promise.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";

const REPORT_EVERY_MS = 15_000;

const ROLES = {
  scheduler: "No process polls the mailboxes.",
  worker: "No process downloads transfers.",
} as const;

type Role = keyof typeof ROLES;

export type Fleet = NonNullable<ReturnType<typeof joinFleet>>;

/** Reports and reads until the scope ends. `undefined` with the embedded engine: then this process is alone. */
export function joinFleet(
  { work, queue }: Settings,
  membership: Membership,
  events: Events,
  clock: Clock,
  scope: AsyncDisposableStack,
) {
  if (queue === "embedded") return undefined;
  /** When this process polled each mailbox successfully. */
  const own = new Map<MailboxId, number>();
  const polled = new Map<MailboxId, number>();
  const seen = new Map<string, number>();
  /** When a process with that role reported last. */
  const roles: Record<Role, number> = { scheduler: clock.now(), worker: clock.now() };
  let beat = 0;
  const learn = (report: MemberReport, nowMs: number) => {
    for (const role of Object.keys(ROLES) as Role[]) {
      if (report.role === role || report.role === "all") roles[role] = nowMs;
    }
    for (const [name, agoMs] of Object.entries(report.polledAgoMs)) {
      const mailbox = mailboxIdOf(name);
      polled.set(mailbox, Math.max(polled.get(mailbox) ?? 0, nowMs - agoMs));
    }
  };
  const exchange = async () => {
    const nowMs = clock.now();
    const polledAgoMs = Object.fromEntries([...own].map(([mailbox, atMs]) => [mailbox, nowMs - atMs]));
    await membership.report({ role: queue.role, beat: ++beat, polledAgoMs });
    const reports = await readReports(work);
    for (const [id, report] of reports) {
      if (seen.get(id) !== report.beat) learn(report, nowMs);
      seen.set(id, report.beat);
    }
    for (const id of seen.keys()) if (!reports.has(id)) seen.delete(id);
  };
  const listener = listenTo({
    "poll-succeeded": ({ mailbox }) => void own.set(mailboxIdOf(mailbox), clock.now()),
  });
  scope.adopt(events.subscribe(listener), (unsubscribe) => unsubscribe());
  // A failure is repeated, and after a minute the promise is broken.
  const tryExchange = () => void exchange().catch(() => {});
  tryExchange();
  scope.adopt(setInterval(tryExchange, REPORT_EVERY_MS), clearInterval);
  const promise = (role: Role): Promised => {
    const dueMs = roles[role] + WITHIN_MS;
    return { kind: "fleet", subject: `role ${role}`, text: ROLES[role], dueMs, graceMs: WITHIN_MS };
  };
  return {
    /** When another process polled the mailbox successfully, as far as it has reported. */
    polledMs: (mailbox: MailboxId) => polled.get(mailbox),
    promised: () => (Object.keys(ROLES) as Role[]).map(promise),
  };
}
