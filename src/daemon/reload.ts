/** Applies new settings while the daemon runs: all that can change takes effect, or nothing does. */

import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../base/clock.ts";
import { groupsOf, inboxesOf, type Settings } from "../config/settings.ts";
import { withPauses } from "../ledger/pauses.ts";
import type { Expected } from "../mailbox/expected.ts";
import type { MailboxState } from "../mailbox/state.ts";
import { jobOf } from "../mailbox/tools.ts";
import type { Emit } from "../model/events.ts";
import { expiryOf, type TransferRecord, waitLeftMs } from "../model/record.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import type { JobQueue } from "../queue/port.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Mailboxes } from "./mailboxes.ts";
import { readUnfinished, type UnfinishedTools } from "./unfinished.ts";

interface ReloadTools extends UnfinishedTools {
  readonly live: LiveSettings;
  readonly mailboxes: Mailboxes;
  readonly expected: Expected;
  readonly queue: JobQueue;
  readonly clock: Clock;
  readonly emit: Emit;
}

/**
 * Steps that can fail come first. Throws their faults, and then nothing has changed. Only the pauses change if `configured`
 * is `live.configured`. Not to be called twice at once.
 */
export async function applySettings(
  tools: ReloadTools,
  configured: Settings,
  pauses = tools.live.pauses,
): Promise<void> {
  const { live, mailboxes, expected, queue, emit } = tools;
  const next = { ...configured, mailboxes: withPauses(configured.mailboxes, pauses) };
  const isReload = configured !== live.configured;
  await tools.inbox.prepare(newInboxes(live.now, next));
  await tools.inbox.demandGroups(groupsOf(next));
  const applyMailboxes = await mailboxes.prepare(next.mailboxes);
  const applyExpected = await expected.prepare(next.mailboxes);
  const unfinished = await readUnfinished(tools);

  const before = new Map(mailboxes.states);
  applyMailboxes();
  unfinished.apply(mailboxes.states);
  const { changed, needsRestart } = live.replace(configured, pauses);
  const { mailboxes: shown, timezone } = next;
  if (isReload) emit({ type: "settings-reloaded", mailboxes: shown, timezone, changed, needsRestart });
  else emit({ type: "pauses-changed", mailboxes: shown });
  const written = applyExpected();
  // Not awaited: Redis may be away, and the settings are in force without it.
  schedulePolls(queue, next).catch(() => {});
  const held = unfinished.records.filter((record) => wasHeldByQuietHours(tools, before, record));
  // As above: they run when their wait is over.
  runAllNow(tools, held).catch(() => {});
  await written;
}

/** Inboxes that are already in use are not created again: their disk may not be mounted. */
function newInboxes(now: Settings, next: Settings): ReturnType<typeof inboxesOf> {
  const known = new Set(inboxesOf(now).map(({ path }) => path));
  // The common inbox changes only with a restart.
  return inboxesOf({ ...next, inbox: now.inbox }).filter(({ path }) => !known.has(path));
}

export function schedulePolls(queue: JobQueue, { mailboxes }: Settings): Promise<void> {
  const active = mailboxes.filter(({ paused }) => !paused);
  return queue.schedule(active.map(({ name, pollMs }) => ({ mailbox: mailboxIdOf(name), everyMs: pollMs })));
}

async function runAllNow({ ledger, queue }: ReloadTools, records: readonly TransferRecord[]): Promise<void> {
  for (const record of records) {
    await queue.runNow(jobOf(ledger, record.mailbox, record.trackingId, expiryOf(record)));
  }
}

/** Whether the quiet hours have changed, and the old ones may have held the transfer back. Any other wait continues. */
function wasHeldByQuietHours(
  { mailboxes, clock }: ReloadTools,
  before: ReadonlyMap<MailboxId, MailboxState>,
  record: TransferRecord,
): boolean {
  const { state, until } = record;
  const id = mailboxIdOf(record.mailbox);
  const [old, now] = [before.get(id), mailboxes.states.get(id)];
  if (old === undefined || now === undefined) return false;
  if (isDeepStrictEqual(old.mailbox.quiet, now.mailbox.quiet)) return false;
  // `waitLeftMs` does not count quiet hours.
  return state !== "waiting" || (until !== undefined && waitLeftMs(record, clock.now()) === undefined);
}
