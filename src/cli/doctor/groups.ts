/** Checks the groups of delivered files: that each exists, and that the daemon may use it. */
import { stat } from "node:fs/promises";
import { asFault } from "../../base/faults.ts";
import { handoffsOf, type Settings } from "../../config/settings.ts";
import { findGroup } from "../../host/groups.ts";
import { demandGroup } from "../../inbox/reach.ts";
import { isExposed } from "../../inbox/work-folder.ts";
import { checkAccess } from "./access.ts";
import type { Findings } from "./findings.ts";

const FOLDERS = "folders";

/** `work`: the work folder, or its nearest existing parent. */
export async function checkGroups(
  findings: Findings,
  settings: Settings,
  work: string,
  signal: AbortSignal,
): Promise<void> {
  const groups = handoffsOf(settings).flatMap(({ group }) => group ?? []);
  const gids = new Map<string, number>();
  for (const group of new Set(groups)) {
    const check = `group ${group}`;
    try {
      const gid = await findGroup(group, signal);
      gids.set(group, gid);
      const why = await whyNotTried(work);
      if (why !== undefined) {
        findings.skip(FOLDERS, check, `its number is ${gid}; ${why}`);
        continue;
      }
      await demandGroup(gid, work);
      findings.ok(FOLDERS, check, `its number is ${gid}, and files can be given to it`);
    } catch (error) {
      const fault = asFault(error);
      if (fault.code === "STOPPED") throw fault;
      findings.failWith(FOLDERS, check, fault);
    }
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
