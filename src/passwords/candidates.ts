/** Where passwords come from: the drop folder, links that carry one, and rules. */
import { hash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { systemDisk, tryUnlink } from "../base/disk.ts";
import { clearTemporaries, replaceDurably } from "../base/durable.ts";
import { makeFolderDurably } from "../base/folders.ts";
import type { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { passwordOfLink } from "../model/transfer.ts";
import { DropFolder, markOf, readPassword } from "./dropped.ts";
import type { CoRecipients, PasswordQuery } from "./port.ts";
import { fits } from "./rules.ts";

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
  /**
   * Takes a dropped password out of the drop folder; it is kept apart until the transfer is settled, for every mailbox
   * that still has to collect it.
   */
  accepted(mailbox: Mailbox, query: PasswordQuery, candidate: Candidate): Promise<void>;
  /** Takes a dropped password out of the drop folder for good. */
  refused(query: PasswordQuery, candidate: Candidate): Promise<void>;
  /** Takes away a dropped password that no attempt is left for, by the budget of any mailbox that might want it. */
  unsent(mailbox: Mailbox, query: PasswordQuery, candidate: Candidate, spent: number): Promise<void>;
  /** Something was dropped that is no password. */
  isUnusable(trackingId: string): Promise<boolean>;
  settled(mailbox: Mailbox, trackingId: string): Promise<void>;
  forgetDropped(isSettled: (trackingId: string) => Promise<boolean>): Promise<void>;
  forgetOthers(
    unsettled: readonly { readonly mailbox: string; readonly trackingId: string }[],
  ): Promise<void>;
  supplied(mailbox: Mailbox, trackingId: string): Promise<string | undefined>;
}

/** Below the state folder: `passwords/`, where people drop files named by tracking-id, and what was accepted of them. */
export async function openCandidates(
  state: string,
  nowMs: number,
  coRecipients: CoRecipients,
): Promise<Candidates> {
  const drops = new DropFolder(state);
  const keptFolder = keptFolderIn(state);
  for (const folder of [drops.folder, keptFolder]) await makeFolderDurably(folder, 0o700);
  await clearTemporaries(keptFolder, nowMs);
  /** Names in that folder: most transfers have none, and it need not be looked for. */
  const known = new Set(await readdir(keptFolder));
  const keptPath = (mailbox: string, trackingId: string) => join(keptFolder, keptName(mailbox, trackingId));
  const takeDropped = async ({ trackingId }: PasswordQuery, { origin, password }: Candidate) => {
    if (origin === "drop") await drops.takeAway(trackingId, password);
  };

  return {
    async *find(mailbox, query, signal) {
      const isKnown = known.has(keptName(mailbox.name, query.trackingId));
      const kept = isKnown ? await readPassword(keptPath(mailbox.name, query.trackingId)) : undefined;
      if (kept !== undefined) yield { password: kept, origin: "kept" };
      const dropped = await drops.read(query.trackingId);
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
      const { trackingId } = query;
      const others = await coRecipients.open(mailbox.name, trackingId);
      for (const name of [mailbox.name, ...others.map(({ record }) => record.mailbox)]) {
        known.add(keptName(name, trackingId));
        await replaceDurably(keptPath(name, trackingId), candidate.password.reveal(), 0o600);
      }
      await takeDropped(query, candidate);
    },
    refused: takeDropped,
    async unsent(mailbox, query, candidate, spent) {
      const others = await coRecipients.open(mailbox.name, query.trackingId);
      if (others.every(({ passwordAttempts }) => spent >= passwordAttempts))
        await takeDropped(query, candidate);
    },
    isUnusable: async (trackingId) =>
      (await markOf(drops.pathOf(trackingId))) !== undefined && (await drops.read(trackingId)) === undefined,
    async settled(mailbox, trackingId) {
      const name = keptName(mailbox.name, trackingId);
      if (known.has(name)) await tryUnlink(systemDisk, join(keptFolder, name));
      known.delete(name);
      if ((await markOf(drops.pathOf(trackingId))) === undefined) return;
      if ((await coRecipients.open(mailbox.name, trackingId)).length === 0) await drops.clear(trackingId);
    },
    async forgetDropped(isSettled) {
      for (const trackingId of await drops.list()) {
        if (await isSettled(trackingId)) await drops.clear(trackingId);
      }
    },
    async forgetOthers(unsettled) {
      const wanted = new Set(unsettled.map(({ mailbox, trackingId }) => keptName(mailbox, trackingId)));
      for (const name of await readdir(keptFolder)) {
        if (!wanted.has(name)) await tryUnlink(systemDisk, join(keptFolder, name));
      }
    },
    async supplied(mailbox, trackingId) {
      const places = [drops.pathOf(trackingId), keptPath(mailbox.name, trackingId)];
      const marks = await Promise.all(places.map(markOf));
      // Another process of this machine may have kept it.
      if (marks[1] !== undefined) known.add(keptName(mailbox.name, trackingId));
      return marks.every((mark) => mark === undefined) ? undefined : marks.join();
    },
  };
}

/** Whether a supplied password was accepted for it, and it is not settled yet; for whoever only looks. */
export async function isKept(state: string, mailbox: string, trackingId: string): Promise<boolean> {
  return (await markOf(join(keptFolderIn(state), keptName(mailbox, trackingId)))) !== undefined;
}

function keptFolderIn(state: string): string {
  return join(state, "accepted");
}

function keptName(mailbox: string, trackingId: string): string {
  return hash("sha256", `${mailbox}\0${trackingId}`, "hex");
}
