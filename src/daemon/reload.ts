/** Puts settings and operators' pauses in force: at a start, and while the daemon runs. */
import { hostname } from "node:os";
import { isDeepStrictEqual } from "node:util";
import { Coalesced } from "../base/concurrency.ts";
import { Fault } from "../base/faults.ts";
import { stat } from "../base/files.ts";
import { randomHex } from "../base/random.ts";
import { groupsOf, inboxesOf, type Settings } from "../config/settings.ts";
import { findGroup } from "../host/groups.ts";
import { demandProtected } from "../inbox/exposure.ts";
import { findLost, rememberWork } from "../inbox/work-folder.ts";
import { withKeys } from "../ledger/keys.ts";
import { ledgerPaths } from "../ledger/paths.ts";
import { type Pauses, readPauses, withPauses } from "../ledger/pauses.ts";
import type { Ledger } from "../ledger/port.ts";
import { jobOf, type MailboxState } from "../mailbox/state.ts";
import { type Emit, listenTo } from "../model/events.ts";
import type { Handoff, Route } from "../model/mailbox.ts";
import { actorOf } from "../model/order.ts";
import { type TransferRecord, waitLeftMs } from "../model/record.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import { withCount } from "../operate/records.ts";
import type { JobQueue } from "../queue/port.ts";
import { lookAtChanges } from "./folder-watch.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Parts } from "./parts.ts";
import { readUnfinished } from "./unfinished.ts";

/** The settings with the `gid` of each configured group. Throws `GROUP_UNKNOWN` and `STOPPED`. */
export async function withGroups(settings: Settings, signal: AbortSignal): Promise<Settings> {
  const withGroup = async <Given extends { readonly handoff?: Handoff | undefined }>(given: Given) => {
    const { handoff } = given;
    if (handoff?.group === undefined) return given;
    return { ...given, handoff: { ...handoff, gid: await findGroup(handoff.group, signal) } };
  };
  const common = await withGroup(settings);
  const mailboxes: Settings["mailboxes"][number][] = [];
  for (const mailbox of settings.mailboxes) {
    const { routing } = mailbox;
    const routes: Route[] = [];
    for (const route of routing?.routes ?? []) routes.push(await withGroup(route));
    mailboxes.push({ ...(await withGroup(mailbox)), ...(routing && { routing: { ...routing, routes } }) });
  }
  return { ...common, mailboxes };
}

/** Called at a start, before anything is polled: what the work folder says of mailboxes. */
export async function putRecordsInForce(live: LiveSettings, emit: Emit): Promise<void> {
  const { work } = live.now;
  const pauses = await readPauses(work);
  const isPaused = !isDeepStrictEqual(pauses, live.pauses);
  const keyed = await withKeys(work, live.configured.mailboxes, "claimed");
  live.replace({ ...live.configured, mailboxes: keyed }, pauses);
  const { mailboxes } = live.now;
  if (mailboxes.some(({ name, label }) => name !== label)) emit({ type: "mailboxes-named", mailboxes });
  if (isPaused) emit({ type: "pauses-changed", mailboxes });
}

/** Reads operators' pauses at each change and regularly, until the scope ends. Returns a function that reads them now. */
export async function followPauses(
  live: LiveSettings,
  apply: (pauses: Pauses) => Promise<void>,
  emit: Emit,
  scope: AsyncDisposableStack,
): Promise<() => Promise<void>> {
  const { work } = live.now;
  const looks = new Coalesced(async () => {
    const pauses = await readPauses(work);
    if (isDeepStrictEqual(pauses, live.pauses)) return;
    // Without its disk the work folder seems to hold no pauses. This throws if it is gone.
    await stat(work);
    await apply(pauses);
  });
  // The timer tries again, and a failing disk is reported elsewhere.
  const look = () => looks.run().catch(() => {});
  scope.adopt(looks, (it) => it.idle());
  await lookAtChanges(ledgerPaths(work).pauses, () => void look(), emit, scope);
  // Pauses may have changed since the start.
  await look();
  return look;
}

/**
 * Adds changes of the configuration to the journal: which keys have changed, never their values. `source`: the file that
 * holds the configuration. Who has changed it is not known.
 */
export function journalSettings(ledger: Pick<Ledger, "recordAct">, source: string): Emit {
  const facts = () => ({ id: randomHex(8), ...actorOf(source, hostname()) });
  return listenTo({
    "settings-reloaded"({ changed = [] }) {
      if (changed.length > 0) void ledger.recordAct({ ...facts(), act: "reload", keys: changed });
    },
    "settings-refused"({ fault: { code } }) {
      void ledger.recordAct({ ...facts(), act: "reload-refused", reason: code });
    },
  });
}

/**
 * All that can change takes effect, or nothing does: steps that can fail come first, and their faults are thrown. With
 * `live.configured` only the pauses change. Must not be called again before it is over.
 */
export async function applySettings(
  tools: Parts,
  given: Settings,
  pauses = tools.live.pauses,
): Promise<void> {
  const { live, mailboxes, expected, queue, emit } = tools;
  const isReload = given !== live.configured;
  // The folders change only with a restart.
  const { inbox, work, state } = live.now;
  const served = { inbox, work, state, mailboxes: given.mailboxes };
  const lost = isReload ? await findLost(served).then(withCount) : undefined;
  if (lost !== undefined) throw new Fault(lost.code, { detail: lost.detail });
  if (isReload)
    emit({ type: "trust-looked-at", fault: await demandProtected({ ...served, files: given.files }) });
  const keyed = await withKeys(work, given.mailboxes, "claimed");
  const configured = isReload ? { ...given, mailboxes: keyed } : given;
  const next = { ...configured, mailboxes: withPauses(configured.mailboxes, pauses) };
  await tools.inbox.prepare(newInboxes(live.now, next));
  await tools.inbox.demandGroups(groupsOf(next));
  const applyMailboxes = await mailboxes.prepare(next.mailboxes);
  const applyExpected = await expected.prepare(next.mailboxes);
  const unfinished = await readUnfinished(tools);
  if (isReload) await rememberWork(served);

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
  // Not awaited either: without Redis, these transfers continue when their wait is over.
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

async function runAllNow({ ledger, queue }: Parts, records: readonly TransferRecord[]): Promise<void> {
  for (const record of records) await queue.runNow(jobOf(ledger, record));
}

/**
 * Whether the quiet hours have changed, and the old ones may have held the transfer back. A transfer that waits for another
 * reason goes on waiting.
 */
function wasHeldByQuietHours(
  { mailboxes, clock }: Parts,
  before: ReadonlyMap<MailboxId, MailboxState>,
  record: TransferRecord,
): boolean {
  const { state, until } = record;
  const id = mailboxIdOf(record.mailbox);
  const [old, now] = [before.get(id), mailboxes.states.get(id)];
  if (old === undefined || now === undefined) return false;
  if (isDeepStrictEqual(old.mailbox.quiet, now.mailbox.quiet)) return false;
  // Without a recorded wait, only its job may be delayed. `waitLeftMs` counts neither quiet hours nor a wait that is over.
  return state !== "waiting" || (until !== undefined && waitLeftMs(record, clock.now()) === undefined);
}
