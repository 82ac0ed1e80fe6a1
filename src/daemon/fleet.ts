/**
 * The processes that share an inbox, as each of them reports itself: every few seconds, in its own file of the work folder.
 * Clocks may differ, so a report says how long ago something was, and a reader notes when it saw the report change.
 */
import type { Clock } from "../base/clock.ts";
import type { Scope } from "../base/scope.ts";
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

export class Fleet {
  readonly #work: string;
  readonly #membership: Membership;
  readonly #role: MemberReport["role"];
  readonly #clock: Clock;
  /** When this process polled each mailbox successfully. */
  readonly #own = new Map<MailboxId, number>();
  readonly #polled = new Map<MailboxId, number>();
  readonly #seen = new Map<string, { readonly beat: number; readonly atMs: number }>();
  /** When a process with that role reported last. */
  readonly #roles: Record<keyof typeof ROLES, number>;
  #beat = 0;

  readonly listener = listenTo({
    "poll-succeeded": ({ mailbox }) => void this.#own.set(mailboxIdOf(mailbox), this.#clock.now()),
  });

  constructor(work: string, membership: Membership, role: MemberReport["role"], clock: Clock) {
    this.#work = work;
    this.#membership = membership;
    this.#role = role;
    this.#clock = clock;
    this.#roles = { scheduler: clock.now(), worker: clock.now() };
  }

  /** Reports and reads until the scope ends. */
  start(scope: Scope): void {
    // A failure is repeated, and after a minute the promise is broken.
    const exchange = () => void this.#exchange().catch(() => {});
    exchange();
    scope.use(setInterval(exchange, REPORT_EVERY_MS), clearInterval);
  }

  /** When another process polled the mailbox successfully, as far as it has reported. */
  polledMs(mailbox: MailboxId): number | undefined {
    return this.#polled.get(mailbox);
  }

  promised(): Promised[] {
    return (["scheduler", "worker"] as const).map((role) => ({
      kind: "fleet",
      subject: `role ${role}`,
      text: ROLES[role],
      dueMs: this.#roles[role] + WITHIN_MS,
      graceMs: WITHIN_MS,
    }));
  }

  async #exchange(): Promise<void> {
    const nowMs = this.#clock.now();
    const polledAgoMs = Object.fromEntries([...this.#own].map(([mailbox, atMs]) => [mailbox, nowMs - atMs]));
    this.#beat++;
    await this.#membership.report({ role: this.#role, beat: this.#beat, polledAgoMs });
    const reports = await readReports(this.#work);
    for (const [id, { role, beat, polledAgoMs: ago }] of reports) {
      if (this.#seen.get(id)?.beat === beat) continue;
      this.#seen.set(id, { beat, atMs: nowMs });
      for (const each of ["scheduler", "worker"] as const) {
        if (role === each || role === "all") this.#roles[each] = nowMs;
      }
      for (const [name, agoMs] of Object.entries(ago)) {
        const mailbox = mailboxIdOf(name);
        this.#polled.set(mailbox, Math.max(this.#polled.get(mailbox) ?? 0, nowMs - agoMs));
      }
    }
    for (const id of this.#seen.keys()) if (!reports.has(id)) this.#seen.delete(id);
  }
}

/** `undefined` with the embedded engine: then this process is alone. */
export function joinFleet(
  { work, queue }: Settings,
  membership: Membership,
  events: Events,
  clock: Clock,
  scope: Scope,
): Fleet | undefined {
  if (queue === "embedded") return undefined;
  const fleet = new Fleet(work, membership, queue.role, clock);
  scope.use(events.subscribe(fleet.listener), (unsubscribe) => unsubscribe());
  fleet.start(scope);
  return fleet;
}
