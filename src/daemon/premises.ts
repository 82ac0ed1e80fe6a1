/** The folders that a daemon works in, and what it knows them by. */
import { hostname } from "node:os";
import { dirname, join } from "node:path";
import { clearTemporaries } from "../base/durable.ts";
import { makeFolderDurably, makeSharedFolderDurably } from "../base/folders.ts";
import type { Scope } from "../base/scope.ts";
import type { MailboxSettings, Settings } from "../config/settings.ts";
import { lockInbox } from "../inbox/lock.ts";
import { joinMembers } from "../inbox/members.ts";
import { openInbox } from "../inbox/open.ts";
import { demandWork, findExposed, rememberWork } from "../inbox/work-folder.ts";
import { demandKnownFormat, noteFormat } from "../inbox/work-format.ts";
import { openPasswords } from "../passwords/open.ts";
import { openReceipts } from "../receipts/files.ts";
import { Places } from "../receipts/places.ts";
import { fellowsAmong } from "./fellows.ts";

/** Hears what is wrong with the folders. Must not throw. */
export interface PremisesWatch {
  /** Who may write this folder can put something else in the place of the work folder, or of what is in it. */
  workExposed(folder: string): void;
}

/**
 * `mailboxes`: those that there are now. Throws `INBOX_HELD` where somebody else has the inbox, `WORK_NOT_OURS` or
 * `WORK_LOST` where the work folder is not the one that we had, `WORK_NEWER` where a newer program has used it, and what
 * the disk says against it.
 */
export async function openPremises(
  settings: Settings,
  mailboxes: () => readonly MailboxSettings[],
  scope: Scope,
  watch: PremisesWatch,
  nowMs: number,
) {
  const { inbox: root, work, state, handoff, limits, queue } = settings;
  const isAlone = queue === "embedded";
  const tokens = join(state, "tokens");
  await demandWork(settings);
  await demandKnownFormat(work);
  await makeFolderDurably(dirname(root), handoff.folderMode);
  await makeSharedFolderDurably(root, handoff.folderMode);
  for (const folder of [work, state, tokens]) await makeFolderDurably(folder, 0o700);
  for (const folder of [state, tokens]) await clearTemporaries(folder, nowMs);
  for (const folder of await findExposed(work)) watch.workExposed(folder);
  scope.use(await lockInbox(work, isAlone ? "alone" : "shared", nowMs, state), (lock) => lock.release());
  const members = scope.use(await joinMembers(work, state), (joined) => joined.leave());
  const receipts = await openReceipts(work, { alone: isAlone, host: hostname(), nowMs });
  const { newFolder } = new Places(work);
  await rememberWork(settings, newFolder);
  await noteFormat(work, newFolder);
  return {
    members,
    receipts,
    inbox: await openInbox(root, work, limits.minFreeBytes, members),
    passwords: await openPasswords({
      state,
      nowMs,
      fellows: fellowsAmong(mailboxes, receipts),
      sharedTurns: isAlone ? undefined : join(work, "turns"),
    }),
  };
}
