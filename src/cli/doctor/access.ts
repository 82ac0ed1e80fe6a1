/** Checks that consumers can reach deliveries: their group enters the inbox, and may use the folders in it. */
import type { Stats } from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { lookAt } from "../../base/files.ts";
import { formatCount } from "../../base/phrases.ts";
import { type Settings, type Target, targetsOf } from "../../config/settings.ts";
import { safeSegment } from "../../inbox/names.ts";
import { quote } from "../../model/order.ts";
import type { Findings } from "./findings.ts";

const FOLDERS = "folders";
const [READ, WRITE, ENTER] = [4, 2, 1];

/** Deliveries for consumers in a group. */
interface Shared extends Target {
  readonly group: string;
  readonly gid: number;
  /** What the mode of delivered folders grants the group. */
  readonly granted: number;
}

/** `gids`: the numbers of the groups that exist. Access control lists are not seen, so findings are warnings. */
export async function checkAccess(
  findings: Findings,
  settings: Settings,
  gids: ReadonlyMap<string, number>,
): Promise<void> {
  const all = targetsOf(settings).flatMap((target): Shared[] => {
    const { group = "", folderMode } = target.handoff;
    const gid = gids.get(group);
    const granted = (folderMode >> 3) & (READ | WRITE | ENTER);
    return gid === undefined || (granted & ENTER) === 0 ? [] : [{ ...target, group, gid, granted }];
  });
  for (const inbox of new Set(all.map((target) => target.inbox))) {
    const targets = all.filter((target) => target.inbox === inbox);
    for (const target of new Map(targets.map((it) => [it.gid, it])).values())
      await checkWay(findings, target);
    await checkInside(findings, inbox, targets, settings.work);
  }
}

/** The inbox, and the folders above it. */
async function checkWay(findings: Findings, { inbox, group, gid, granted }: Shared): Promise<void> {
  for (let path = inbox; ; path = dirname(path)) {
    const facts = await lookAt(path);
    const bits = path === inbox ? granted & ~WRITE : ENTER;
    if (facts !== undefined && !grants(facts, gid, bits)) {
      const owner = facts.gid === gid ? "g" : "o";
      const advice =
        path === inbox
          ? `chgrp ${quote(group)} ${quote(path)} && chmod g+${letters(bits)} ${quote(path)}`
          : `chmod ${owner}+x ${quote(path)}`;
      const mode = (facts.mode & 0o7777).toString(8).padStart(4, "0");
      const detail = `its members cannot enter ${path} (mode ${mode}, group ${facts.gid})`;
      findings.warn(FOLDERS, `group ${group}`, detail, advice);
    }
    if (path === dirname(path)) return;
  }
}

/** Folders that were made before the group was configured keep their group and mode. */
async function checkInside(
  findings: Findings,
  inbox: string,
  targets: readonly Shared[],
  work: string,
): Promise<void> {
  const closed = await findClosed(targets, work);
  const isShared = new Set(targets.map(({ gid }) => gid)).size > 1;
  for (const [group, found] of Map.groupBy(closed, ({ target }) => target.group)) {
    const paths = found.map(({ path }) => path);
    const granted = found.reduce((bits, { target }) => bits | target.granted, 0);
    const where = paths.length === 1 || isShared ? paths.map(quote).join(" ") : `${quote(inbox)}/*`;
    const others = paths.length === 1 ? "" : `, nor ${formatCount(paths.length - 1, "other", "others")}`;
    findings.warn(
      FOLDERS,
      `group ${group}`,
      `its members cannot ${granted & WRITE ? "move deliveries out of" : "read"} ${paths[0]}${others}: older folders keep their group and mode`,
      `chgrp --recursive ${quote(group)} ${where} && find ${where} -type d -exec chmod g+${letters(granted)} {} +`,
    );
  }
}

interface Closed {
  readonly path: string;
  readonly target: Shared;
}

/** Folders in which no group that shares them may do what the mode of delivered folders grants it. */
async function findClosed(targets: readonly Shared[], work: string): Promise<Closed[]> {
  const closed = new Map<string, Closed>();
  const open = new Set<string>();
  for (const target of targets) {
    for (const path of await foldersOf(target, work)) {
      const facts = await lookAt(path);
      if (facts === undefined || grants(facts, target.gid, target.granted)) open.add(path);
      else closed.set(path, { path, target });
    }
  }
  return [...closed.values()].filter(({ path }) => !open.has(path));
}

/** The existing folders above deliveries, inside the inbox. */
async function foldersOf({ mailbox, inbox, layout, handoff }: Shared, work: string): Promise<string[]> {
  const segments = layout.split("/");
  const above = handoff.deliver === "files" ? segments : segments.slice(0, -1);
  const found: string[] = [];
  let level = [inbox];
  for (const segment of above) {
    const filled = segment.replaceAll("{mailbox}", mailbox);
    const name = filled.includes("{") ? undefined : safeSegment(filled);
    const next: string[] = [];
    for (const folder of level) {
      // A folder that this user cannot list is not checked.
      const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
      const folders = entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith("."));
      const fitting = folders.filter((entry) => name === undefined || entry.name === name);
      next.push(...fitting.map((entry) => join(folder, entry.name)).filter((path) => path !== work));
    }
    found.push(...next);
    level = next;
  }
  return found;
}

function grants({ mode, gid }: Pick<Stats, "mode" | "gid">, group: number, bits: number): boolean {
  return ((gid === group ? mode >> 3 : mode) & bits) === bits;
}

function letters(bits: number): string {
  return [bits & READ ? "r" : "", bits & WRITE ? "w" : "", bits & ENTER ? "x" : ""].join("");
}
