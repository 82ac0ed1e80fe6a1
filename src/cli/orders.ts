/** `retry`, `release`, `discard` and `redeliver`: operators' orders for transfers. */
import type { Command } from "commander";
import { ACT_TEXTS } from "../model/actions.ts";
import type { Action } from "../model/order.ts";
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
} from "./acting.ts";
import { addExitCodes, type Context, type Outcome, type Run } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import { filterOf } from "./options.ts";

interface Meaning {
  readonly help: string;
  /** Confirmation of the order for one transfer. */
  readonly question?: string;
  /** `--all` alone would mean too much. */
  readonly needsFilter?: boolean;
}

const MEANING: Readonly<Record<Action, Meaning>> = {
  retry: {
    help: "Tries a waiting transfer at once. Downloads a quarantined transfer again from the start and verifies it. Downloads a transfer that a route or the setting since ignores. Runs the command and webhook of a delivered transfer again if they failed.",
  },
  release: {
    help: "Delivers a quarantined transfer on your responsibility, whatever its size and checksums; the manifest records that. Complete files come from quarantine. Missing files are downloaded, if the service still has them. A transfer that a route holds is downloaded, verified and delivered as usual.",
    question: "Deliver it anyway, on your responsibility?",
    needsFilter: true,
  },
  discard: {
    help: "Gives up a transfer for good and deletes its content here. The service keeps its own copy until it expires. A transfer that is gone no longer needs attention afterwards. It also works for a mailbox that is no longer configured.",
    question: "Its content here will be deleted, and it will not be downloaded again. Discard it?",
    needsFilter: true,
  },
  redeliver: {
    help: "Downloads a delivered transfer and delivers it once more, beside the first folder if that still exists. The service must still have it.",
    question: "Consumers of the inbox will see it a second time. Deliver it again?",
    needsFilter: true,
  },
};

export function define(command: Command, run: Run): void {
  const action = command.name() as Action;
  addActing(command, "[tracking-id...]")
    .addHelpText("after", `\n${MEANING[action].help}`)
    .action(run((context, ids: string[], options: ActOptions) => order(context, action, ids, options)));
  addExitCodes(command, ACTING_CODES);
}

async function order(
  context: Context,
  action: Action,
  ids: readonly string[],
  options: ActOptions,
): Promise<Outcome> {
  const { question, needsFilter } = MEANING[action];
  demandChoice(ids, options);
  if (options.all && needsFilter && Object.values(filterOf(options)).every((it) => it === undefined)) {
    throw impossible("--all needs --sender, --reason, --state, --text, --since or --mailbox");
  }
  const { access } = await openConfigured(context, options);
  const transfers = await chooseTransfers(access, action, ids, options);
  const isOne = ids.length === 1;
  const objection = isOne && transfers[0] ? await access.objectionTo(action, transfers[0]) : undefined;
  if (objection !== undefined) throw impossible(objection);
  const { label } = ACT_TEXTS[action];
  if (!(await isConfirmed(context, label, transfers, options, question))) return "fine";
  const results = await perform(context, access, { act: action, transfers }, options);
  return report(context, results, options, isOne);
}
