/** Where things lie on the disk of a world: its inboxes, its work folders, and what the names in them mean. */
import type { AnyEntry } from "../ground/disk.ts";
import { INBOX, MOVED_INBOX, OTHER_INBOX, STATE } from "../plan/site.ts";

/** Who owns what consumers create. */
export const CONSUMER = 4_000;

export const ROOTS = [INBOX, OTHER_INBOX, MOVED_INBOX];
const OURS = [...ROOTS, STATE];
const INBOXES = new RegExp(`^(${ROOTS.join("|")})/`);
const WORK = new RegExp(`^(${ROOTS.join("|")})/\\.inlet(/|$)`);

/** A part in its stage: the name of its records, its round, its token, the kind of the stage, and its path in there. */
export const STAGED = /\/\.inlet\/staging\/(.+)~(\d+)~([0-9a-f]{16})(\.beside)?(\/.+)?$/;
/** A claim of a name: the claim, the name of the records of its owner, its shard, and its round. */
export const CLAIM = /\/\.inlet\/names\/[^/]+\/((.+\.(.)[0-9a-f]{31})~(\d+))$/;
/** The record of the end of a round: the work folder, the name of the records, and the round. */
export const END = /^(.*\/\.inlet)\/ledger\/.\/(.+)\.end-(\d+)\.json$/;

/** Daemons may change it. */
export function isOurs(path: string): boolean {
  return OURS.some((root) => path === root || path.startsWith(`${root}/`));
}

/** Consumers look there. */
export function isInInbox(path: string): boolean {
  return INBOXES.test(path) && !WORK.test(path);
}

/** `root`: the inbox that holds the work folder. */
export function endOf(root: string, name: string, round: number): string {
  return `${root}/.inlet/ledger/${name.slice(name.lastIndexOf(".") + 1).slice(0, 1)}/${name}.end-${round}.json`;
}

/** Records hold the path from the work folder. */
export function resolveInbox(work: string, inbox: string): string {
  return new URL(inbox === "" ? "." : inbox, `file://${work}/`).pathname.replace(/\/$/, "");
}

/** A power cut takes nothing of its bytes. */
export function isSynced(entry: AnyEntry): boolean {
  return entry.kind !== "file" || (entry.lost.length === 0 && entry.durableBytes.equals(entry.bytes));
}

/** A power cut may have torn the text. */
export function parseTorn(text = "{}"): object {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
