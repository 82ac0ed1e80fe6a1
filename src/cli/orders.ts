/** `retry`, `release`, `discard` and `redeliver`: an operator's order about one transfer. */
import { userInfo } from "node:os";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { asOwnerOf } from "../base/process.ts";
import { loadSettings } from "../config/load.ts";
import { type PeekedStep, peekSteps } from "../handoff/peek.ts";
import { giveOrder } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import { objectionTo } from "../mailbox/orders.ts";
import type { HandoffStep } from "../model/handoff.ts";
import type { Action } from "../model/order.ts";
import { isDelivered, type TransferRecord } from "../model/record.ts";
import { askYesNo, canAsk } from "./asking.ts";
import type { Context, Outcome, Run } from "./context.ts";
import { addConfig } from "./options.ts";
import { printJson, say } from "./printing.ts";
import { findTransfer, waitFor, waitForDaemon } from "./transfers.ts";

interface OrderOptions {
  readonly config?: string;
  readonly mailbox?: string;
  readonly json?: boolean;
  readonly yes?: boolean;
}

/** The help text of each order, and its confirmation question. */
const MEANING: Readonly<Record<Action, { readonly help: string; readonly question?: string }>> = {
  retry: {
    help: "Tries a waiting transfer at once. Downloads a quarantined transfer again from the start and verifies it. Runs the command and webhook of a delivered transfer again if they failed.",
  },
  release: {
    help: "Delivers a quarantined transfer on your responsibility, whatever its size and checksums; the manifest records that. Complete files come from quarantine. Missing files are downloaded, if the service still has them.",
    question: "Its content is not verified. Deliver it anyway?",
  },
  discard: {
    help: "Gives up a transfer for good and deletes its content here. The service keeps its own copy until it expires. A transfer that is gone no longer needs attention afterwards.",
    question: "Its content here will be deleted, and it will not be downloaded again. Discard it?",
  },
  redeliver: {
    help: "Downloads a delivered transfer and delivers it once more, beside the first folder if that still exists. The service must still have it.",
    question: "Consumers of the inbox will see it a second time. Deliver it again?",
  },
};

export function define(command: Command, run: Run): void {
  const action = command.name() as Action;
  const { help, question } = MEANING[action];
  addConfig(command)
    .argument("<tracking-id>", "the transfer's tracking-id")
    .option("--mailbox <name>", "the mailbox, if several received it")
    .option("--json", "print the resulting record as JSON");
  if (question !== undefined) command.option("--yes", "do not ask for confirmation");
  command
    .addHelpText("after", `\n${help}\nA running daemon does this at once; otherwise the next start does.`)
    .action((trackingId: string, options: OrderOptions) =>
      run((context) => order(context, action, trackingId, options)),
    );
}

async function order(
  context: Context,
  action: Action,
  trackingId: string,
  options: OrderOptions,
): Promise<Outcome> {
  const { config: path } = options;
  const settings = await loadSettings({ env: context.env, path, ignoreSecrets: true });
  const record = await findTransfer(settings, trackingId, options.mailbox);
  const steps = await peekSteps(settings.work, nameOf(record));
  const isHandedOver = steps.every((step) => step.state === "done");
  const objection = objectionTo(action, record, isHandedOver);
  if (objection !== undefined) throw new Fault("ORDER_IMPOSSIBLE", { detail: objection });
  if (!(await isConfirmed(context, action, record, options))) {
    say(context, "Nothing was changed.");
    return "fine";
  }
  const { mailbox, round } = record;
  const wanted = { action, mailbox, trackingId, round, by: userInfo().username };
  const given = await asOwnerOf(settings.work, () => giveOrder(settings.work, wanted));
  const taken = await waitForDaemon(given, settings.work, context.stop);
  const after = await peekLedger(settings.work).find(record);
  if (options.json) printJson(context, after);
  if (taken === "taken" && action === "retry" && isDelivered(record)) {
    return reportRetried(context, steps, settings.work, nameOf(record));
  }
  if (taken === "taken" && action === "redeliver" && after?.round === round) {
    say(
      context,
      `${trackingId} was not delivered again: the service no longer has it. Its first delivery is unchanged.`,
    );
    return "attention";
  }
  const isKnown = after?.acknowledged === true && action === "discard";
  say(
    context,
    {
      taken: `${trackingId} is ${isKnown ? "gone, and no longer shown" : `now ${after?.state ?? "unknown"}`}.`,
      late: "The daemon has not carried it out yet, but will.",
      "no-daemon": "No daemon is running: the next start carries it out.",
    }[taken],
  );
  return "fine";
}

async function isConfirmed(
  context: Context,
  action: Action,
  { trackingId, sender, state, message }: TransferRecord,
  { yes }: OrderOptions,
): Promise<boolean> {
  const { question } = MEANING[action];
  // A transfer that is gone has no content to lose.
  if (question === undefined || yes || state === "gone") return true;
  if (!canAsk(context)) {
    throw new Fault("ORDER_IMPOSSIBLE", { detail: "no terminal to confirm on: add --yes" });
  }
  say(context, `${trackingId} from ${sender}${message === undefined ? "" : `: ${message}`}`);
  return askYesNo(context, question, false);
}

/** A hand-off command may run longer; its outcome is not awaited then. */
const RETRY_WAIT_MS = 60_000;

const NAMES: Readonly<Record<HandoffStep, string>> = { command: "The command", webhook: "The webhook" };

/** `before`: the steps before the order. `name`: of the transfer's records. */
async function reportRetried(
  context: Context,
  before: readonly PeekedStep[],
  work: string,
  name: string,
): Promise<Outcome> {
  const wanted = before.filter(({ state }) => state !== "done").map(({ step }) => step);
  const allTried = async () => {
    const steps = await peekSteps(work, name);
    return steps.some(isUntried) ? undefined : steps;
  };
  const steps = (await waitFor(RETRY_WAIT_MS, allTried, context.stop)) ?? (await peekSteps(work, name));
  const failed = wanted.map((step) => {
    const found = steps.find((it) => it.step === step);
    return reportStep(context, step, found);
  });
  return failed.includes(true) ? "attention" : "fine";
}

/** Whether it failed. A step without a record is done: the folder was picked up. */
function reportStep(context: Context, step: HandoffStep, found: PeekedStep | undefined): boolean {
  const name = NAMES[step];
  if (found === undefined || found.state === "done") {
    say(context, `${name} succeeded.`);
    return false;
  }
  if (isUntried(found)) {
    say(context, `${name} has not finished yet: see inlet status for the outcome.`);
    return false;
  }
  const next = found.state === "pending" ? " The daemon retries it." : "";
  say(context, `${name} failed again: ${found.error ?? "unknown reason"}.${next}`);
  return true;
}

function isUntried({ state, attempts }: PeekedStep): boolean {
  return state === "pending" && attempts === 0;
}
