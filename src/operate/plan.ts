/** What a run would do with a listed transfer, in the order in which a run decides. Sends nothing and changes nothing. */
import { handoffOf, type MailboxSettings, type Settings } from "../config/settings.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import { lacksMode } from "../mailbox/modes.ts";
import { isTooEarlyFor } from "../mailbox/since.ts";
import { staysEnded } from "../mailbox/take-up.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { formatLayout } from "../model/names.ts";
import {
  BROWSER,
  expiryOf,
  hasEnded,
  isHeld,
  modeText,
  shownFolder,
  type TransferRecord,
  waitLeftMs,
  waitsForPassword,
} from "../model/record.ts";
import { decideRoute, factsOf, fingerprintOf, type RouteDecision } from "../model/route.ts";
import { findRecipient, type ListedTransfer, TRANSFER_STATES, takesAnyPassword } from "../model/transfer.ts";
import type { Plan } from "../model/views.ts";
import { forecastPassword } from "../passwords/guard.ts";
import { quietUntil } from "../transfer/turns.ts";

/** Where a transfer would go, and why, for people. */
interface Decision {
  readonly plan: Plan;
  readonly because?: string | undefined;
  /** As `shownFolder`; missing unless it would be delivered. */
  readonly folder?: string;
  /** Where the password would come from. */
  readonly password?: string;
}

export interface PlannedTransfer extends Decision {
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly expires: string | undefined;
}

/** `undefined` for each transfer with which nothing is left to do. */
export async function* planMailbox(
  settings: Settings,
  mailbox: MailboxSettings,
  listed: readonly ListedTransfer[],
  nowMs: number,
  signal: AbortSignal,
): AsyncGenerator<PlannedTransfer | undefined, void, undefined> {
  const peek = peekLedger(settings);
  const isTooEarly = await isTooEarlyFor(
    mailbox.since,
    () => peek.start(mailbox.name),
    () => nowMs,
  );
  const namesModes = listed.some(({ securityMode }) => securityMode.is === "given");
  const isNone = !namesModes || mailbox.rulesWithoutMode === true;
  for (const found of listed) {
    const entry = lacksMode(found) && isNone ? { ...found, securityMode: { is: "none" } as const } : found;
    const { trackingId, sender = "", state } = entry;
    const known = await peek.find({ mailbox: mailbox.name, trackingId });
    const isOver = known !== undefined && hasEnded(known) && staysEnded(known, nowMs);
    if (TRANSFER_STATES[state] !== "open" || isOver) {
      yield undefined;
      continue;
    }
    const facts = { mailbox: mailbox.name, sender, trackingId, expires: entry.expires?.toISOString() };
    if (known === undefined && isTooEarly(trackingId)) {
      yield { ...facts, plan: "ignore", because: "it was listed before the mailbox starts (since)" };
      continue;
    }
    const open = known === undefined || hasEnded(known) ? undefined : known;
    yield { ...facts, ...(await decide({ settings, mailbox, nowMs, signal }, entry, open)) };
  }
}

interface PlanTools {
  readonly settings: Settings;
  readonly mailbox: MailboxSettings;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

async function decide(
  tools: PlanTools,
  entry: ListedTransfer,
  open: TransferRecord | undefined,
): Promise<Decision> {
  const { securityMode: mode, expires, sender = "", subject = open?.subject } = entry;
  const waits = open && whyItWaits(tools, open, expires?.toISOString());
  if (waits !== undefined) return waits;
  const password = open?.complete === undefined ? await passwordFor(tools, entry, open) : "not needed";
  const obstacle = takesAnyPassword(mode) ? undefined : `its security mode is ${modeText(mode) ?? mode.is}`;
  const lacksPassword = { plan: "password", because: open?.message ?? obstacle } as const;
  // It is not tried again before a password is there.
  if (open !== undefined && waitsForPassword(open) && password === undefined) return lacksPassword;
  const everything = { routes: [], otherwise: "deliver" } as const;
  const recipients = { ...entry.addressees, ...open?.recipients };
  // `undefined` while it depends on facts that only the opened transfer shows.
  const decision = await decideRoute(
    tools.mailbox.routing ?? everything,
    factsOf({ sender, subject, recipients }),
  );
  const because = decision && (decision.route ? `${decision.route.name}: ${decision.why}` : decision.why);
  const isAllowed = open?.allowedBy !== undefined || open?.released !== undefined;
  if (decision !== undefined && decision.action !== "deliver" && !isAllowed)
    return { plan: decision.action, because };
  if (password === undefined) return lacksPassword;
  if (decision === undefined) return { plan: "open", password };
  const folder = folderOf(tools, entry, open, decision);
  return { plan: "deliver", because: decision.route && because, folder, password };
}

/**
 * Why an open transfer is not tried now: routes hold it and have not changed; or, unless a retry was ordered, there are quiet
 * hours, or its pause is not over.
 */
function whyItWaits(
  { settings, mailbox, nowMs }: PlanTools,
  open: TransferRecord,
  expires: string | undefined,
): { readonly plan: Plan; readonly because: string } | undefined {
  const { routing } = mailbox;
  const because = `${open.reason}: ${open.message ?? ""}`;
  if (isHeld(open) && open.allowedBy === undefined && routing !== undefined) {
    const { unpack } = handoffOf(settings, { mailbox: mailbox.name, rule: undefined });
    if (open.heldBy === fingerprintOf(routing, unpack, open)) return { plan: "hold", because };
  }
  if (open.wanted) return undefined;
  if (open.reason === BROWSER) return { plan: "wait", because };
  const expiresMs = expiryOf({ expires: expires ?? open.expires });
  const quietMs = open.complete === undefined ? quietUntil(mailbox.quiet, expiresMs, nowMs) : undefined;
  if (quietMs !== undefined) return { plan: "wait", because: "quiet hours" };
  return waitLeftMs(open, nowMs) === undefined ? undefined : { plan: "wait", because };
}

/** `undefined` if it would wait for a password. */
async function passwordFor(
  { settings, mailbox, signal }: PlanTools,
  { trackingId, sender = "", recipients, passwordMode, ...entry }: ListedTransfer,
  open: TransferRecord | undefined,
): Promise<string | undefined> {
  const service = { id: serviceIdOf(mailbox.service.baseUrl) };
  const name = nameOf(open ?? { mailbox: mailbox.name, trackingId });
  const { passwordAttempts } = mailbox;
  const spent = await peekLedger(settings).attempts.spent(trackingId, name, passwordAttempts);
  const recipient = findRecipient(recipients, mailbox.email);
  const securityMode = open?.securityMode || modeText(entry.securityMode);
  const hasNoPassword = passwordMode?.toUpperCase() === "NONE";
  const record = { trackingId, sender, securityMode, hasNoPassword };
  const query = { mailbox, service, record, link: async () => recipient?.downloadUrl };
  return forecastPassword(settings.state, query, spent, signal);
}

function folderOf(
  { mailbox, nowMs }: PlanTools,
  { trackingId, sender = "", subject, recipients }: ListedTransfer,
  open: TransferRecord | undefined,
  { route }: RouteDecision,
): string {
  const folder = formatLayout(route?.layout ?? mailbox.layout, {
    mailbox: mailbox.name,
    sender,
    trackingId,
    transferId: open?.transferId ?? findRecipient(recipients, mailbox.email)?.transferId ?? "",
    subject: subject ?? open?.subject ?? "(subject)",
    discovered: new Date(open?.at.discovered ?? nowMs),
  });
  return shownFolder({ inbox: route?.inbox ?? mailbox.inbox, folder });
}
