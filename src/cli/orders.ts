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
import { findTransfer, until, untilTaken } from "./transfers.ts";

interface OrderOptions {
  readonly config?: string;
  readonly mailbox?: string;
  readonly json?: boolean;
  readonly yes?: boolean;
}

/** What each order does, and the question before it where it has consequences. */
const MEANING: Readonly<Record<Action, { readonly help: string; readonly question?: string }>> = {
  retry: {
    help: "A waiting transfer is tried at once. A quarantined one is downloaded again from the start, and verified like any other. For a delivered one, the command and the webhook run again if they failed.",
  },
  release: {
    help: "A quarantined transfer is delivered on your word: limits and checksums do not stop it, and the manifest says so. Files that are complete in quarantine are used; only missing ones are downloaded, and then the service must still have them.",
    question: "It was not proven to be what its sender sent. Deliver it all the same?",
  },
  discard: {
    help: "The transfer is given up for good, and its content here is deleted. The service keeps it until it expires. One that is gone no longer counts as needing a person.",
    question: "Its content here is deleted, and it will not be downloaded again. Discard it?",
  },
  redeliver: {
    help: "A delivered transfer is downloaded and delivered once more, beside the first folder if that is still there. The service must still have it.",
    question: "Consumers of the inbox will see it a second time. Deliver it again?",
  },
};

export function define(command: Command, run: Run): void {
  const action = command.name() as Action;
  const { help, question } = MEANING[action];
  addConfig(command)
    .argument("<tracking-id>", "which transfer")
    .option("--mailbox <name>", "which mailbox, where several received it")
    .option("--json", "print the record afterwards as JSON");
  if (question !== undefined) command.option("--yes", "do it without asking");
  command
    .addHelpText("after", `\n${help}\nA running daemon does it at once; without one the next start does it.`)
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
  const taken = await untilTaken(given, settings.work, context.stop);
  const after = await peekLedger(settings.work).find(record);
  if (options.json) printJson(context, after);
  if (taken === "taken" && action === "retry" && isDelivered(record)) {
    return reportRetried(context, steps, settings.work, nameOf(record));
  }
  if (taken === "taken" && action === "redeliver" && after?.round === round) {
    say(
      context,
      `${trackingId} is not delivered again: the service no longer has it. Its first delivery stands.`,
    );
    return "attention";
  }
  const isKnown = after?.acknowledged === true && action === "discard";
  say(
    context,
    {
      taken: `${trackingId} is ${isKnown ? "gone, and no longer shown" : `now ${after?.state ?? "unknown"}`}.`,
      late: "The daemon has not taken it up yet, and will carry it out.",
      "no-daemon": "No daemon runs: the next one carries it out.",
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
  // A gone transfer has nothing left to lose.
  if (question === undefined || yes || state === "gone") return true;
  if (!canAsk(context)) {
    throw new Fault("ORDER_IMPOSSIBLE", {
      detail: "no terminal to confirm on: add --yes",
    });
  }
  say(context, `${trackingId} from ${sender}${message === undefined ? "" : `: ${message}`}`);
  return askYesNo(context, question, false);
}

/** The command of a hand-off may run longer: then its outcome is left open. */
const RETRY_WAIT_MS = 60_000;

const NAMES: Readonly<Record<HandoffStep, string>> = { command: "The command", webhook: "The webhook" };

/** `before`: the steps when the order was given. `name`: of the transfer's records. */
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
  const steps = (await until(RETRY_WAIT_MS, allTried, context.stop)) ?? (await peekSteps(work, name));
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
    say(context, `${name} is still being tried: see inlet status for the outcome.`);
    return false;
  }
  const next = found.state === "pending" ? " It is tried again by itself." : "";
  say(context, `${name} failed again: ${found.error ?? "the reason is unknown"}.${next}`);
  return true;
}

function isUntried({ state, attempts }: PeekedStep): boolean {
  return state === "pending" && attempts === 0;
}
