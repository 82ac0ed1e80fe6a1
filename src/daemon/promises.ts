/** What this daemon and its fleet promise to do in time, part by part. A watcher reports promises that are broken. */
import { clearInterval, monotonicMs, setInterval } from "../base/timers.ts";
import type { Settings } from "../config/settings.ts";
import { type MemberReport, type Membership, readReports } from "../inbox/members.ts";
import { type Events, listenTo } from "../model/events.ts";
import { type Promised, type PromiseKind, WITHIN_MS } from "../model/promise.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import type { GeneralTrouble } from "../observe/board.ts";
import { type PromiseSource, Watcher } from "../observe/watcher.ts";
import type { Parts } from "./parts.ts";

const REPORT_EVERY_MS = 15_000;

/** The roles that a fleet needs, each with the trouble if no process has it. */
const ROLES = {
  scheduler: "No process polls the mailboxes.",
  worker: "No process downloads transfers.",
} as const;

type Role = keyof typeof ROLES;

const ROLE_NAMES = Object.keys(ROLES) as Role[];

/** Watches until the scope ends. */
export function watchPromises(
  parts: Parts,
  membership: Membership,
  events: Events,
  scope: AsyncDisposableStack,
): void {
  const { live, board, queue, handoffs, orders, notifier, clock } = parts;
  const fleet = joinFleet(live.now, membership, events, scope);
  const stalledSinceMs = new Map<string, number>();
  const orderedSinceMs = new Map<string, number>();
  /** `explaining`: troubles that say why no promise of this kind is kept. */
  const source = (
    kind: PromiseKind,
    explaining: readonly GeneralTrouble[],
    read: PromiseSource["read"],
  ): PromiseSource => ({ kind, isExplained: () => board.hasTrouble(...explaining), read });
  const watcher = new Watcher(clock, events.emit, [
    source("poll", ["queue", "disk"], () => board.promisedPolls((mailbox) => fleet?.polledMs(mailbox))),
    source("download", ["queue", "disk"], async () =>
      downloadsOf(sinceFirstSeen(stalledSinceMs, await queue.stalled())),
    ),
    source("delivery", ["disk"], () => board.promisedDeliveries()),
    source("order", ["disk"], () => ordersOf(orders, orderedSinceMs)),
    source("handoff", ["disk", "handoffs"], () => handoffsOf(handoffs.scanDueMs())),
    source("notification", [], () => notifier.promised()),
    ...(fleet === undefined ? [] : [source("fleet", ["disk"], () => fleet.promised())]),
  ]);
  watcher.start();
  scope.adopt(watcher, (it) => it.close());
}

/** Keeps the map up to date: when each of these was first seen, on the monotonic clock. */
function sinceFirstSeen(sinceMs: Map<string, number>, ids: readonly string[]): Map<string, number> {
  const wanted = new Set(ids);
  for (const id of sinceMs.keys()) if (!wanted.has(id)) sinceMs.delete(id);
  for (const id of ids) if (!sinceMs.has(id)) sinceMs.set(id, monotonicMs());
  return sinceMs;
}

/** No job that is due waits for longer than a minute while places are free. */
function downloadsOf(stalled: ReadonlyMap<string, number>): readonly Promised[] {
  return Array.from(stalled, ([service, since]) => {
    const text = "Transfers wait to be downloaded, though there is a free place.";
    const subject = `downloads from ${service}`;
    return { kind: "download", subject, text, dueMs: since + WITHIN_MS, graceMs: WITHIN_MS };
  });
}

/** Each order is carried out within a minute, and orders are looked for regularly. */
function ordersOf({ open, dueMs }: Parts["orders"], sinceMs: Map<string, number>): readonly Promised[] {
  const common = { kind: "order", graceMs: WITHIN_MS } as const;
  const look = { ...common, subject: "orders", text: "Orders are not read.", dueMs: dueMs + WITHIN_MS };
  const since = sinceFirstSeen(
    sinceMs,
    open.map(({ id }) => id),
  );
  const given = open.map(({ id, order: { action, mailbox, trackingId, at } }) => ({
    ...common,
    subject: `order ${action} ${trackingId ?? mailbox}`,
    mailbox,
    text: `It was given at ${at}, and has not been carried out.`,
    dueMs: (since.get(id) ?? dueMs) + WITHIN_MS,
  }));
  return [look, ...given];
}

/** The outbox is scanned within a minute of the planned time. */
function handoffsOf(scanDueMs: number | undefined): readonly Promised[] {
  if (scanDueMs === undefined) return [];
  const text = "Deliveries are not looked at: hand-offs and pick-ups may be missed.";
  return [{ kind: "handoff", subject: "hand-offs", text, dueMs: scanDueMs + WITHIN_MS, graceMs: WITHIN_MS }];
}

/**
 * The processes that share an inbox report themselves every few seconds, each in its own file of the work folder. Clocks may
 * differ, so a report has no times, but how long ago each poll was, and a number (`beat`) that is higher in each report.
 *
 * Reports and reads until the scope ends. `undefined` with the embedded engine: then this process is alone.
 */
function joinFleet(
  { work, queue }: Settings,
  membership: Membership,
  events: Events,
  scope: AsyncDisposableStack,
) {
  if (queue === "embedded") return undefined;
  /** When this process polled each mailbox successfully, on the monotonic clock, as all times here. */
  const ownPolls = new Map<MailboxId, number>();
  /** When any process did, as far as it was reported. */
  const polls = new Map<MailboxId, number>();
  /** The last beat of each process. */
  const beats = new Map<string, number>();
  /** When a process with that role reported last. */
  const roles: Record<Role, number> = { scheduler: monotonicMs(), worker: monotonicMs() };
  let beat = 0;
  const learn = (report: MemberReport, nowMs: number) => {
    for (const role of ROLE_NAMES) {
      if (report.role === role || report.role === "all") roles[role] = nowMs;
    }
    for (const [name, agoMs] of Object.entries(report.polledAgoMs)) {
      const mailbox = mailboxIdOf(name);
      polls.set(mailbox, Math.max(polls.get(mailbox) ?? nowMs - agoMs, nowMs - agoMs));
    }
  };
  const exchange = async () => {
    const nowMs = monotonicMs();
    const polledAgoMs = Object.fromEntries([...ownPolls].map(([mailbox, atMs]) => [mailbox, nowMs - atMs]));
    await membership.report({ role: queue.role, beat: ++beat, polledAgoMs });
    const reports = await readReports(work);
    for (const [id, report] of reports) {
      if (beats.get(id) !== report.beat) learn(report, nowMs);
      beats.set(id, report.beat);
    }
    for (const id of beats.keys()) if (!reports.has(id)) beats.delete(id);
  };
  const listener = listenTo({
    "poll-succeeded": ({ mailbox }) => void ownPolls.set(mailboxIdOf(mailbox), monotonicMs()),
  });
  scope.adopt(events.subscribe(listener), (unsubscribe) => unsubscribe());
  // The timer repeats a failed exchange. After a minute of failures the promise is broken.
  const tryExchange = () => void exchange().catch(() => {});
  tryExchange();
  scope.adopt(setInterval(tryExchange, REPORT_EVERY_MS), clearInterval);
  const promise = (role: Role): Promised => {
    const dueMs = roles[role] + WITHIN_MS;
    return { kind: "fleet", subject: `role ${role}`, text: ROLES[role], dueMs, graceMs: WITHIN_MS };
  };
  return {
    polledMs: (mailbox: MailboxId) => polls.get(mailbox),
    promised: () => ROLE_NAMES.map(promise),
  };
}
