/** Checks the groups of delivered files: that each exists, that the daemon may use it, and that its members reach deliveries. */
import type { Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { lookAt } from "../../base/files.ts";
import { formatCount } from "../../base/phrases.ts";
import { handoffsOf, type Settings, type Target, targetsOf } from "../../config/settings.ts";
import { findGroup } from "../../host/groups.ts";
import { demandGroup } from "../../inbox/reach.ts";
import { isExposed } from "../../inbox/work-folder.ts";
import { safeSegment } from "../../model/names.ts";
import { quote } from "../../model/order.ts";
import type { Examination, Findings } from "./findings.ts";

/** `work`: the work folder, or its nearest existing parent. */
export async function checkGroups({ findings, settings, signal }: Examination, work: string): Promise<void> {
  const groups = handoffsOf(settings).flatMap(({ group }) => group ?? []);
  const gids = new Map<string, number>();
  for (const group of new Set(groups)) {
    const check = `group ${group}`;
    await findings.attempt(check, async () => {
      const gid = await findGroup(group, signal);
      gids.set(group, gid);
      const why = await whyNotTried(work);
      if (why !== undefined) return findings.skip(check, `its number is ${gid}; ${why}`);
      await demandGroup(gid, work);
      findings.ok(check, `its number is ${gid}, and files can be given to it`);
    });
  }
  await checkAccess(findings, settings, gids);
}

/** Only the daemon's own user, with the daemon's groups, can tell whether the daemon may use a group. */
async function whyNotTried(work: string): Promise<string | undefined> {
  if (await isExposed(work)) return `other users may write to ${work}: no trial among their files`;
  const { uid } = await stat(work);
  if (process.geteuid?.() === uid) return undefined;
  return `user ${uid} runs the daemon: run the doctor as that user, or with --unit, to try it`;
}

const [WRITE, ENTER, ALL] = [2, 1, 7];

/** Deliveries for a group. `granted`: what the mode of delivered folders grants it. */
type Shared = Target & { readonly group: string; readonly gid: number; readonly granted: number };

/** `gids`: the numbers of the groups that exist. Access control lists are not seen, so findings are warnings. */
async function checkAccess(
  findings: Findings,
  settings: Settings,
  gids: ReadonlyMap<string, number>,
): Promise<void> {
  const all = targetsOf(settings).flatMap((target): Shared[] => {
    const { group = "", folderMode } = target.handoff;
    const gid = gids.get(group);
    const granted = (folderMode >> 3) & ALL;
    return gid === undefined || (granted & ENTER) === 0 ? [] : [{ ...target, group, gid, granted }];
  });
  for (const [inbox, targets] of Map.groupBy(all, (target) => target.inbox)) {
    const byGroup = new Map(targets.map((it) => [it.gid, it]));
    for (const target of byGroup.values()) await checkWay(findings, target);
    const closed = await findClosed(targets, settings.work);
    for (const [group, paths] of closed) {
      const granted = targets.reduce((bits, it) => (it.group === group ? bits | it.granted : bits), 0);
      const [first, ...others] = paths;
      const where =
        others.length === 0 || byGroup.size > 1 ? paths.map(quote).join(" ") : `${quote(inbox)}/*`;
      const more = others.length === 0 ? "" : `, nor ${formatCount(others.length, "other", "others")}`;
      findings.warn(
        `group ${group}`,
        `its members cannot ${granted & WRITE ? "move deliveries out of" : "read"} ${first}${more}: older folders keep their group and mode`,
        `chgrp --recursive ${quote(group)} ${where} && find ${where} -type d -exec chmod g+${letters(granted)} {} +`,
      );
    }
  }
}

/** The inbox, and the folders above it. */
async function checkWay(findings: Findings, { inbox, group, gid, granted }: Shared): Promise<void> {
  for (let path = inbox; path !== dirname(path); path = dirname(path)) {
    const facts = await lookAt(path);
    const bits = path === inbox ? granted & ~WRITE : ENTER;
    if (facts === undefined || grants(facts, gid, bits)) continue;
    const mode = (facts.mode & 0o7777).toString(8).padStart(4, "0");
    const detail = `its members cannot enter ${path} (mode ${mode}, group ${facts.gid})`;
    const advice =
      path === inbox
        ? `chgrp ${quote(group)} ${quote(path)} && chmod g+${letters(bits)} ${quote(path)}`
        : `chmod ${facts.gid === gid ? "g" : "o"}+x ${quote(path)}`;
    findings.warn(`group ${group}`, detail, advice);
  }
}

/**
 * By group, the older folders in which no group that shares them may do what the mode of delivered folders grants it.
 */
async function findClosed(targets: readonly Shared[], work: string): Promise<ReadonlyMap<string, string[]>> {
  const closed = new Map<string, string>();
  const open = new Set<string>();
  for (const target of targets) {
    for (const path of await foldersOf(target, work)) {
      const facts = await lookAt(path);
      if (facts === undefined || grants(facts, target.gid, target.granted)) open.add(path);
      else closed.set(path, target.group);
    }
  }
  const paths = [...closed.keys()].filter((path) => !open.has(path));
  return Map.groupBy(paths, (path) => closed.get(path) ?? "");
}

/** The existing folders above deliveries, inside the inbox. */
function foldersOf({ mailbox, inbox, layout, handoff }: Shared, work: string): Promise<string[]> {
  const segments = layout.split("/").map((segment) => segment.replaceAll("{mailbox}", mailbox));
  return foldersBelow(inbox, handoff.deliver === "files" ? segments : segments.slice(0, -1), work);
}

async function foldersBelow(
  folder: string,
  [segment, ...rest]: readonly string[],
  work: string,
): Promise<string[]> {
  if (segment === undefined || folder === work) return [];
  const isFitting = (name: string) =>
    segment.includes("{") ? !name.startsWith(".") : name === safeSegment(segment);
  // A folder that this user cannot list is not checked.
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  const paths = entries.flatMap((it) =>
    it.isDirectory() && isFitting(it.name) ? join(folder, it.name) : [],
  );
  const all = paths.map(async (path) => [path, ...(await foldersBelow(path, rest, work))]);
  return (await Promise.all(all)).flat().filter((path) => path !== work);
}

function grants({ mode, gid }: Pick<Stats, "mode" | "gid">, group: number, bits: number): boolean {
  return ((gid === group ? mode >> 3 : mode) & bits) === bits;
}

function letters(bits: number): string {
  return [..."rwx"].filter((_, at) => bits & (4 >> at)).join("");
}
