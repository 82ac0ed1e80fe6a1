/** `inbox`, `work` and `state`: the folders for finished transfers, unfinished transfers, and our own secrets. */
import { homedir } from "node:os";
import { isAbsolute, join, relative, sep } from "node:path";
import { type Draft, type Environment, showValue } from "./draft.ts";
import type { Layer } from "./layers.ts";
import { key, PATH, type SchemaKeys, type WrittenKeys } from "./schema-nodes.ts";

export const FOLDERS = {
  inbox: key(
    PATH,
    "The folder in which finished transfers appear, for every mailbox without its own. Consumers watch this folder.",
  ),
  work: key(
    PATH,
    "The folder for the ledger, unfinished transfers and quarantine, on the same file system as the inbox. Only Inlet may use it. Default: `.inlet` inside the inbox. If other users may write to the inbox itself, they could replace the work folder. In that case, put the work folder into a folder that only Inlet or root may write to.",
  ),
  state: key(
    PATH,
    "The folder for tokens and supplied passwords, readable only by Inlet. Default: `$STATE_DIRECTORY`, which systemd sets; else `/var/lib/inlet` for root; else `inlet` in `$XDG_STATE_HOME` or `~/.local/state`.",
  ),
} as const satisfies SchemaKeys;

export interface Folders {
  readonly inbox: string;
  readonly work: string;
  readonly state: string;
  /** The configuration names the state folder; otherwise it depends on the environment and the user. */
  readonly isStateNamed: boolean;
}

/** Absolute paths; problems go to the draft. */
export function readFolders(
  { inbox: rawInbox, work: rawWork, state: rawState }: WrittenKeys<typeof FOLDERS>,
  draft: Draft,
  uid: number | undefined,
): Folders {
  const inbox = rawInbox === undefined ? "" : draft.resolvePath(["inbox"], rawInbox);
  const work = rawWork === undefined ? join(inbox, ".inlet") : draft.resolvePath(["work"], rawWork);
  const state =
    rawState === undefined ? defaultState(draft.env, uid) : draft.resolvePath(["state"], rawState);
  if (inbox !== "") {
    checkApart("work", work, inbox, draft);
    checkApart("state", state, inbox, draft);
  }
  return { inbox, work, state, isStateNamed: rawState !== undefined };
}

/** Our folders must not collide with a delivery. */
function checkApart(key: "work" | "state", folder: string, inbox: string, { problems }: Draft): void {
  if (folder === inbox) {
    problems.add([key], `${showValue(folder)} is the inbox itself: choose another folder`);
  } else if (mayCollide(folder, inbox)) {
    problems.add(
      [key],
      `${showValue(folder)} is inside the inbox, where a delivery could collide with it: choose a folder outside the inbox, or one whose name begins with a dot`,
    );
  }
}

/**
 * Checks the inboxes of mailboxes. Several may be the same folder. None may be inside another one, because a sender could
 * choose a name that leads there. Problems go to the draft.
 */
export function checkInboxes(
  given: readonly Layer<string>[],
  { inbox, work, state }: Folders,
  draft: Draft,
): void {
  const own = given.map(({ raw, path }) => ({ path, folder: draft.resolvePath(path, raw) }));
  const inboxes = new Set([inbox, ...own.map(({ folder }) => folder)].filter((folder) => folder !== ""));
  for (const { path, folder } of own) {
    const refuse = (why: string) => draft.problems.add(path, `${showValue(folder)} ${why}`);
    for (const [name, ours] of Object.entries({ work, state })) {
      if (isWithin(folder, ours)) {
        refuse(`is inside the ${name} folder, which only Inlet may use: choose another folder`);
      } else if (mayCollide(ours, folder)) {
        refuse(`contains the ${name} folder, with which a delivery could collide: choose another folder`);
      }
    }
    for (const other of inboxes) {
      if (other !== folder && mayCollide(folder, other)) {
        refuse(
          `is inside the inbox ${showValue(other)}, where a delivery could collide with it: choose a folder outside of it`,
        );
      }
    }
    if (inbox !== folder && mayCollide(inbox, folder)) {
      refuse("contains the common inbox, with which a delivery could collide: choose another folder");
    }
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
