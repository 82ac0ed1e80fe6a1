/** `adopt` and `anew`: an operator decides about transfers that may have been delivered before. */
import type { Command } from "commander";
import { formatCount } from "../base/phrases.ts";
import { asOwnerOf } from "../base/process.ts";
import { giveAnswer } from "../inbox/work-folder.ts";
import type { Decision } from "../model/order.ts";
import { DOUBT } from "../model/record.ts";
import { findOpenQuestion } from "../operate/records.ts";
import { addExitCodes, type Context, type Outcome, type Runner } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import { addConfig, type CommonOptions, demandMailbox } from "./options.ts";
import { DEFAULT_TIMEOUT_MS, operatorOf, outcomeOfResults } from "./orders.ts";
import { say } from "./printing.ts";

/** What becomes of the transfers, the order for each of them, and the help. */
const DECISIONS = {
  adopt: [
    "left out",
    "discard",
    "Use it if records are gone or older, and their transfers were delivered. What the service lists, and no record names as delivered, counts as delivered, and is left out. What arrives later is delivered.",
  ],
  anew: [
    "delivered",
    "retry",
    "Use it if records are gone or older, and consumers may get transfers once more. What the service lists, and no record names as delivered, is downloaded and delivered.",
  ],
} as const;

export function define(command: Command, run: Runner): void {
  const decision = command.name() as Decision;
  addConfig(command)
    .option("--mailbox <name>", "only for this mailbox: its name or address")
    .option("--yes", "do it; without it, only say what would happen")
    .addHelpText("after", `\n${DECISIONS[decision][2]} No daemon needs to run.`)
    .action(run((context, options: DecisionOptions) => decide(context, decision, options)));
  addExitCodes(command, {
    fine: "nothing waits for a decision, or it is recorded: a running daemon takes it up within a minute",
    usage: "there is no such mailbox",
    attention: "something waits for the decision, and --yes was not given",
  });
}

interface DecisionOptions extends CommonOptions {
  readonly mailbox?: string;
  readonly yes?: boolean;
}

async function decide(
  context: Context,
  decision: Decision,
  { mailbox: wanted, yes, ...options }: DecisionOptions,
): Promise<Outcome> {
  const { access, settings } = await openConfigured(context, options);
  const chosen = wanted === undefined ? undefined : demandMailbox(settings.mailboxes, wanted);
  const question = await findOpenQuestion(settings);
  const asked = question?.mailboxes.filter(({ name }) => chosen === undefined || name === chosen.name) ?? [];
  // Damaged records are reported elsewhere.
  const found = await Array.fromAsync(access.all({ state: "waiting", reason: DOUBT }, () => {}));
  // These are shown under the label of their mailbox.
  const label = chosen?.label ?? chosen?.name;
  const transfers = found.filter(({ mailbox }) => label === undefined || mailbox === label);
  const [effect, act] = DECISIONS[decision];
  const will = `${yes ? "will" : "would"} be ${effect}`;
  if (question !== undefined && asked.length > 0) {
    const names = asked.map(({ email }) => email).join(", ");
    say(context, `The work folder is not the expected one: ${question.detail}.`);
    say(context, `What is listed for ${names}, and no record there names as delivered, ${will}.`);
  }
  if (transfers.length > 0) {
    const count = formatCount(transfers.length, "transfer", "transfers");
    say(context, `${count} that may have been delivered before ${will}.`);
  }
  const waits = asked.length + transfers.length > 0;
  if (!waits) say(context, "Nothing waits for a decision.");
  else if (!yes) say(context, "Nothing was changed. To decide so, add --yes.");
  if (!waits || !yes) return waits ? "attention" : "fine";
  const by = operatorOf(context);
  if (question !== undefined)
    await asOwnerOf(settings.state, () =>
      giveAnswer(settings, { ...question, mailboxes: asked }, decision, by),
    );
  const request = { act, transfers, isAwaited: false };
  // Nothing is awaited, so no result changes.
  return outcomeOfResults(await access.act(request, by, DEFAULT_TIMEOUT_MS, () => {}));
}
