/** Where the daemon of an inbox keeps its state, for commands that are to find it where the daemon does. */
import { readdir, readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { isHeldAlone } from "../base/kernel-lock.ts";
import { HOLDER } from "./lock.ts";
import { factsOf, MEMBERS, NAME } from "./members.ts";

/** Of one that runs on this machine, or else of the one that ran last; `undefined` where none has said so. */
export async function findDaemonState(work: string): Promise<string | undefined> {
  const folder = join(work, MEMBERS);
  const names = (await readdir(folder).catch(() => [])).filter((name) => NAME.test(name));
  const running: string[] = [];
  for (const name of names)
    if (await isHeldAlone(join(folder, name))) running.push(factsOf(join(folder, name)));
  for (const path of [...running, join(work, HOLDER)]) {
    const state = await readState(path);
    if (state !== undefined) return state;
  }
  return undefined;
}

async function readState(path: string): Promise<string | undefined> {
  try {
    const { host, state } = JSON.parse(await readFile(path, "utf8")) as Record<string, unknown>;
    return host === hostname() && typeof state === "string" ? state : undefined;
  } catch {
    return undefined;
  }
}
