/** `poll`, `pause` and `resume`: operators' acts on mailboxes. */
import type { Command } from "commander";
import type { MailboxAct } from "../model/order.ts";
import { addExitCodes, type Context, type Outcome, type Runner } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import { addConfig } from "./options.ts";
import { type ActOptions, addWaiting, DEFAULT_TIMEOUT_MS, operatorOf, outcomeOfResults } from "./orders.ts";
import { printJson, say } from "./printing.ts";

const HELP: Readonly<Record<MailboxAct, string>> = {
  poll: "Makes the daemon read the list of the mailbox at once, and prints how many transfers the service lists and how many of them are new. New transfers are downloaded as usual. Without a mailbox, every mailbox that is not paused is polled.",
  pause:
    "The mailbox is not polled, and none of its transfers is downloaded, until inlet resume. Running downloads finish. A pause outlives restarts and applies to every process that shares the inbox. The status shows it as a problem, with who paused the mailbox and since when. Without a mailbox, all mailboxes are paused. No daemon needs to run.",
  resume:
    "Ends the pause of a mailbox, which is then polled at once. Without a mailbox, the pauses of all mailboxes end. A mailbox that the configuration pauses stays paused. No daemon needs to run.",
};

export function define(command: Command, run: Runner): void {
  const act = command.name() as MailboxAct;
  addConfig(command).argument("[mailbox]", "the mailbox's name or address; without it, all mailboxes");
  if (act === "poll") addWaiting(command);
  command
    .option(
      "--json",
      "print the outcome as JSON: one object for one tracking-id or mailbox, otherwise an array",
    )
    .addHelpText("after", `\n${HELP[act]}`)
    .action(
      run((context, mailbox: string | undefined, options: ActOptions) =>
        actOn(context, act, mailbox, options),
      ),
    );
  addExitCodes(command, CODES[act]);
}

const CODES = {
  poll: {
    fine: "every poll succeeded",
    usage: "there is no such mailbox, or it is paused",
    attention: "a poll failed, and a person has to act",
    unreachable: "no daemon is running, the service cannot be reached, or the poll is not over yet",
  },
  pause: { fine: "done, or it was so already", usage: "there is no such mailbox" },
  resume: {
    fine: "done, or it was so already",
    usage: "there is no such mailbox",
    attention: "the configuration pauses the mailbox",
  },
} as const;

async function actOn(
  context: Context,
  act: MailboxAct,
  mailbox: string | undefined,
  options: ActOptions,
): Promise<Outcome> {
  const { access } = await openConfigured(context, options);
  const { wait: isAwaited = true, timeout = DEFAULT_TIMEOUT_MS } = options;
  const results = await access.actOnMailboxes({ act, mailbox, isAwaited }, operatorOf(context), timeout);
  if (options.json) printJson(context, mailbox === undefined ? results : results[0]);
  else if (results.length === 0) say(context, "No mailbox is paused by an operator.");
  else for (const { text } of results) say(context, text);
  return outcomeOfResults(results);
}
