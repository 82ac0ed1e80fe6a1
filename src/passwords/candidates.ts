/** Where passwords come from: the drop folder, links that carry one, and rules. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { clearTemporaries, exists, makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { passwordOfLink } from "../model/transfer.ts";
import type { PasswordQuery } from "./port.ts";
import { fits } from "./rules.ts";

/** Longer than any password that a service accepts. */
const MOST_BYTES = 64 * 1024;

export interface Candidate {
  readonly password: Secret;
  /**
   * `kept`: accepted before, for this very transfer. `drop`: a person supplied it. `link`: the transfer has no
   * password of its own. `rule`: the configuration says so.
   */
  readonly origin: "kept" | "drop" | "link" | "rule";
}

export interface Candidates {
  /** Best first; each is read when it is its turn. Throws `SECRET_UNREADABLE` where a rule's secret cannot be read. */
  find(mailbox: Mailbox, query: PasswordQuery, signal: AbortSignal): AsyncIterable<Candidate>;
  /** Takes a dropped password out of the drop folder; it is kept apart until the transfer is settled. */
  accepted(mailbox: Mailbox, query: PasswordQuery, candidate: Candidate): Promise<void>;
  /** Takes a dropped password out of the drop folder for good. */
  refused(query: PasswordQuery, candidate: Candidate): Promise<void>;
  settled(mailbox: Mailbox, trackingId: string): Promise<void>;
  forgetOthers(
    unsettled: readonly { readonly mailbox: string; readonly trackingId: string }[],
  ): Promise<void>;
  isDropped(trackingId: string): Promise<boolean>;
}

/** Below the state folder: `passwords/`, where people drop files named by tracking-id, and what was accepted of them. */
export async function openCandidates(state: string, nowMs: number): Promise<Candidates> {
  const dropFolder = join(state, "passwords");
  const keptFolder = join(state, "accepted");
  for (const folder of [dropFolder, keptFolder]) await makeFolderDurably(folder, 0o700);
  await clearTemporaries(keptFolder, nowMs);
  const keptPath = (mailbox: Mailbox, trackingId: string) =>
    join(keptFolder, keptName(mailbox.name, trackingId));
  const takeDropped = async ({ trackingId }: PasswordQuery, { origin }: Candidate) => {
    const path = dropPath(dropFolder, trackingId);
    if (origin === "drop" && path !== undefined) await rm(path, { force: true });
  };

  return {
    async *find(mailbox, query, signal) {
      const kept = await readPassword(keptPath(mailbox, query.trackingId));
      if (kept !== undefined) yield { password: kept, origin: "kept" };
      const dropped = await readPassword(dropPath(dropFolder, query.trackingId));
      if (dropped !== undefined) yield { password: dropped, origin: "drop" };
      const link = await query.link();
      const carried = link === undefined ? undefined : passwordOfLink(link);
      if (carried !== undefined) yield { password: carried, origin: "link" };
      for (const rule of mailbox.passwords) {
        if (fits(rule, query)) yield { password: await rule.password.read(signal), origin: "rule" };
      }
    },
    async accepted(mailbox, query, candidate) {
      if (candidate.origin !== "drop") return;
      await replaceDurably(keptPath(mailbox, query.trackingId), candidate.password.reveal(), 0o600);
      await takeDropped(query, candidate);
    },
    refused: takeDropped,
    settled: (mailbox, trackingId) => rm(keptPath(mailbox, trackingId), { force: true }),
    async forgetOthers(unsettled) {
      const wanted = new Set(unsettled.map(({ mailbox, trackingId }) => keptName(mailbox, trackingId)));
      for (const name of await readdir(keptFolder)) {
        if (!wanted.has(name)) await rm(join(keptFolder, name), { force: true });
      }
    },
    async isDropped(trackingId) {
      const path = dropPath(dropFolder, trackingId);
      return path !== undefined && (await exists(path));
    },
  };
}

/** Drops a password as a person would. Returns where; `undefined` where the tracking-id cannot be the name of a file. */
export async function dropPassword(
  state: string,
  trackingId: string,
  password: Secret,
): Promise<string | undefined> {
  const folder = join(state, "passwords");
  const path = dropPath(folder, trackingId);
  if (path === undefined) return undefined;
  await makeFolderDurably(folder, 0o700);
  await replaceDurably(path, password.reveal(), 0o600, folder);
  return path;
}

function keptName(mailbox: string, trackingId: string): string {
  return createHash("sha256").update(`${mailbox}\0${trackingId}`).digest("hex");
}

/** Tracking-ids are opaque: one that is no plain file name cannot have a dropped password. */
function dropPath(folder: string, trackingId: string): string | undefined {
  const plain = /^[^/\0]{1,200}$/.test(trackingId) && !trackingId.startsWith(".");
  return plain ? join(folder, trackingId) : undefined;
}

/** Only a regular file counts, never what a link leads to; without the line end that editors add. */
async function readPassword(path: string | undefined): Promise<Secret | undefined> {
  if (path === undefined) return undefined;
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = await open(path, flags).catch(() => undefined);
  if (file === undefined) return undefined;
  try {
    const facts = await file.stat();
    if (!facts.isFile() || facts.size > MOST_BYTES) return undefined;
    const text = (await file.readFile("utf8")).replace(/\r?\n$/, "");
    return text === "" ? undefined : new Secret(text);
  } finally {
    await file.close();
  }
}
