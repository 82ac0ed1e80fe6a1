/** The folders that a daemon works in, and what it knows them by. */
import { hostname } from "node:os";
import { join } from "node:path";
import { clearTemporaries, makeFolderDurably } from "../base/durable.ts";
import type { Scope } from "../base/scope.ts";
import type { Settings } from "../config/settings.ts";
import { lockInbox } from "../inbox/lock.ts";
import { joinMembers } from "../inbox/members.ts";
import { openInbox } from "../inbox/open.ts";
import { openPasswords } from "../passwords/open.ts";
import { openReceipts } from "../receipts/files.ts";

/** Throws `INBOX_HELD` where somebody else has the inbox, and what the disk says against it. */
export async function openPremises(settings: Settings, scope: Scope, nowMs: number) {
  const { inbox: root, work, state, handoff, limits, queue } = settings;
  const isAlone = queue === "embedded";
  const tokens = join(state, "tokens");
  await makeFolderDurably(root, handoff.folderMode);
  for (const folder of [work, state, tokens]) await makeFolderDurably(folder, 0o700);
  for (const folder of [state, tokens]) await clearTemporaries(folder, nowMs);
  scope.use(await lockInbox(work, isAlone ? "alone" : "shared", nowMs), (lock) => lock.release());
  const members = scope.use(await joinMembers(work), (joined) => joined.leave());
  return {
    members,
    receipts: await openReceipts(work, { alone: isAlone, host: hostname(), nowMs }),
    inbox: await openInbox(root, work, limits.minFreeBytes, members),
    passwords: await openPasswords(state, nowMs),
  };
}
