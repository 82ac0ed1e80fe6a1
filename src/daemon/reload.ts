/** New settings for a daemon that runs: what of them can be applied is, all of it or nothing; the rest waits for a restart. */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../base/clock.ts";
import type { Settings } from "../config/settings.ts";
import { type ExpectedTools, openExpected } from "../mailbox/expected.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { expiryOf, jobOf } from "../mailbox/tools.ts";
import { isWaitOver, type TransferRecord } from "../model/record.ts";
import type { JobQueue } from "../queue/port.ts";
import type { Desk } from "./desk.ts";
import type { Current } from "./handlers.ts";
import type { Mailboxes } from "./mailboxes.ts";
import { readUnfinished, type UnfinishedTools } from "./unfinished.ts";
import type { DaemonWatch } from "./watching.ts";

interface ReloadTools extends UnfinishedTools {
  /** Those that the daemon was started with. */
  readonly settings: Settings;
  /** As it is now, and as it is from now on. */
  current(): Current;
  become(current: Current, configured: Settings["mailboxes"]): void;
  readonly mailboxes: Mailboxes;
  readonly expected: ExpectedTools;
  readonly queue: JobQueue;
  readonly clock: Clock;
  readonly desk: Desk | undefined;
  readonly watch: Pick<DaemonWatch, "reloaded">;
}

/** Whatever can fail comes first. Throws that, and then everything is as it was. */
export async function applySettings(tools: ReloadTools, next: Settings): Promise<void> {
  const { mailboxes, queue, desk } = tools;
  const begin = await mailboxes.prepare(next.mailboxes);
  const expected = await openExpected(tools.expected, next.mailboxes);
  const unfinished = await readUnfinished(tools);

  const before = { states: new Map(mailboxes.states), expected: tools.current().expected };
  begin();
  unfinished.apply(mailboxes.states);
  tools.become({ expected, limits: next.limits, handoff: next.handoff }, next.mailboxes);
  desk?.settingsChanged(next);
  desk?.showOverdue(expected.overdue());
  // Not waited for: a queue that is away learns of it when it is back, and mailboxes are what they are without it.
  schedulePolls(queue, next).catch(() => {});
  const putOff = unfinished.records.filter((record) => isQuietNoMore(tools, before.states, record));
  hurryAll(tools, putOff).catch(() => {});
  await before.expected.close();
  tools.watch.reloaded(next.mailboxes.length, needsRestart(tools.settings, next));
}

export function schedulePolls(queue: JobQueue, { mailboxes }: Settings): Promise<void> {
  const active = mailboxes.filter(({ paused }) => !paused);
  return queue.schedule(active.map(({ name, pollMs }) => ({ mailbox: name, everyMs: pollMs })));
}

async function hurryAll({ ledger, queue }: ReloadTools, putOff: readonly TransferRecord[]): Promise<void> {
  for (const record of putOff) {
    await queue.runNow(jobOf(ledger, record.mailbox, record.trackingId, expiryOf(record)));
  }
}

/** It may have been put off until quiet hours end that are others now. What waits for something else goes on waiting. */
function isQuietNoMore(
  { mailboxes, clock }: ReloadTools,
  before: ReadonlyMap<string, MailboxState>,
  { mailbox, state, until }: TransferRecord,
): boolean {
  const [old, now] = [before.get(mailbox), mailboxes.states.get(mailbox)];
  if (old === undefined || now === undefined) return false;
  if (isDeepStrictEqual(old.mailbox.quiet, now.mailbox.quiet)) return false;
  return state !== "waiting" || (until !== undefined && isWaitOver(until, clock.now()));
}

/** The names of keys, as in the configuration. Secrets are compared by what they are called, not by what they hold. */
function needsRestart(old: Settings, next: Settings): string[] {
  const pairs: readonly (readonly [string, unknown, unknown])[] = [
    ["inbox", old.inbox, next.inbox],
    ["work", old.work, next.work],
    ["state", old.state, next.state],
    ["queue", plain(old.queue), plain(next.queue)],
    ["keep", old.keep, next.keep],
    ["http", withoutToken(old.http), withoutToken(next.http)],
    ["limits.transfers", old.limits.transfers, next.limits.transfers],
    ["limits.minFreeSpace", old.limits.minFreeBytes, next.limits.minFreeBytes],
    ["limits.bandwidth", plain(old.limits.bandwidth), plain(next.limits.bandwidth)],
  ];
  return pairs.filter(([, before, after]) => !isDeepStrictEqual(before, after)).map(([name]) => name);
}

/** What it holds, and where it comes from, is looked up each time; whether there is one decides who may act. */
function withoutToken(http: Settings["http"]): unknown {
  return plain(http && { ...http, token: http.token !== undefined });
}

/** As JSON shows it: functions fall away, and what they close over. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null));
}
