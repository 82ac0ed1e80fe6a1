/** `once --dry-run`: what a run would download, where to, and which passwords are missing. It downloads nothing. */
import { systemClock } from "../base/clock.ts";
import { asFault, describeFault, Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { asOwnerOf } from "../base/process.ts";
import { Scope } from "../base/scope.ts";
import { loadSettings } from "../config/load.ts";
import { findClientId, loadTokenStores, type TokenStore } from "../config/memory.ts";
import type { MailboxSettings, Settings } from "../config/settings.ts";
import { formatLayout } from "../inbox/layout.ts";
import { type LedgerPeek, peekLedger } from "../ledger/peek.ts";
import { ListFields } from "../mailbox/list-fields.ts";
import { isTooEarlyFor } from "../mailbox/since.ts";
import { Tokens } from "../mailbox/tokens.ts";
import { HELD, hasEnded, shownFolder, type TransferRecord } from "../model/record.ts";
import { decideRoute, type RouteDecision } from "../model/route.ts";
import { findRecipient, type ListedTransfer } from "../model/transfer.ts";
import { forecastPassword } from "../passwords/forecast.ts";
import type { ServicePort } from "../service/port.ts";
import { openClient, openTokensFolder } from "./client.ts";
import type { Context } from "./context.ts";
import { NEEDS_PERSON } from "./doctor/findings.ts";
import type { Outcome } from "./exit-codes.ts";
import { printRows, say, timeColumn } from "./printing.ts";
import { withDaemonsState } from "./transfers.ts";

/** `decide`: once the transfer is open, because a route asks for file names, the size or the subject. */
type Plan = "download" | "decide" | "hold" | "ignore" | "wait";

interface PlannedTransfer {
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly plan: Plan;
  /** Why, for people. */
  readonly because: string | undefined;
  /** As `shownFolder`; `undefined` if nothing would be delivered. */
  readonly folder: string | undefined;
  /** Where the password would come from; `undefined` if it is missing, or not needed now. */
  readonly password: string | undefined;
  readonly lacksPassword: boolean;
  readonly expires: string | undefined;
}

interface DryRunOptions {
  readonly config?: string;
  readonly json?: boolean;
}

export async function dryRun(context: Context, options: DryRunOptions): Promise<Outcome> {
  const loaded = await loadSettings({ env: context.env, path: options.config });
  const settings = await withDaemonsState(loaded);
  const planned: PlannedTransfer[] = [];
  const failed: Fault[] = [];
  let settled = 0;
  for (const mailbox of settings.mailboxes) {
    if (mailbox.paused) {
      say(context, `${mailbox.name} is paused: it is not polled.`);
      continue;
    }
    try {
      for await (const plan of planMailbox(settings, mailbox, context.stop)) {
        if (plan === undefined) settled++;
        else planned.push(plan);
      }
    } catch (error) {
      const fault = asFault(error);
      if (fault.code === "STOPPED") throw fault;
      failed.push(fault);
      say(context, `${mailbox.name}: ${describeFault(fault)}`);
    }
  }
  printRows(context, options, columnsFor(context, settings.timezone), planned);
  if (!options.json) say(context, summaryOf(planned, settled));
  if (failed.some(({ code }) => !NEEDS_PERSON.has(code))) return "unreachable";
  const needsPerson = planned.some(({ plan, lacksPassword }) => lacksPassword || plan === "hold");
  return needsPerson || failed.length > 0 ? "attention" : "fine";
}

function columnsFor(context: Context, zone: string | undefined) {
  return [
    { title: "PLAN", value: ({ plan }: PlannedTransfer) => plan },
    { title: "MAILBOX", value: ({ mailbox }: PlannedTransfer) => mailbox },
    { title: "SENDER", value: ({ sender }: PlannedTransfer) => sender },
    { title: "TRACKING ID", value: ({ trackingId }: PlannedTransfer) => trackingId },
    timeColumn(context, "EXPIRES", zone, ({ expires }: PlannedTransfer) => expires ?? ""),
    {
      title: "PASSWORD",
      value: ({ password, lacksPassword }: PlannedTransfer) => (lacksPassword ? "missing" : (password ?? "")),
    },
    { title: "FOLDER", value: ({ folder }: PlannedTransfer) => folder ?? "" },
    { title: "BECAUSE", value: ({ because }: PlannedTransfer) => because ?? "" },
  ];
}

function summaryOf(planned: readonly PlannedTransfer[], settled: number): string {
  const count = (plan: Plan) => planned.filter((each) => each.plan === plan).length;
  const missing = planned.filter(({ lacksPassword }) => lacksPassword).length;
  const parts = [
    `${count("download") + count("decide")} would be downloaded`,
    `${count("hold")} held`,
    `${count("ignore")} ignored`,
    `${count("wait")} would wait`,
    `${settled} settled before`,
  ];
  const lacking = formatCount(missing, "transfer lacks a password", "transfers lack a password");
  return `${parts.join(", ")}. ${missing === 0 ? "" : `${lacking}. `}Nothing was changed.`;
}

/** `undefined` for each transfer with which nothing is left to do. */
async function* planMailbox(
  settings: Settings,
  mailbox: MailboxSettings,
  signal: AbortSignal,
): AsyncGenerator<PlannedTransfer | undefined, void, undefined> {
  const listed = await asOwnerOf(settings.state, () => readList(settings, mailbox, signal));
  const peek = peekLedger(settings);
  const isTooEarly = await isTooEarlyFor(
    mailbox.since,
    () => peek.start(mailbox.name),
    () => systemClock.now(),
  );
  for (const entry of listed) yield planTransfer(settings, mailbox, entry, peek, isTooEarly);
}

async function readList(
  { state }: Settings,
  mailbox: MailboxSettings,
  signal: AbortSignal,
): Promise<ListedTransfer[]> {
  await using scope = new Scope();
  const clientId = (await mailbox.service.clientId?.read(signal)) ?? (await findClientId(state));
  if (clientId === undefined) {
    const detail = "no client id is configured, and none was created yet: start the daemon once";
    throw new Fault("CONFIG_INVALID", { detail });
  }
  const service: ServicePort = scope.use(openClient(mailbox.service, clientId), (it) => it.close());
  const openTokens = await loadTokenStores();
  const store: TokenStore = openTokens(await openTokensFolder(scope, state));
  const tokens = new Tokens(mailbox, service, mailbox.service.token, store, systemClock);
  const fields = new ListFields();
  return await tokens.use(
    (address) =>
      fields.read(async (wanted) => {
        const query = { active: true, fields: wanted };
        // Polls report entries that cannot be read.
        const pages = await Array.fromAsync(service.listReceived(address, query, () => {}, signal));
        return pages.flat();
      }),
    signal,
  );
}

async function planTransfer(
  settings: Settings,
  mailbox: MailboxSettings,
  entry: ListedTransfer,
  peek: LedgerPeek,
  isTooEarly: (trackingId: string) => boolean,
): Promise<PlannedTransfer | undefined> {
  const { trackingId, sender = "", passwordMode } = entry;
  const known = await peek.find({ mailbox: mailbox.name, trackingId });
  if (known !== undefined && hasEnded(known)) return undefined;
  const facts = {
    mailbox: mailbox.name,
    sender,
    trackingId,
    expires: entry.expires?.toISOString(),
    folder: undefined,
    password: undefined,
    lacksPassword: false,
  };
  if (known === undefined && isTooEarly(trackingId)) {
    return { ...facts, plan: "ignore", because: "it was listed before the mailbox starts (since)" };
  }
  const decision = routeOf(mailbox, entry, known);
  const because = decision?.route && `${decision.route.name}: ${decision.why}`;
  const isAllowed = known?.allowedBy !== undefined || known?.released !== undefined;
  if (decision !== undefined && decision.action !== "deliver" && !isAllowed) {
    return { ...facts, plan: decision.action, because: because ?? decision.why };
  }
  const recipient = findRecipient(entry.recipients, mailbox.email);
  const password = await forecastPassword(settings.state, {
    mailbox,
    trackingId,
    sender,
    recipient,
    passwordMode,
  });
  const waits = known?.state === "waiting" && known.reason !== HELD;
  return {
    ...facts,
    plan: waits ? "wait" : decision === undefined ? "decide" : "download",
    because: waits ? `${known.reason}: ${known.message ?? ""}` : because,
    folder: folderOf(mailbox, entry, known, decision),
    password,
    lacksPassword: password === undefined,
  };
}

/** `undefined` while it depends on facts that only the opened transfer shows. */
function routeOf(
  { routing }: MailboxSettings,
  { sender = "", subject }: ListedTransfer,
  known: TransferRecord | undefined,
): RouteDecision | undefined {
  const everything = { routes: [], otherwise: "deliver" } as const;
  const facts = { sender, subject: subject ?? known?.subject, fileNames: undefined, bytes: undefined };
  return decideRoute(routing ?? everything, facts);
}

function folderOf(
  mailbox: MailboxSettings,
  { trackingId, sender = "", subject, recipients }: ListedTransfer,
  known: TransferRecord | undefined,
  decision: RouteDecision | undefined,
): string | undefined {
  if (decision === undefined) return undefined;
  const folder = formatLayout(decision.route?.layout ?? mailbox.layout, {
    mailbox: mailbox.name,
    sender,
    trackingId,
    transferId: known?.transferId ?? findRecipient(recipients, mailbox.email)?.transferId ?? "",
    subject: subject ?? known?.subject ?? "(subject)",
    discovered: new Date(known?.at.discovered ?? systemClock.now()),
  });
  return shownFolder({ inbox: decision.route?.inbox ?? mailbox.inbox, folder });
}
