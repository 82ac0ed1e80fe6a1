/** What a run would do with a listed transfer, in the order in which a run decides. Sends nothing and changes nothing. */
import { handoffOf, type MailboxSettings, type Settings } from "../config/settings.ts";
import { formatLayout } from "../inbox/layout.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import { isTooEarlyFor } from "../mailbox/since.ts";
import { staysEnded } from "../mailbox/take-up.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import {
  expiryOf,
  hasEnded,
  isHeld,
  shownFolder,
  type TransferRecord,
  waitLeftMs,
  waitsForPassword,
} from "../model/record.ts";
import { decideRoute, fingerprintOf, type RouteDecision } from "../model/route.ts";
import { findRecipient, type ListedTransfer, TRANSFER_STATES, takesAnyPassword } from "../model/transfer.ts";
import type { Plan } from "../model/views.ts";
import { forecastPassword } from "../passwords/forecast.ts";
import { quietUntil } from "../transfer/quiet.ts";

export interface PlannedTransfer {
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly plan: Plan;
  /** Why, for people. */
  readonly because: string | undefined;
  /** As `shownFolder`; `undefined` unless it would be delivered. */
  readonly folder: string | undefined;
  /** Where the password would come from. */
  readonly password: string | undefined;
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
  for (const entry of listed) {
    const known = await peek.find({ mailbox: mailbox.name, trackingId: entry.trackingId });
    const isInactive = TRANSFER_STATES[entry.state] !== "open";
    if (isInactive || (known !== undefined && hasEnded(known) && staysEnded(known, nowMs))) yield undefined;
    else {
      const open = known === undefined || hasEnded(known) ? undefined : known;
      const isLeftOut = known === undefined && isTooEarly(entry.trackingId);
      yield await planTransfer({ settings, mailbox, nowMs, signal }, entry, open, isLeftOut);
    }
  }
}

interface PlanTools {
  readonly settings: Settings;
  readonly mailbox: MailboxSettings;
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

async function planTransfer(
  tools: PlanTools,
  entry: ListedTransfer,
  open: TransferRecord | undefined,
  isLeftOut: boolean,
): Promise<PlannedTransfer> {
  const { mailbox } = tools;
  const { trackingId, sender = "" } = entry;
  const expires = entry.expires?.toISOString();
  const facts = {
    mailbox: mailbox.name,
    sender,
    trackingId,
    expires,
    folder: undefined,
    password: undefined,
  };
  if (isLeftOut) {
    return { ...facts, plan: "ignore", because: "it was listed before the mailbox starts (since)" };
  }
  const waits = open && whyItWaits(tools, open, expires);
  if (waits !== undefined) return { ...facts, ...waits };
  const password = open?.complete === undefined ? await passwordFor(tools, entry, open) : "not needed";
  const { securityMode } = entry;
  const mode = takesAnyPassword(securityMode) ? undefined : `its security mode is ${securityMode}`;
  const lacksPassword = { plan: "password", because: open?.message ?? mode } as const;
  // It is not tried again before a password is there.
  if (open !== undefined && waitsForPassword(open) && password === undefined)
    return { ...facts, ...lacksPassword };
  const decision = await routeOf(mailbox, entry, open);
  const because = decision && (decision.route ? `${decision.route.name}: ${decision.why}` : decision.why);
  const isAllowed = open?.allowedBy !== undefined || open?.released !== undefined;
  if (decision !== undefined && decision.action !== "deliver" && !isAllowed) {
    return { ...facts, plan: decision.action, because };
  }
  if (password === undefined) return { ...facts, ...lacksPassword };
  if (decision === undefined) return { ...facts, plan: "open", because: undefined, password };
  return {
    ...facts,
    plan: "deliver",
    because: decision.route && because,
    folder: folderOf(tools, entry, open, decision),
    password,
  };
}

/** Routes that still hold it, quiet hours, or a time that has not come yet. */
function whyItWaits(
  { settings, mailbox, nowMs }: PlanTools,
  open: TransferRecord,
  expires: string | undefined,
): { readonly plan: Plan; readonly because: string } | undefined {
  const { routing } = mailbox;
  const because = `${open.reason}: ${open.message ?? ""}`;
  if (isHeld(open) && open.allowedBy === undefined && routing !== undefined) {
    const { unpack } = handoffOf(settings, { mailbox: mailbox.name, rule: undefined });
    if (open.heldBy === fingerprintOf(routing, unpack)) return { plan: "hold", because };
  }
  if (open.wanted) return undefined;
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
  const serviceId = serviceIdOf(mailbox.service.baseUrl);
  const name = nameOf(open ?? { mailbox: mailbox.name, trackingId });
  const { passwordAttempts } = mailbox;
  const spent = await peekLedger(settings).attempts.spent({ serviceId, trackingId }, name, passwordAttempts);
  const recipient = findRecipient(recipients, mailbox.email);
  const securityMode = open?.securityMode ?? entry.securityMode;
  const query = { mailbox, serviceId, trackingId, sender, recipient, passwordMode, securityMode };
  return forecastPassword(settings.state, query, spent, signal);
}

/** `undefined` while it depends on facts that only the opened transfer shows. */
async function routeOf(
  { routing }: MailboxSettings,
  { sender = "", subject }: ListedTransfer,
  open: TransferRecord | undefined,
): Promise<RouteDecision | undefined> {
  const everything = { routes: [], otherwise: "deliver" } as const;
  const facts = { sender, subject: subject ?? open?.subject, fileNames: undefined, bytes: undefined };
  return decideRoute(routing ?? everything, facts);
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
