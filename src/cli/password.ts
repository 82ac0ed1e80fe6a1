/** `password`: supplies the password of a waiting transfer. */
import { userInfo } from "node:os";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { asOwnerOf } from "../base/process.ts";
import { Secret } from "../base/secret.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { giveOrder } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { SpentAttempts } from "../model/attempts.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { dropPassword, takeAway } from "../passwords/dropped.ts";
import { isRefused, type Objection, objectionToSupply } from "../passwords/guard.ts";
import { isKept } from "../passwords/kept.ts";
import { askHidden, readSecret } from "./asking.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { addConfig } from "./options.ts";
import { say } from "./printing.ts";
import { DAEMON_WAIT_MS, findTransfers, waitFor, waitForDaemon, withDaemonsState } from "./transfers.ts";

interface PasswordOptions {
  readonly config?: string;
  readonly mailbox?: string;
  readonly passwordFile?: string;
  readonly onceMore?: boolean;
  readonly all?: boolean;
}

/** A placeholder for a password that is not entered yet. */
const ANY = new Secret("\0");

export function define(command: Command, run: Run): void {
  addConfig(command)
    .argument("[tracking-id]", "the transfer's tracking-id")
    .option("--mailbox <name>", "only for this mailbox and its service, if several received it")
    .option("--password-file <file>", "read the password from a file, or from standard input for -")
    .option("--once-more", "supply no password, but allow one more attempt for a transfer that has none left")
    .option("--all", "with --once-more: for every transfer that lost its attempts in an outage")
    .addHelpText(
      "after",
      "\nOn a terminal, it asks for the password without showing it; otherwise it reads standard input.\nWrong passwords count: a service may destroy a transfer after a few.\nThe password is tried for every mailbox that waits for it. Once refused, it is never sent again for this transfer.\nAn accepted password is kept until the transfer expires, for retry, release and redeliver.",
    )
    .action((trackingId: string | undefined, options: PasswordOptions) =>
      run((context) => {
        if (options.onceMore) return allowOnceMore(context, trackingId, options);
        if (trackingId === undefined || options.all)
          throw new Fault("ORDER_IMPOSSIBLE", { detail: "name one transfer, or use --once-more --all" });
        return supply(context, trackingId, options);
      }),
    );
}

async function supply(context: Context, trackingId: string, options: PasswordOptions): Promise<Outcome> {
  const { config: path, mailbox, passwordFile } = options;
  const settings = await withDaemonsState(
    await loadSettings({ env: context.env, path, ignoreSecrets: true }),
  );
  const records = await findTransfers(settings, trackingId, mailbox);
  demandOneService(settings, records);
  // Fail before the prompt where no password would be sent.
  await demandUse(settings, records, ANY);
  const password =
    passwordFile === undefined && context.stdin.isTTY
      ? await askHidden(context, `Password of ${trackingId}: `)
      : await readSecret(context, passwordFile ?? "-");
  const isNew = await demandUse(settings, records, password ?? new Secret(""));
  if (!isNew || password === undefined) {
    say(
      context,
      "This password was refused before, so it was not sent again: ask the sender for the right one.",
    );
    return "attention";
  }
  const dropped = await asOwnerOf(settings.state, () =>
    dropPassword(settings.state, { trackingId, mailbox }, password),
  );
  const taken = dropped === undefined ? "late" : await waitForDaemon(dropped, settings.work, context.stop);
  if (taken === "no-daemon") {
    say(context, "No daemon is running: the next start tries the password.");
    return "fine";
  }
  if (taken === "late") {
    const tried = await findTried(settings, records);
    if (tried !== undefined) {
      say(
        context,
        `The password was sent, and is kept until its outcome is known. ${tried.message ?? ""}`.trimEnd(),
      );
      return "attention";
    }
    if (dropped !== undefined) await asOwnerOf(settings.state, () => takeAway(dropped, password));
    say(context, "The daemon did not try the password in time, and it was withdrawn.");
    say(context, "Check the state of the transfer, then supply the password again:");
    say(context, `  inlet show ${trackingId}`);
    return "failed";
  }
  return reportOutcome(context, settings, records, password);
}

/** The first record that the daemon has tried since, if the password has no outcome yet. */
async function findTried(
  { work }: Settings,
  records: readonly TransferRecord[],
): Promise<TransferRecord | undefined> {
  const peek = peekLedger(work);
  for (const before of records) {
    const after = await peek.find(before);
    if (after?.state === "waiting" && after.at.downloading !== before.at.downloading) return after;
  }
  return undefined;
}

/** Whether the password would be tried for one of the records; false after a refusal. Throws `ORDER_IMPOSSIBLE`. */
async function demandUse(
  settings: Settings,
  records: readonly TransferRecord[],
  password: Secret,
): Promise<boolean> {
  const objections: Objection[] = [];
  for (const record of records) {
    const { passwordAttempts } = serviceOf(settings, record.mailbox);
    const spent = await spentOn(settings, record);
    const objection = await objectionToSupply(record, spent, passwordAttempts, password);
    if (objection === undefined) return true;
    objections.push(objection);
  }
  if (objections.some(({ kind }) => kind === "known")) return false;
  // The objection of an open record says more than that of an ended one.
  const detail =
    objections.find((_, at) => !hasEnded(records[at] as TransferRecord))?.detail ?? objections[0]?.detail;
  throw new Fault("ORDER_IMPOSSIBLE", { detail: detail ?? "" });
}

/** Reads the outcome from the ledger: the daemon records it before it removes the password. */
async function reportOutcome(
  context: Context,
  settings: Settings,
  records: readonly TransferRecord[],
  password: Secret,
): Promise<Outcome> {
  const { work, state } = settings;
  const peek = peekLedger(work);
  const report = await waitFor(
    DAEMON_WAIT_MS,
    async () => {
      for (const before of records) {
        const after = await peek.find(before);
        if (after === undefined || hasEnded(before)) continue;
        const { mailbox, trackingId, message = "" } = after;
        if (after.state === "waiting" && after.reason === "password") {
          const isOver = await isRefused(after, await spentOn(settings, after), password);
          return {
            outcome: "attention" as const,
            said: `The password was ${isOver ? "refused" : "not sent"}. ${message}`,
          };
        }
        const { serviceId } = serviceOf(settings, mailbox);
        if (after.state !== "downloading" || (await isKept(state, { serviceId, trackingId }))) {
          return {
            outcome: "fine" as const,
            said: `The password was accepted: ${trackingId} is ${after.state}.`,
          };
        }
      }
      return undefined;
    },
    context.stop,
  );
  say(
    context,
    report?.said ?? "The daemon is trying the password; its outcome is not known yet. See inlet status.",
  );
  return report?.outcome ?? "fine";
}

/** A password goes to one service only. Throws `ORDER_IMPOSSIBLE`. */
function demandOneService(settings: Settings, records: readonly TransferRecord[]): void {
  const open = records.filter((record) => !hasEnded(record));
  const serviceIds = new Set(open.map(({ mailbox }) => serviceOf(settings, mailbox).serviceId));
  if (serviceIds.size <= 1) return;
  const names = open.map(({ mailbox }) => mailbox).join(", ");
  const detail = `several services list it, for ${names}: choose one with --mailbox`;
  throw new Fault("ORDER_IMPOSSIBLE", { detail });
}

async function allowOnceMore(
  context: Context,
  trackingId: string | undefined,
  { config: path, mailbox, all, passwordFile }: PasswordOptions,
): Promise<Outcome> {
  if ((trackingId === undefined) !== (all === true))
    throw new Fault("ORDER_IMPOSSIBLE", { detail: "name one transfer, or use --once-more --all" });
  if (passwordFile !== undefined)
    throw new Fault("ORDER_IMPOSSIBLE", { detail: "--once-more takes no password: supply one afterwards" });
  const settings = await loadSettings({ env: context.env, path, ignoreSecrets: true });
  if (mailbox !== undefined && !settings.mailboxes.some(({ name }) => name === mailbox))
    throw new Fault("ORDER_IMPOSSIBLE", { detail: `no mailbox is called ${mailbox}` });
  const records =
    trackingId === undefined
      ? await Array.fromAsync(peekLedger(settings.work).open())
      : await findTransfers(settings, trackingId, mailbox);
  const chosen = await findExhausted(settings, records, mailbox, all === true);
  if (chosen.length === 0 && !all)
    throw new Fault("ORDER_IMPOSSIBLE", { detail: "it has attempts left, or does not wait for a password" });
  for (const { record, grants } of chosen) {
    const order = { action: "retry", mailbox: record.mailbox, round: record.round, grants } as const;
    const given = { ...order, trackingId: record.trackingId, by: userInfo().username };
    await asOwnerOf(settings.work, () => giveOrder(settings.work, given));
  }
  const many = chosen.length === 1 ? "1 transfer" : `${chosen.length} transfers`;
  say(context, `One more password attempt is allowed for ${many}.`);
  return "fine";
}

/** Transfers without an attempt left, one record per service. `isLost`: only where an answer was lost. */
async function findExhausted(
  settings: Settings,
  records: readonly TransferRecord[],
  mailbox: string | undefined,
  isLost: boolean,
): Promise<{ readonly record: TransferRecord; readonly grants: number }[]> {
  const chosen = new Map<string, { readonly record: TransferRecord; readonly grants: number }>();
  for (const record of records) {
    const isChosen = mailbox === undefined || record.mailbox === mailbox;
    if (!isChosen || record.state !== "waiting") continue;
    const { serviceId, passwordAttempts } = serviceOf(settings, record.mailbox);
    const { spent, allowed, unanswered } = await spentOn(settings, record);
    if (spent < allowed || (isLost && unanswered === 0)) continue;
    chosen.set(`${serviceId}\0${record.trackingId}`, { record, grants: allowed - passwordAttempts + 1 });
  }
  return [...chosen.values()];
}

function spentOn(settings: Settings, record: TransferRecord): Promise<SpentAttempts> {
  const { trackingId } = record;
  const { serviceId, passwordAttempts } = serviceOf(settings, record.mailbox);
  return peekLedger(settings.work).attempts.spent(
    { serviceId, trackingId },
    nameOf(record),
    passwordAttempts,
  );
}

function serviceOf({ mailboxes }: Settings, mailbox: string) {
  const { service, passwordAttempts = 0 } = mailboxes.find(({ name }) => name === mailbox) ?? {};
  return { serviceId: service === undefined ? "" : serviceIdOf(service.baseUrl), passwordAttempts };
}
