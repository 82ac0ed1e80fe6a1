/** `inbox`, `work` and `state`: the folders for finished transfers, unfinished transfers, and our own secrets. */
import { hash } from "node:crypto";
import { homedir } from "node:os";
import { isAbsolute, join, relative, sep } from "node:path";
import { type Environment, type Spot, showValue } from "./draft.ts";
import { readKeys } from "./read.ts";
import { key, PATH, type SchemaKeys } from "./schema-nodes.ts";

export const WORK = ".inlet";
export const FOLDERS = {
  inbox: key(PATH, "The folder in which finished transfers appear, for every mailbox without its own."),
  work: key(
    PATH,
    "The folder for the ledger, unfinished transfers and quarantine, on the file system of the inbox. Only Inlet may use it. If other users may write to the inbox itself, put it into a folder that only Inlet or root may write to. Default: `.inlet` inside the inbox.",
  ),
  state: key(
    PATH,
    "The folder for tokens and supplied passwords, readable only by Inlet. Default: `$STATE_DIRECTORY`, which systemd sets; else `/var/lib/inlet` for root; else `inlet` in `$XDG_STATE_HOME` or `~/.local/state`.",
  ),
} as const satisfies SchemaKeys;

/** Where the daemon's sockets may be, the most wanted first. */
export function runtimeFolders(env: Environment): string[] {
  // systemd separates several folders with colons.
  const [given] = env["RUNTIME_DIRECTORY"]?.split(":") ?? [];
  if (given) return [given];
  const { XDG_RUNTIME_DIR: own = "" } = env;
  return ["/run/inlet", ...(isAbsolute(own) ? [join(own, "inlet")] : [])];
}

/** The names of the daemon's sockets, each of one inbox. */
export const SOCKET_NAME = /^[0-9a-f]{16}\.sock$/;

/** Where the socket of the daemon of this inbox may be. Known without any disk, which may be away. */
export function socketsOf(inbox: string, env: Environment): string[] {
  const name = `${hash("sha256", inbox).slice(0, 16)}.sock`;
  return runtimeFolders(env).map((folder) => join(folder, name));
}

/** Absolute paths; problems go to the draft. */
export async function readFolders(at: Spot, uid: number | undefined) {
  const given = await readKeys(FOLDERS, at);
  const { inbox = "", work = join(inbox, WORK), state = defaultState(at.draft.env, uid) } = given;
  const where =
    "is inside the inbox, where a delivery could collide with it: choose a folder outside the inbox, or one whose name begins with a dot";
  for (const [name, folder] of Object.entries({ work, state })) {
    // A missing inbox is a problem of its own.
    if (inbox === "" || !mayCollide(folder, inbox)) continue;
    const why = folder === inbox ? "is the inbox itself: choose another folder" : where;
    at.refuse(`${showValue(folder)} ${why}`, name);
  }
  /** The configuration names the state folder; otherwise it depends on the environment and the user. */
  const isStateNamed = given.state !== undefined;
  return { inbox, work, state, isStateNamed };
}

/**
 * Checks the inboxes of mailboxes and routes. Several may be the same folder. None may be inside another one, because a
 * sender could choose a name that leads there.
 */
export function checkInboxes(
  given: readonly Spot[],
  { inbox, work, state }: Record<"inbox" | "work" | "state", string>,
): void {
  const own = given.map((at) => ({ at, folder: at.resolve(String(at.raw)) }));
  const inboxes = [inbox, ...own.map(({ folder }) => folder)].filter((folder) => folder !== "");
  for (const { at, folder } of own) {
    const refuse = (why: string) => at.refuse(`${showValue(folder)} ${why}: choose another folder`);
    for (const [name, ours] of Object.entries({ work, state })) {
      if (isWithin(folder, ours)) refuse(`is inside the ${name} folder, which only Inlet may use`);
      else if (mayCollide(ours, folder))
        refuse(`contains the ${name} folder, with which a delivery could collide`);
    }
    const around = inboxes.find((other) => other !== folder && mayCollide(folder, other));
    if (around !== undefined)
      refuse(`is inside the inbox ${showValue(around)}, where a delivery could collide with it`);
    if (inbox !== folder && mayCollide(inbox, folder))
      refuse("contains the common inbox, with which a delivery could collide");
  }
}

/** Whether a delivery to the inbox could get the path of the folder. Names of delivered folders never begin with a dot. */
function mayCollide(folder: string, inbox: string): boolean {
  return isWithin(folder, inbox) && !relative(inbox, folder).startsWith(".");
}

function isWithin(folder: string, above: string): boolean {
  const inside = relative(above, folder);
  return !(inside === ".." || inside.startsWith(`..${sep}`) || isAbsolute(inside));
}

function defaultState(env: Environment, uid: number | undefined): string {
  // systemd separates several folders with colons.
  const [given] = env["STATE_DIRECTORY"]?.split(":") ?? [];
  if (given) return given;
  if (uid === 0) return "/var/lib/inlet";
  const { XDG_STATE_HOME: stateHome } = env;
  const home =
    stateHome && isAbsolute(stateHome) ? stateHome : join(env["HOME"] || homedir(), ".local/state");
  return join(home, "inlet");
}
