/** Acts of operators on mailboxes: poll now, pause, resume. The same for commands, the console and the API. */
import { systemClock } from "../base/clock.ts";
import { exists } from "../base/durable.ts";
import { actorOf } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import { formatCount } from "../base/phrases.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { describeUnknownMailbox, findMailbox } from "../config/mailboxes.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { type GivenOrder, giveOrder } from "../ledger/orders.ts";
import { createPause, readPauses, removePause, withPauses } from "../ledger/pauses.ts";
import { type Actor, type CommandOptions, commandFor, type MailboxAct } from "../model/order.ts";
import type { ActEntry, MailboxResult } from "../model/views.ts";
import type { ActTools } from "./act.ts";
import { readJournal } from "./history.ts";

export interface MailboxRequest {
  readonly act: MailboxAct;
  /** A name or an address. Missing: every mailbox to which the act applies. */
  readonly mailbox?: string | undefined;
  /** False: the outcome of a poll is not awaited. */
  readonly isAwaited?: boolean;
}

interface MailboxTools extends Pick<ActTools, "work" | "asOwner" | "isRunning" | "runOrders"> {
  readonly by: Actor;
  /** Without operators' pauses. */
  readonly configured: readonly MailboxSettings[];
  readonly options?: CommandOptions | undefined;
}

type Result = Omit<MailboxResult, "mailbox">;

/** Outcomes are looked for this far back: the clocks of a fleet may differ. */
const SPAN_MS = 24 * 60 * 60_000;
const MAX_ACTS = 10_000;
const LOOK_EVERY_MS = 100;

/** Waits for the outcomes of polls until `signal` aborts. Throws `DAEMON_UNREACHABLE` if no daemon can poll. */
export async function actOnMailboxes(
  tools: MailboxTools,
  { act, mailbox, isAwaited = true }: MailboxRequest,
  signal: AbortSignal,
): Promise<MailboxResult[]> {
  const { configured, work } = tools;
  const at = mailbox === undefined ? undefined : findMailbox(configured, mailbox);
  if (mailbox !== undefined && at === -1) {
    const text = `Nothing was done: ${describeUnknownMailbox(configured, mailbox)}.`;
    return [{ mailbox, status: 404, result: "refused", text }];
  }
  const named = at === undefined ? configured : configured.slice(at, at + 1);
  const pauses = await readPauses(work);
  if (act === "poll") return poll(tools, withPauses(named, pauses), isAwaited, signal);
  // Not made here: the first start of a daemon gives the inbox its mode.
  if (!(await exists(work))) throw new Fault("ORDER_IMPOSSIBLE", { detail: `${work} does not exist yet` });
  const results: MailboxResult[] = [];
  const now = new Date(systemClock.now()).toISOString();
  for (const configuration of named) {
    const [current = configuration] = withPauses([configuration], pauses);
    // Without a name, only mailboxes are resumed that an operator has paused.
    if (act === "resume" && at === undefined && current.pause === undefined) continue;
    const change =
      act === "pause" ? pause(tools, current, now) : resume(tools, current, configuration.paused);
    results.push({ mailbox: current.label ?? current.name, ...(await change) });
  }
  await tools.runOrders?.();
  return results;
}

/** The order comes first: the journal lists every pause. */
async function pause(tools: MailboxTools, given: MailboxSettings, now: string): Promise<Result> {
  const { work, asOwner, options, by } = tools;
  const { name: mailbox, label = mailbox } = given;
  if (given.pause !== undefined) return fine(`${label} is already ${describePause(given)}.`);
  await asOwner(work, async () => {
    await giveOrder(work, { action: "pause", mailbox, by });
    await createPause(work, mailbox, by, now);
  });
  return fine(`${label} is paused. To resume it: ${commandFor("resume", label, options)}`);
}

async function resume(
  { work, asOwner, by }: MailboxTools,
  { name: mailbox, label = mailbox, pause: before }: MailboxSettings,
  isPausedInConfiguration: boolean,
): Promise<Result> {
  if (before !== undefined) {
    await asOwner(work, async () => {
      await giveOrder(work, { action: "resume", mailbox, by });
      await removePause(work, mailbox);
    });
  }
  if (!isPausedInConfiguration)
    return fine(before === undefined ? `${label} is not paused.` : `${label} is resumed.`);
  const text = `${label} is paused in the configuration: set paused to false there.`;
  return { status: 409, result: "attention", text };
}

/** Leaves out paused mailboxes. If all are paused, that is the result. */
async function poll(
  tools: MailboxTools,
  given: readonly MailboxSettings[],
  isAwaited: boolean,
  signal: AbortSignal,
): Promise<MailboxResult[]> {
  const active = given.filter(({ paused }) => !paused);
  if (active.length === 0) return given.map((mailbox) => refusePaused(mailbox, tools.options));
  if (!(await tools.isRunning())) {
    const advice = "Start it with inlet run, or receive once with inlet once.";
    throw new Fault("DAEMON_UNREACHABLE", { detail: "no daemon is running", advice });
  }
  const { work, asOwner, by } = tools;
  const orders: ({ readonly mailbox: string } & GivenOrder)[] = [];
  for (const { name, label: mailbox = name } of active) {
    const placed = await asOwner(work, () => giveOrder(work, { action: "poll", mailbox: name, by }));
    orders.push({ mailbox, ...placed });
  }
  await tools.runOrders?.();
  const ordered = { status: 200, result: "given" } as const;
  if (!isAwaited)
    return orders.map(({ mailbox }) => ({ mailbox, ...ordered, text: `${mailbox} will be polled now.` }));
  for (const { path } of orders) {
    while (!signal.aborted && (await exists(path))) await pauseOrAbort(LOOK_EVERY_MS, signal);
  }
  const query = { sinceMs: systemClock.now() - SPAN_MS, limit: MAX_ACTS };
  const { entries } = await readJournal(work, "acts", query);
  const acts = new Map(entries.map((entry) => [entry.id, entry]));
  return orders.map(({ mailbox, id }) => ({ mailbox, status: 200, ...outcomeOf(mailbox, acts.get(id)) }));
}

function outcomeOf(mailbox: string, entry: ActEntry | undefined): Omit<Result, "status"> {
  if (entry === undefined)
    return { result: "pending", text: `The poll of ${mailbox} is not over yet: see inlet status.` };
  const { reason, message, listed = 0, discovered = 0 } = entry;
  if (reason === undefined) {
    const text = `${mailbox}: ${formatCount(listed, "active transfer", "active transfers")}, ${discovered} new.`;
    return { result: "fine", text, listed, discovered };
  }
  const result = actorOf(reason) === "none" ? "pending" : "attention";
  return { result, text: `${mailbox} could not be polled: ${message ?? reason}` };
}

function refusePaused(given: MailboxSettings, options: CommandOptions | undefined): MailboxResult {
  const { name, label: mailbox = name, pause: by } = given;
  const resume = `resume it first: ${commandFor("resume", mailbox, options)}`;
  const advice = by === undefined ? "set paused to false there" : resume;
  const text = `${mailbox} is not polled, because it is ${describePause(given)}: ${advice}`;
  return { mailbox, status: 409, result: "refused", text };
}

function describePause({ pause: by }: MailboxSettings): string {
  return by === undefined ? "paused in the configuration" : `paused by ${by.who} since ${by.at}`;
}

function fine(text: string): Result {
  return { status: 200, result: "fine", text };
}
