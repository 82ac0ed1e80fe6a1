/** Opens the folders of a daemon, and the stores in them. */

import { hash } from "node:crypto";
import { dirname, join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { clearTemporaries, createDurably, makeFolderDurably } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { readFile, rm } from "../base/files.ts";
import { closeDisks } from "../base/machine.ts";
import { nameIn } from "../base/process.ts";
import { randomHex } from "../base/random.ts";
import { BoundedMap } from "../base/waits.ts";
import {
  groupsOf,
  handoffOf,
  inboxesOf,
  type MailboxSettings,
  type Settings,
  targetsOf,
} from "../config/settings.ts";
import { TEMPORARY_TOKEN } from "../host/memory.ts";
import { demandProtected } from "../inbox/exposure.ts";
import { openInbox } from "../inbox/inbox.ts";
import { demandNoOlder, joinMembers, lockInbox } from "../inbox/members.ts";
import { holdDeliveries } from "../inbox/traces.ts";
import {
  type Answers,
  demandAnswers,
  demandKnownFormat,
  demandOurs,
  demandSame,
  demandWritable,
  FORMAT,
  findLost,
  identifyWork,
  type KnownFolders,
  readWorkId,
  rememberWork,
  watermarkOf,
} from "../inbox/work-folder.ts";
import { withKeys } from "../ledger/keys.ts";
import { openLedger } from "../ledger/ledger.ts";
import { ledgerPaths } from "../ledger/paths.ts";
import type { Ledger } from "../ledger/port.ts";
import { noteDoubt } from "../ledger/starts.ts";
import type { Emit } from "../model/events.ts";
import { mailboxOf, serviceIdOf } from "../model/mailbox.ts";
import { actorOf } from "../model/order.ts";
import { ADOPTED, hasEnded, IGNORED, withState } from "../model/record.ts";
import { mailboxIdOf } from "../model/transfer.ts";
import { findQuestion } from "../operate/records.ts";
import { openPasswords, type PasswordsOptions } from "../passwords/passwords.ts";
import type { CoRecipients } from "../passwords/port.ts";
import type { LiveSettings } from "./live-settings.ts";

/** For passwords that arrive there the journal has this instead of a host. */
const DROP_FOLDER = "the drop folder";

interface WorkspaceTools {
  readonly emit: Emit;
  readonly clock: Clock;
  readonly process: string;
  /** The folders when this process opened them last; `undefined` at its first start. */
  readonly known: KnownFolders | undefined;
}

/**
 * Nothing is changed unless the folders are the known ones, and protected: throws `FILES_UNPROTECTED`. Throws `INBOX_APART` if nothing can be renamed into an inbox,
 * `GROUP_REFUSED` if Inlet may not use a group, `INBOX_HELD` or `MEMBER_OLDER` if another daemon uses the inbox, `WORK_NOT_OURS`,
 * `WORK_LOST` or `WORK_RESTORED` if the work folder is not the expected one, `WORK_NEWER` or `WORK_OLDER` if another version
 * has used it, and the faults of the disk.
 */
export async function openWorkspace(
  live: LiveSettings,
  scope: AsyncDisposableStack,
  { emit, clock, process, known: before }: WorkspaceTools,
) {
  const settings = live.now;
  const { inbox: root, work, state, handoff, queue } = settings;
  const isAlone = queue === "embedded";
  const nowMs = clock.now();
  const tokens = join(state, "tokens");
  const known = before && (await findSame(before, settings));
  closeDisks(undefined);
  emit({ type: "trust-looked-at", fault: await demandProtected(settings) });
  if (known !== undefined) await demandWritable(known);
  const served = await servedBy(settings);
  await demandOurs(work);
  const question = await findQuestion(served);
  const answers = question && (await demandAnswers(served, question));
  await demandKnownFormat(work);
  await makeFolderDurably(dirname(root), handoff.folderMode);
  await makeFolderDurably(root, handoff.folderMode, "shared");
  for (const folder of [work, state, tokens]) await makeFolderDurably(folder, 0o700);
  for (const folder of [state, tokens]) await clearTemporaries(folder, nowMs);
  await clearTemporaries(tokens, nowMs, TEMPORARY_TOKEN);
  scope.adopt(await lockInbox(work, isAlone ? "alone" : "shared", nowMs, state), (lock) => lock.release());
  const joining = joinMembers(work, state, FORMAT, process, settings.sockets);
  const membership = scope.adopt(await joining, (joined) => joined.leave());
  await demandNoOlder(work, FORMAT);
  const { temporary, staging } = ledgerPaths(work);
  await makeFolderDurably(temporary, 0o700);
  const isFresh = answers === undefined && (await readWorkId(work)) === undefined;
  // Without an id, the next start looks again.
  if (isFresh && (await holdDeliveries(targetsOf(settings)))) {
    const verdicts = served.mailboxes.map(({ name }) => [name, "ask"] as const);
    await noteDoubt(work, verdicts, temporary);
  }
  const folders = await identifyWork(settings, temporary);
  // One that began to start before the format was noted.
  await demandNoOlder(work, FORMAT);
  const ledger = await openLedger({
    work,
    root,
    clock,
    writer: isAlone ? undefined : await readWriter(state),
    folderMode: (record) => handoffOf(live.now, record).folderMode,
    services: () => live.now.mailboxes.map(idOf),
    folderGroup: (record) => handoffOf(live.now, record).gid,
    watermark: { path: watermarkOf(folders), id: folders.id },
  });
  scope.adopt(ledger, (it) => it.close());
  if (answers !== undefined) {
    await recordAnswers(ledger, answers, emit);
    await adoptRecords(ledger, work, answers, nowMs);
    const verdicts = Array.from(answers, ([name, { decision }]) => [name, decision] as const);
    await noteDoubt(work, verdicts, temporary);
    await ledger.acceptOlder();
  }
  await rememberWork(served);
  const inbox = await openInbox(root, staging, () => live.now.limits.minFreeBytes);
  // An inbox that was used before is not created again: its disk may not be mounted.
  if (known === undefined) await inbox.prepare(inboxesOf(settings));
  await inbox.demandGroups(groupsOf(settings));
  return {
    folders,
    ledger,
    inbox,
    membership,
    passwords: await openPasswords({
      state,
      keepMs: settings.keep.passwordsMs,
      clock,
      attempts: ledger.attempts,
      nameOf: (key) => ledger.nameOf(key),
      onHandDrop: recordHandDrops(ledger, emit),
      coRecipients: coRecipientsAmong(() => live.now.mailboxes, ledger),
    }),
  };
}

/** The same folders; `undefined` if operators have said what follows their loss, which is as at a first start. Throws the loss. */
async function findSame(known: KnownFolders, settings: Settings): Promise<KnownFolders | undefined> {
  try {
    await demandSame(known);
    return known;
  } catch (loss) {
    const find = async () => {
      const served = await servedBy(settings);
      const lost = await findLost(served);
      return lost && demandAnswers(served, lost);
    };
    // Without an answer, the loss says more than what follows from it.
    if ((await find().catch(() => undefined)) === undefined) throw loss;
    return undefined;
  }
}

/** Answers are about keys, which the records have too. */
async function servedBy(settings: Settings) {
  return { ...settings, mailboxes: await withKeys(settings.work, settings.mailboxes, "foreseen") };
}

/** May be called twice: the lines of one answer have one id. */
async function recordAnswers(ledger: Ledger, answers: Answers, emit: Emit): Promise<void> {
  for (const [mailbox, { id, decision: act, who, from }] of answers) {
    await ledger.recordAct({ id, act, who, from, mailbox });
    emit({ type: "operator-acted", act, by: { who, from }, mailbox, trackingId: undefined });
  }
}

/**
 * What is open in this ledger may have been delivered since. Where that is adopted, neither a download nor a stage goes on.
 * May be called twice.
 */
async function adoptRecords(ledger: Ledger, work: string, decided: Answers, nowMs: number): Promise<void> {
  const adopted = new Set(
    [...decided].flatMap(([name, { decision }]) => (decision === "adopt" ? mailboxIdOf(name) : [])),
  );
  if (adopted.size === 0) return;
  // A damaged record is reported later, and never downloaded.
  for await (const record of ledger.open(() => {})) {
    if (!adopted.has(mailboxIdOf(record.mailbox))) continue;
    await ledger.end(withState(record, "gone", nowMs, { reason: IGNORED, message: ADOPTED }));
  }
  await rm(ledgerPaths(work).staging, { recursive: true, force: true });
}

export type Workspace = Awaited<ReturnType<typeof openWorkspace>>;

/** Adds the password files that people drop to the journal, each once, although several processes may read it repeatedly. */
function recordHandDrops(ledger: Ledger, emit: Emit): NonNullable<PasswordsOptions["onHandDrop"]> {
  // A forgotten file may get a second line of the same id, which is not shown.
  const recorded = new BoundedMap<true>();
  return async ({ mailbox, trackingId, sender, round }, { mark, uid }) => {
    const text = JSON.stringify([mark, mailbox, trackingId]);
    const id = hash("sha256", text).slice(0, 16);
    if (recorded.has(id)) return;
    recorded.set(id, true);
    const by = actorOf(await nameIn("/etc/passwd", uid), DROP_FOLDER);
    await ledger.recordAct({ id, act: "password", ...by, mailbox, trackingId, sender, round });
    emit({ type: "operator-acted", act: "password", by, mailbox, trackingId });
  };
}

/** The name of this installation's journal. It is kept in the state folder, because two machines may have one host name. */
async function readWriter(state: string): Promise<string> {
  const path = join(state, "writer");
  try {
    await createDurably(path, randomHex(6));
  } catch (error) {
    if (!(error instanceof Fault && error.code === "TARGET_EXISTS")) throw error;
  }
  return (await readFile(path, "utf8")).replace(/[^0-9a-z]/g, "");
}

/** Finds the records of a transfer for other mailboxes. `mailboxes`: as configured now. */
export function coRecipientsAmong(
  mailboxes: () => readonly MailboxSettings[],
  ledger: Pick<Ledger, "find">,
): CoRecipients {
  const serviceOf = (mailbox: string) => {
    const found = mailboxOf(mailboxes(), { mailbox });
    return found === undefined ? "" : idOf(found);
  };
  return {
    serviceOf,
    async openBudgets(mailbox, trackingId) {
      const service = serviceOf(mailbox);
      const isOther = ({ name }: MailboxSettings) => mailboxIdOf(name) !== mailboxIdOf(mailbox);
      const others = mailboxes().filter((other) => isOther(other) && idOf(other) === service);
      const found = others.map(async ({ name, passwordAttempts }) => {
        const record = await ledger.find({ mailbox: name, trackingId });
        return record === undefined || hasEnded(record) ? [] : [passwordAttempts];
      });
      return (await Promise.all(found)).flat();
    },
    async isElsewhere(mailbox, trackingId) {
      const service = serviceOf(mailbox);
      const others = mailboxes().filter((other) => idOf(other) !== service);
      const found = others.map(({ name }) => ledger.find({ mailbox: name, trackingId }));
      return (await Promise.all(found)).some((record) => record !== undefined);
    },
  };
}

function idOf({ service }: MailboxSettings): string {
  return serviceIdOf(service.baseUrl);
}
