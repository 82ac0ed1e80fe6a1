/** Finds candidates for a password: accepted before, dropped by a person, carried by the link, or named by a rule. */
import { addressForm, makeMatcher } from "../base/normal-form.ts";
import type { Secret } from "../base/secret.ts";
import { NO_PASSWORD } from "../model/attempts.ts";
import type { PasswordRule } from "../model/mailbox.ts";
import { modeOf, type TransferRecord } from "../model/record.ts";
import { passwordOfLink, takesAnyPassword } from "../model/transfer.ts";
import type { PasswordRequest } from "./request.ts";
import { type HandDrop, readDrop, readKept } from "./stored.ts";

export interface Candidate {
  readonly password: Secret;
  /**
   * `kept`: accepted before, for this transfer. `drop`: supplied by a person. `link`: the sender chose none, and the
   * link carries one. `none`: the sender chose none, and the link carries none. `rule`: configured.
   */
  readonly source: "kept" | "drop" | "link" | "none" | "rule";
  /** The file of a dropped password. */
  readonly path?: string;
  readonly rule?: PasswordRule;
  /** Missing if a command has dropped it. */
  readonly byHand?: HandDrop | undefined;
}

/** What the candidates for a transfer depend on. */
export interface CandidateQuery extends Pick<PasswordRequest, "mailbox" | "link"> {
  readonly service: { readonly id: string };
  readonly record: Pick<TransferRecord, "trackingId" | "sender" | "securityMode" | "hasNoPassword">;
}

/**
 * Best first, each read when it is asked for. `drops`: files with dropped passwords. Throws `SECRET_UNREADABLE` if a rule's
 * secret cannot be read.
 */
export async function* findCandidates(
  state: string,
  query: CandidateQuery,
  drops: readonly string[],
  readRule: (rule: PasswordRule) => Promise<Secret | undefined>,
): AsyncIterable<Candidate> {
  const { mailbox, record } = query;
  const kept = await readKept(state, { serviceId: query.service.id, trackingId: record.trackingId });
  if (kept !== undefined) yield { password: kept, source: "kept" };
  for (const path of drops) {
    const dropped = await readDrop(path);
    if (dropped !== undefined) yield { ...dropped, source: "drop", path };
  }
  if (!takesAnyPassword(modeOf(record))) return;
  const link = await query.link();
  const carried = link && passwordOfLink(link);
  if (carried !== undefined) yield { password: carried, source: "link" };
  else if (record.hasNoPassword) yield { password: NO_PASSWORD, source: "none" };
  for (const rule of mailbox.passwords) {
    const password = fits(rule, record) ? await readRule(rule) : undefined;
    if (password !== undefined) yield { password, source: "rule", rule };
  }
}

/** Every condition that the rule names must hold. A sender without a normal form fits no rule for senders. */
export function fits(
  { sender, trackingId }: PasswordRule,
  transfer: { readonly trackingId: string; readonly sender: string },
): boolean {
  return (
    (trackingId === undefined || trackingId === transfer.trackingId) &&
    makeMatcher(sender, addressForm)(transfer.sender)
  );
}
