/** `retry`, `release`, `discard` and `redeliver`: operators' orders for transfers. `password` works in the same way. */

import { hostname } from "node:os";
import type { Command } from "commander";
import { Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { nameOfUser } from "../host/permission.ts";
import { ACT_TEXTS } from "../model/actions.ts";
import { type Action, type Actor, actorOf, type TransferAct } from "../model/order.ts";
import type { ActResult, Story, TransferView } from "../model/views.ts";
import type { ActRequest } from "../operate/acting.ts";
import type { Operate } from "../operate/local.ts";
import { askYesNo, canAsk } from "./asking.ts";
import { addExitCodes, type Context, type Outcome, type Runner } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import { addConfig, addFilter, duration, type FilterOptions, filterOf } from "./options.ts";
import { printable, printJson, redrawLine, say } from "./printing.ts";

const HELP: Readonly<Record<Action, string>> = {
  retry:
    "Tries a waiting transfer at once. Downloads a quarantined transfer again from the start and verifies it. Downloads a transfer that a route or the setting since ignores. Runs the command and webhook of a delivered transfer again if they failed.",
  release:
    "Delivers a quarantined transfer on your responsibility, whatever its size and checksums; the manifest records that. Complete files come from quarantine. Missing files are downloaded, if the service still has them. A transfer that a route holds is downloaded, verified and delivered as usual.",
  discard:
    "Gives up a transfer for good and deletes its content here. The service keeps its own copy until it expires. A transfer that is gone no longer needs attention afterwards. It also works for a mailbox that is no longer configured.",
  redeliver:
    "Downloads a delivered transfer and delivers it once more, beside the first folder if that still exists. The service must still have it.",
};

export function define(command: Command, run: Runner): void {
  const action = command.name() as Action;
  addActing(command)
    .addHelpText("after", `\n${HELP[action]}`)
    .action(run((context, ids: string[], options: ActOptions) => order(context, action, ids, options)));
  addExitCodes(command, ACTING_CODES);
}

async function order(
  context: Context,
  action: Action,
  ids: readonly string[],
  options: ActOptions,
): Promise<Outcome> {
  const { label, warning } = ACT_TEXTS[action];
  demandChoice(ids, options);
  // `--all` alone would mean too much.
  if (
    options.all &&
    warning !== undefined &&
    Object.values(filterOf(options)).every((it) => it === undefined)
  ) {
    throw impossible("--all needs --sender, --reason, --state, --text, --since or --mailbox");
  }
  const { access } = await openConfigured(context, options);
  const transfers = await chooseTransfers(access, action, ids, options);
  const isOne = ids.length === 1;
  const objection = isOne && transfers[0] ? await access.objectionTo(action, transfers[0]) : undefined;
  if (objection !== undefined) throw impossible(objection);
  if (!(await isConfirmed(context, label, transfers, options, warning))) return "fine";
  const results = await perform(context, access, { act: action, transfers }, options);
  return report(context, results, options, isOne);
}

export interface ActOptions extends FilterOptions {
  readonly all?: boolean;
  readonly yes?: boolean;
  /** False with `--no-wait`. */
  readonly wait?: boolean;
  readonly timeout?: number;
}

export const DEFAULT_TIMEOUT_MS = 5 * 60_000;
/** Shown before a confirmation. */
const MAX_SHOWN = 10;

/** What the exit codes of an order mean. */
export const ACTING_CODES = {
  fine: "the transfer was delivered, handed over or discarded; or no daemon runs, and the next inlet run or inlet once does it",
  usage: "not possible for this transfer; nothing was changed",
  attention: "a person has to act: the transfer waits, is in quarantine, is gone, or its hand-off failed",
  unreachable: "the outcome is not known yet: the service, the queue or the daemon needs more time",
} as const;

export function addActing(command: Command): Command {
  const chosen = addConfig(command)
    .argument("[tracking-id...]", "the transfers' tracking-ids")
    .option("--mailbox <name>", "the mailbox, if several received it; with --all a pattern")
    .option("--all", "all transfers that match the other options, instead of single ones");
  return addWaiting(addFilter(chosen).option("--yes", "do not ask for confirmation")).option(
    "--json",
    "print the outcome as JSON: one object for one tracking-id or mailbox, otherwise an array",
  );
}

export function addWaiting(command: Command): Command {
  return command
    .option("--no-wait", "do not wait for the outcome")
    .option(
      "--timeout <time>",
      "how long to wait for the outcome, such as 30s or 1h (default: 5m)",
      duration,
    );
}

/** Throws `ORDER_IMPOSSIBLE` if neither ids nor `--all` are given, or both are. */
export function demandChoice(ids: readonly string[], { all, ...options }: ActOptions): void {
  const { mailbox: _mailbox, ...others } = filterOf(options);
  const isFiltered = Object.values(others).some((it) => it !== undefined);
  if (ids.length > 0 && all) throw impossible("name transfers, or use --all");
  if (ids.length === 0 && !all) {
    throw impossible(isFiltered ? "add --all to act on all that match" : "name a transfer, or use --all");
  }
  if (ids.length > 0 && isFiltered)
    throw impossible("--sender, --state, --reason, --text and --since need --all");
}

/** The transfers that ids or options name. Throws `NO_SUCH_TRANSFER`, and `ORDER_IMPOSSIBLE` if a mailbox has to be chosen. */
export async function chooseTransfers(
  access: Operate,
  act: TransferAct,
  ids: readonly string[],
  options: ActOptions,
): Promise<TransferView[]> {
  // A password, or one more attempt, is for each mailbox that received the transfer.
  const takesAll = act === "password" || act === "grant";
  // The daemon reports damaged records, and so does doctor.
  if (options.all) return Array.fromAsync(access.all({ ...filterOf(options), act }, () => {}));
  const chosen = new Set(ids).values().map((id) => find(access, id, options.mailbox, takesAll));
  return (await Array.fromAsync(chosen)).flat();
}

/** Throws as `chooseTransfers` does. */
export async function findStory(access: Operate, id: string, mailbox: string | undefined): Promise<Story> {
  const [found] = await find(access, id, mailbox);
  const story = found && (await access.story(found));
  // Retention may have removed its records meanwhile.
  if (story === undefined) throw new Fault("NO_SUCH_TRANSFER", { detail: JSON.stringify(id) });
  return story;
}

async function find(
  access: Operate,
  trackingId: string,
  mailbox: string | undefined,
  takesAll = false,
): Promise<TransferView[]> {
  const found = await access.find(trackingId, mailbox);
  if (found.length === 0) {
    const where = mailbox === undefined ? "" : ` in the mailbox ${mailbox}`;
    throw new Fault("NO_SUCH_TRANSFER", { detail: `${JSON.stringify(trackingId)}${where}` });
  }
  if (found.length > 1 && !takesAll) {
    const several = found.map((it) => it.mailbox).join(", ");
    throw impossible(`${several} received it: choose one with --mailbox`);
  }
  return found;
}

/**
 * Asks with `warning` for one transfer, and with a number for several. Says so where nothing is to be done. Throws
 * `ORDER_IMPOSSIBLE` without a terminal.
 */
export async function isConfirmed(
  context: Context,
  verb: string,
  transfers: readonly TransferView[],
  { yes, all }: ActOptions,
  warning?: string,
): Promise<boolean> {
  if (transfers.length === 0) {
    say(context, "No transfer matches.");
    return false;
  }
  const needsYes = warning !== undefined || all === true;
  // A transfer that is gone has no content to lose.
  const isHarmless = !all && transfers.every(({ state }) => state === "gone");
  if (!needsYes || yes || isHarmless) return true;
  if (!canAsk(context)) throw impossible("no terminal to confirm on: add --yes");
  for (const { trackingId, mailbox, sender, state, message } of transfers.slice(0, MAX_SHOWN)) {
    const why = message === null ? "" : `: ${message}`;
    say(context, `${trackingId} from ${sender} for ${mailbox}, ${state}${why}`);
  }
  if (transfers.length > MAX_SHOWN) say(context, `… and ${transfers.length - MAX_SHOWN} more`);
  const ofMany = `${verb} ${formatCount(transfers.length, "transfer", "transfers")}?`;
  const ofOne = transfers.length === 1 && warning && `${warning} ${verb}?`;
  const isYes = await askYesNo(context, ofOne || ofMany, false);
  if (!isYes) say(context, "Nothing was changed.");
  return isYes;
}

/** Acts, and shows on one line of a terminal how far it is. */
export async function perform(
  context: Context,
  access: Operate,
  request: Omit<ActRequest, "isAwaited">,
  { wait = true, timeout = DEFAULT_TIMEOUT_MS }: ActOptions,
): Promise<ActResult[]> {
  const { stderr, stop } = context;
  const count = request.transfers.length;
  const show = (id: string, state: string) => {
    const what = count === 1 ? state : `${count} transfers, ${id} ${state}`;
    if (stderr.isTTY) redrawLine(stderr, printable(`Waiting for the outcome (${what})`));
  };
  // For several: "3 transfers, now ordered".
  show("now", "ordered");
  try {
    const given = { ...request, isAwaited: wait };
    const onResult = ({ trackingId, state = "" }: ActResult) => show(trackingId, state);
    const results = await access.act(given, operatorOf(context), timeout, onResult);
    if (stop.aborted) throw new Fault("STOPPED", { detail: "the order is kept" });
    return results;
  } finally {
    if (stderr.isTTY) redrawLine(stderr, "");
  }
}

/** Prints the results. */
export function report(
  context: Context,
  results: readonly ActResult[],
  options: ActOptions,
  isOne: boolean,
): Outcome {
  if (options.json) printJson(context, isOne && results.length === 1 ? results[0] : results);
  else for (const line of describeResults(results)) say(context, line);
  return outcomeOfResults(results);
}

/** A refused act has the exit code of an impossible one. */
export function outcomeOfResults(results: readonly Pick<ActResult, "result">[]): Outcome {
  const has = (result: ActResult["result"]) => results.some((it) => it.result === result);
  if (has("attention")) return "attention";
  if (has("pending")) return "unreachable";
  return has("refused") ? "usage" : "fine";
}

/** With their mailboxes where one tracking-id has several results. What holds for many is said once. */
function describeResults(results: readonly ActResult[]): string[] {
  const ids = Map.groupBy(results, ({ trackingId }) => trackingId);
  const texts = results.map(({ mailbox, trackingId, text }) =>
    (ids.get(trackingId)?.length ?? 0) > 1 ? `${mailbox}: ${text}` : text,
  );
  const groups = Map.groupBy(texts, (text) => text);
  return [...groups].map(([text, all]) => (all.length === 1 ? text : `${all.length} transfers: ${text}`));
}

export function impossible(detail: string): Fault {
  return new Fault("ORDER_IMPOSSIBLE", { detail });
}

/** The operator, for the journal. Root is named by the user who became root with sudo, where that is known. */
export function operatorOf({ env }: Pick<Context, "env">): Actor {
  const user = nameOfUser();
  const { SUDO_USER: sudoer } = env;
  const isRoot = process.getuid?.() === 0;
  const who = isRoot && sudoer !== undefined && sudoer !== "" ? `${sudoer} (sudo)` : user;
  return actorOf(who, hostname());
}
