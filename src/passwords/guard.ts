/** Decides whether a password may be sent, because wrong ones destroy transfers, and explains it to people. */
import { machine } from "../base/machine.ts";
import type { Secret } from "../base/secret.ts";
import { NO_PASSWORD, type SpentAttempts } from "../model/attempts.ts";
import type { PasswordRule } from "../model/mailbox.ts";
import { commandFor } from "../model/order.ts";
import { BROWSER, hasEnded, modeOf, type TransferRecord } from "../model/record.ts";
import { takesAnyPassword } from "../model/transfer.ts";
import { type Candidate, type CandidateQuery, findCandidates } from "./candidates.ts";
import { pathOfDrop, pathsOfDrops } from "./stored.ts";

/**
 * `known`: the password was refused before. `exhausted`: no attempt is left. `reserved`: the last attempt is kept for a
 * password that a person supplies.
 */
export type Permission = "yes" | "known" | "exhausted" | "reserved";

/** `attempts`: without the attempt in question. */
export async function mayTry(
  attempts: SpentAttempts,
  { password, source }: Candidate,
  trackingId: string,
  budget: number,
): Promise<Permission> {
  const { spent, fingerprints, allowed } = attempts;
  if (await isRefused({ trackingId }, attempts, password)) return "known";
  if (spent >= allowed) return "exhausted";
  const forRules = Math.max(1, budget - 1);
  return source === "rule" && fingerprints.length >= forRules ? "reserved" : "yes";
}

/** Whether the service has refused this password for the transfer. */
export async function isRefused(
  { trackingId }: Pick<TransferRecord, "trackingId">,
  { fingerprints }: SpentAttempts,
  password: Secret,
): Promise<boolean> {
  return fingerprints.length > 0 && fingerprints.includes(await fingerprintOf(password, trackingId));
}

export async function fingerprintOf(password: Secret, trackingId: string): Promise<string> {
  return (await machine().deriveKey(password.reveal(), `inlet ${trackingId}`, 16)).toString("hex");
}

/** About a supplied password that was not sent, for people. */
export const NOTES = {
  ambiguous:
    "A password was supplied for this tracking-id, which several services list: supply it with --mailbox.",
  unusable: "The supplied password cannot be used: it has to be a plain file with one line of text.",
  known: "The supplied password was refused before, and was not sent again.",
  unsent: "The supplied password was not sent.",
  kept: "The supplied password is kept until another attempt is allowed.",
} as const;

/** Why a transfer waits for a password, and what a person can do. */
export function explain(
  spent: SpentAttempts,
  { trackingId, securityMode }: Pick<TransferRecord, "trackingId" | "securityMode">,
  obstacle: Permission,
): string {
  const supply = commandFor("password", trackingId);
  const orRule = takesAnyPassword(modeOf({ securityMode })) ? ", or add a rule" : "";
  if (spent.spent === 0) return `No password is known for it: supply it with ${supply}${orRule}.`;
  const refused = describeSpent(spent);
  if (obstacle === "exhausted" || spent.spent >= spent.allowed) {
    const grant = commandFor("password", trackingId, { onceMore: true });
    return `${refused}, which is all that passwordAttempts allows: ask the sender, then allow one more attempt with ${grant}.`;
  }
  const left = spent.allowed - spent.spent;
  const attempts = `${left} of ${spent.allowed} attempts ${left === 1 ? "is" : "are"} left`;
  return `${refused}, and ${attempts}: ask the sender for the right one and supply it with ${supply}.`;
}

function describeSpent({ spent, unanswered, isShared }: SpentAttempts): string {
  const refused = spent - unanswered;
  const parts = [
    refused > 0 && (refused === 1 ? "one password was refused" : `${refused} passwords were refused`),
    unanswered > 0 &&
      (unanswered === 1 ? "one attempt got no answer" : `${unanswered} attempts got no answer`),
  ];
  const text = parts.filter(Boolean).join(", and ");
  const where = isShared ? ", over all mailboxes that received it" : "";
  return `${text.slice(0, 1).toUpperCase()}${text.slice(1)}${where}`;
}

export interface Objection {
  /** `known`: this very password was refused before. */
  readonly kind: "impossible" | "known";
  /** For people: the end of a sentence. */
  readonly detail: string;
}

/** Why a password that a person supplies would not be tried: the same for the command and the console. */
export async function objectionToSupply(
  record: TransferRecord,
  spent: SpentAttempts,
  passwordAttempts: number,
  password: Secret,
): Promise<Objection | undefined> {
  const { state, mailbox, trackingId } = record;
  const impossible = (detail: string): Objection => ({ kind: "impossible", detail });
  const isComplete = state === "delivering" || record.complete !== undefined;
  if (hasEnded(record) || isComplete) return impossible(`it is ${state}, and needs no password`);
  if (record.reason === BROWSER) return impossible("the service opens it only in a browser");
  if (password.reveal() === "") return impossible("no password was given");
  if (pathOfDrop("", trackingId) === undefined) {
    return impossible("its tracking-id cannot be the name of a file: use a rule");
  }
  const permission = await mayTry(spent, { password, source: "drop" }, trackingId, passwordAttempts);
  if (permission === "known") {
    return { kind: "known", detail: "this password was refused before, and is not sent again" };
  }
  if (permission === "yes") return undefined;
  const where = spent.isShared ? " over all mailboxes that received it" : "";
  return impossible(
    `${spent.spent} attempts are spent${where}, which is all that passwordAttempts allows for ${mailbox}: allow one more with --once-more`,
  );
}

const ORIGINS = {
  kept: "accepted before",
  drop: "supplied",
  link: "in the link",
  none: "not needed",
} as const;

/**
 * Where the password of a transfer would come from, for people. Sends none, and asks no command for one. `undefined` if no
 * password would be sent, because none is known, or those that are known were refused. `state`: the state folder. Throws
 * `SECRET_UNREADABLE`.
 */
export async function forecastPassword(
  state: string,
  query: CandidateQuery,
  spent: SpentAttempts,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { mailbox, record } = query;
  const { trackingId } = record;
  const drops = pathsOfDrops(state, mailbox.name, trackingId);
  // A command may give any password.
  const readRule = async ({ password }: PasswordRule) =>
    "read" in password ? password.read(signal) : NO_PASSWORD;
  for await (const candidate of findCandidates(state, query, drops, readRule)) {
    const { source, rule } = candidate;
    if ((await mayTry(spent, candidate, trackingId, mailbox.passwordAttempts)) !== "yes") continue;
    if (source !== "rule") return ORIGINS[source];
    if (rule !== undefined) return `rule ${mailbox.passwords.indexOf(rule) + 1}: ${rule.password.described}`;
  }
  return undefined;
}
