/** `password`: supplies the password of a transfer that waits for one. */
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { asOwnerOf } from "../base/ownership.ts";
import { loadSettings } from "../config/load.ts";
import { isFinal } from "../model/receipt.ts";
import { dropPassword } from "../passwords/dropped.ts";
import { peekReceipts } from "../receipts/reading.ts";
import { readSecret } from "./api/session.ts";
import { askHidden } from "./asking.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { findTransfer } from "./finding.ts";
import { addConfig } from "./options.ts";
import { say } from "./printing.ts";
import { untilTaken } from "./taking.ts";

interface PasswordOptions {
  readonly config?: string;
  readonly mailbox?: string;
  readonly passwordFile?: string;
}

export function define(command: Command, run: Run): void {
  addConfig(command)
    .argument("<tracking-id>", "which transfer")
    .option("--mailbox <name>", "which mailbox, where several received it")
    .option("--password-file <file>", "read it from a file, or from standard input with -")
    .addHelpText(
      "after",
      "\nOn a terminal it is asked for and not shown; otherwise it is read from standard input.\nA wrong password counts: a service may destroy a transfer after a few.",
    )
    .action((trackingId: string, options: PasswordOptions) =>
      run((context) => supply(context, trackingId, options)),
    );
}

async function supply(context: Context, trackingId: string, options: PasswordOptions): Promise<Outcome> {
  const { config: path, mailbox, passwordFile } = options;
  const settings = await loadSettings({ env: context.env, ...(path === undefined ? {} : { path }) });
  const receipt = await findTransfer(settings, trackingId, mailbox);
  if (isFinal(receipt)) throw new Fault("ORDER_IMPOSSIBLE", { detail: `it is ${receipt.state}` });
  const { passwordAttempts = 0 } = settings.mailboxes.find(({ name }) => name === receipt.mailbox) ?? {};
  if (receipt.refusedPasswords >= passwordAttempts) {
    const detail = `${receipt.refusedPasswords} attempts are spent, which is all that passwordAttempts allows for ${receipt.mailbox}: raise it first`;
    throw new Fault("ORDER_IMPOSSIBLE", { detail });
  }
  const password =
    passwordFile === undefined && context.stdin.isTTY
      ? await askHidden(context, `Password of ${trackingId}: `)
      : await readSecret(context, passwordFile ?? "-");
  if (password === undefined) throw new Fault("ORDER_IMPOSSIBLE", { detail: "no password was given" });
  const dropped = await asOwnerOf(settings.state, () => dropPassword(settings.state, trackingId, password));
  if (dropped === undefined) {
    throw new Fault("ORDER_IMPOSSIBLE", {
      detail: "its tracking-id cannot be the name of a file: use a rule",
    });
  }
  if (!(await untilTaken(dropped, settings.work, context.stop))) {
    say(context, "No daemon has taken it up yet: it is tried as soon as one runs.");
    return "fine";
  }
  const after = await peekReceipts(settings.work).find(receipt);
  const isRefused = (after?.refusedPasswords ?? 0) > receipt.refusedPasswords;
  say(
    context,
    isRefused
      ? `It was refused. ${after?.message ?? ""}`
      : `It was accepted: ${trackingId} is ${after?.state}.`,
  );
  return isRefused ? "attention" : "fine";
}
