/** `password`: supplies the password of waiting transfers. */
import type { Command } from "commander";
import { makeMatcher, textForm } from "../base/normal-form.ts";
import { formatCount } from "../base/phrases.ts";
import { hasEnded } from "../model/record.ts";
import type { TransferView } from "../model/views.ts";
import type { Operate } from "../operate/local.ts";
import { askHidden, readPassword } from "./asking.ts";
import { addExitCodes, type Context, type Outcome, type Runner } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import {
  ACTING_CODES,
  type ActOptions,
  addActing,
  chooseTransfers,
  demandChoice,
  impossible,
  isConfirmed,
  perform,
  report,
} from "./orders.ts";
import { say } from "./printing.ts";

interface PasswordOptions extends ActOptions {
  readonly passwordFile?: string;
  readonly onceMore?: boolean;
}

const NOTHING_READ =
  "no password was given, because standard input is empty: write the password to it, name a file with --password-file, or run the command on a terminal";

const HELP = `
On a terminal, it asks for the password without showing it; otherwise it reads standard input.
Wrong passwords count: a service may destroy a transfer after a few.
The password is tried for every mailbox that waits for it. Once refused, it is never sent again for this transfer.
With --all or several tracking-ids, one transfer is tried first: the others only if the password opens it.
An accepted password is kept until the transfer expires, for retry, release and redeliver.
With --once-more --all, each transfer that lost its attempts in an outage gets one more.`;

export function define(command: Command, run: Runner): void {
  addActing(command)
    .option("--password-file <file>", "read the password from a file, or from standard input for -")
    .option("--once-more", "supply no password, but allow one more attempt for a transfer that has none left")
    .addHelpText("after", HELP)
    .action(
      run((context, ids: string[], options: PasswordOptions) =>
        (options.onceMore ? allowOnceMore : supply)(context, ids, options),
      ),
    );
  addExitCodes(command, {
    ...ACTING_CODES,
    fine: "the password was accepted, and the transfer is delivered; or no daemon runs, and the next inlet run or inlet once tries it",
    attention: "the password was refused, now or before; or the transfer waits for another reason",
    unreachable: "the service cannot be reached; or the daemon has not tried the password yet, and keeps it",
  });
}

async function supply(context: Context, ids: readonly string[], options: PasswordOptions): Promise<Outcome> {
  demandChoice(ids, options);
  if (options.all && options.sender === undefined) throw impossible("--all needs --sender");
  const { access } = await openConfigured(context, options);
  const transfers = await chooseTransfers(access, "password", ids, options);
  // With `--all`, only transfers for which it is possible are chosen.
  if (!options.all) await demandUse(access, transfers);
  if (!(await isConfirmed(context, "Try one password for", transfers, options))) return "fine";
  const whose = ids.length === 1 ? ids[0] : formatCount(transfers.length, "transfer", "transfers");
  const isTyped = options.passwordFile === undefined && context.stdin.isTTY;
  const password = isTyped
    ? await askHidden(context, `Password of ${whose}: `)
    : await readPassword(context, options.passwordFile ?? "-");
  if (password === undefined || password.reveal() === "") {
    throw impossible(isTyped ? "no password was given" : NOTHING_READ);
  }
  const isForMailbox = options.mailbox !== undefined && !options.all;
  const request = { act: "password", transfers, password, isForMailbox } as const;
  const results = await perform(context, access, request, options);
  const isOne = ids.length === 1;
  const tried = results.filter(({ result }) => result !== "refused");
  // Of several mailboxes that received one transfer, some may not need the password.
  return report(context, isOne && tried.length > 0 ? tried : results, options, isOne);
}

/** Called before the prompt. Throws `ORDER_IMPOSSIBLE` if the password would be tried for none of the transfers. */
async function demandUse(access: Operate, transfers: readonly TransferView[]): Promise<void> {
  // The objection of an open record says more than that of an ended one.
  const openLast = transfers.toSorted((a, b) => Number(hasEnded(b)) - Number(hasEnded(a)));
  let detail: string | undefined;
  for (const transfer of openLast) {
    detail = await access.objectionTo("password", transfer);
    if (detail === undefined) return;
  }
  throw impossible(detail ?? "");
}

async function allowOnceMore(
  context: Context,
  ids: readonly string[],
  options: PasswordOptions,
): Promise<Outcome> {
  if (options.passwordFile !== undefined)
    throw impossible("--once-more takes no password: supply one afterwards");
  if (ids.length > 0 === (options.all === true)) throw impossible("name transfers, or use --once-more --all");
  const { access, settings } = await openConfigured(context, options);
  const isNamed = makeMatcher(options.all ? options.mailbox : undefined, textForm);
  if (!settings.mailboxes.some(({ name, label = name }) => isNamed(label))) {
    throw impossible(`no mailbox is called ${options.mailbox}`);
  }
  const chosen = await chooseTransfers(access, "grant", ids, options);
  // The attempts are counted for the service: one mailbox that received the transfer is enough.
  const onePerId = [...new Map(chosen.toReversed().map((it) => [it.trackingId, it])).values()].toReversed();
  const results = await perform(context, access, { act: "grant", transfers: onePerId }, options);
  if (results.length === 0) say(context, "No transfer matches.");
  return report(context, results, options, ids.length === 1);
}
