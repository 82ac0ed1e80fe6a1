/** `password`: supplies the password of a transfer that waits for one. */
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { asOwnerOf } from "../base/ownership.ts";
import { Secret } from "../base/secret.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { SpentAttempts } from "../model/attempts.ts";
import { hasEnded, type TransferRecord } from "../model/record.ts";
import { isKept } from "../passwords/candidates.ts";
import { DropFolder, dropPassword } from "../passwords/dropped.ts";
import { isRefused, type Objection, objectionToSupply } from "../passwords/supply.ts";
import { readSecret } from "./api/session.ts";
import { askHidden } from "./asking.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { withDaemonsState } from "./daemon-state.ts";
import { findTransfers } from "./finding.ts";
import { addConfig } from "./options.ts";
import { say } from "./printing.ts";
import { until, untilTaken } from "./taking.ts";

interface PasswordOptions {
  readonly config?: string;
  readonly mailbox?: string;
  readonly passwordFile?: string;
}

/** Stands for a password that nobody has given yet. */
const ANY = new Secret("\0");

export function define(command: Command, run: Run): void {
  addConfig(command)
    .argument("<tracking-id>", "which transfer")
    .option("--mailbox <name>", "look at how it stands for this mailbox alone, where several received it")
    .option("--password-file <file>", "read it from a file, or from standard input with -")
    .addHelpText(
      "after",
      "\nOn a terminal it is asked for and not shown; otherwise it is read from standard input.\nA wrong password counts: a service may destroy a transfer after a few.\nIt is tried for every mailbox that received the transfer and waits for it; once refused it is not sent again for any.",
    )
    .action((trackingId: string, options: PasswordOptions) =>
      run((context) => supply(context, trackingId, options)),
    );
}

async function supply(context: Context, trackingId: string, options: PasswordOptions): Promise<Outcome> {
  const { config: path, mailbox, passwordFile } = options;
  const settings = await withDaemonsState(
    await loadSettings({ env: context.env, path, ignoreSecrets: true }),
  );
  const records = await findTransfers(settings, trackingId, mailbox);
  // Nobody is asked for what would not be sent.
  await demandUse(settings, records, ANY);
  const password =
    passwordFile === undefined && context.stdin.isTTY
      ? await askHidden(context, `Password of ${trackingId}: `)
      : await readSecret(context, passwordFile ?? "-");
  const isNew = await demandUse(settings, records, password ?? new Secret(""));
  if (!isNew || password === undefined) {
    say(context, `It was refused before, and was not sent again: ask the sender for the right one.`);
    return "attention";
  }
  const dropped = await asOwnerOf(settings.state, () => dropPassword(settings.state, trackingId, password));
  const taken = dropped === undefined ? "late" : await untilTaken(dropped, settings.work, context.stop);
  if (taken === "nobody") {
    say(context, "No daemon runs now: it is tried as soon as one runs.");
    return "fine";
  }
  if (taken === "late") {
    await asOwnerOf(settings.state, () => new DropFolder(settings.state).takeAway(trackingId, password));
    say(
      context,
      `A daemon runs, but did not take it up in time, and it was taken back. See how ${trackingId} is with inlet status, and supply it again.`,
    );
    return "failed";
  }
  return tellOutcome(context, settings, records, password);
}

/** Whether it would be tried for one of them; false where it was refused before. Throws `ORDER_IMPOSSIBLE`. */
async function demandUse(
  settings: Settings,
  records: readonly TransferRecord[],
  password: Secret,
): Promise<boolean> {
  const { mailboxes } = settings;
  const objections: Objection[] = [];
  for (const record of records) {
    const { passwordAttempts = 0 } = mailboxes.find(({ name }) => name === record.mailbox) ?? {};
    const spent = await spentOn(settings, record);
    const objection = await objectionToSupply(record, spent, passwordAttempts, password);
    if (objection === undefined) return true;
    objections.push(objection);
  }
  if (objections.some(({ kind }) => kind === "known")) return false;
  // That it is over for one mailbox says little where another one still waits.
  const detail =
    objections.find((_, at) => !hasEnded(records[at] as TransferRecord))?.detail ?? objections[0]?.detail;
  throw new Fault("ORDER_IMPOSSIBLE", { detail: detail ?? "" });
}

/** What the ledger say of it: a refusal is there before the password is taken away, and so is what was accepted. */
async function tellOutcome(
  context: Context,
  settings: Settings,
  records: readonly TransferRecord[],
  password: Secret,
): Promise<Outcome> {
  const { work, state } = settings;
  const peek = peekLedger(work);
  const told = await until(async () => {
    for (const before of records) {
      const after = await peek.find(before);
      if (after === undefined || hasEnded(before)) continue;
      const { mailbox, trackingId, message = "" } = after;
      if (after.state === "waiting" && after.reason === "password") {
        const isOver = await isRefused(after, await spentOn(settings, after), password);
        return {
          outcome: "attention" as const,
          said: `${isOver ? "It was refused." : "It was not sent."} ${message}`,
        };
      }
      if (after.state !== "downloading" || (await isKept(state, mailbox, trackingId))) {
        return { outcome: "fine" as const, said: `It was accepted: ${trackingId} is ${after.state}.` };
      }
    }
    return undefined;
  }, context.stop);
  say(context, told?.said ?? "It was taken up, and what came of it is not known yet: see inlet status.");
  return told?.outcome ?? "fine";
}

function spentOn({ work, mailboxes }: Settings, record: TransferRecord): Promise<SpentAttempts> {
  const { mailbox, trackingId } = record;
  const { service, passwordAttempts = 0 } = mailboxes.find(({ name }) => name === mailbox) ?? {};
  const origin = service?.baseUrl.origin ?? "";
  return peekLedger(work).attempts.spent({ origin, trackingId }, nameOf(record), passwordAttempts);
}
