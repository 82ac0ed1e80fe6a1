/** Reads all that `inlet show` and the console show about one transfer, and puts it in words. */
import { formatSize } from "../base/phrases.ts";
import { listOrders } from "../ledger/orders.ts";
import { nameOf } from "../ledger/paths.ts";
import { type PeekedFolders, peekLedger } from "../ledger/peek.ts";
import { actionsFor, commandOf } from "../model/actions.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { CommandOptions } from "../model/order.ts";
import {
  isDelivered,
  isIncluded,
  STATES,
  shownFolder,
  type TransferKey,
  type TransferRecord,
} from "../model/record.ts";
import { type ActEntry, type HandoffView, type RoundView, type Story, timeOf } from "../model/views.ts";
import { readJournal } from "./history.ts";
import { formatTransfer, type MailboxFacts } from "./list.ts";

/** `undefined` for an unknown transfer. Its mailbox need not be configured. Throws `DISK_UNREADABLE` and `RECORD_UNREADABLE`. */
export async function readStory(
  settings: PeekedFolders & { readonly mailboxes: readonly MailboxFacts[] },
  key: TransferKey,
  options: CommandOptions = {},
): Promise<Story | undefined> {
  const mailbox = mailboxOf(settings.mailboxes, key);
  const description = await peekLedger(settings).describe(key, mailbox?.passwordAttempts);
  if (description === undefined) return undefined;
  const { record, rounds, staged, kept, files, passwords } = description;
  const actions = actionsFor(record, {
    isExhausted: record.password?.isExhausted === true,
    isHandedOver: rounds.at(-1)?.ended?.handoff?.progress !== "open",
    isConfigured: mailbox !== undefined,
  });
  return {
    ...formatTransfer(record, passwords?.spent),
    passwordAttempts: passwords?.allowed ?? null,
    attempts: record.attempts,
    acknowledged: record.acknowledged ?? false,
    recipients: record.recipients ?? null,
    securityMode: record.securityMode || null,
    passwordMode: record.passwordMode ?? null,
    routedBecause: record.routedBecause ?? null,
    allowedBy: record.allowedBy ?? null,
    rounds,
    staged,
    kept: kept ?? null,
    acts: await actsOn(settings.work, record),
    orders: await ordersFor(settings.work, record),
    output: record.output ?? null,
    ...files,
    actions,
    commands: actions.map((act) => commandOf(act, record.trackingId, options)),
  };
}

/** Of more acts, only the newest are shown. */
const MAX_ACTS = 100;

/** Oldest first. */
async function actsOn(work: string, record: TransferRecord): Promise<ActEntry[]> {
  const { discovered } = record.at;
  const sinceMs = discovered === undefined ? undefined : Date.parse(discovered);
  const query = { transfer: record, sinceMs, limit: MAX_ACTS };
  // `inlet history` reports damaged lines.
  return (await readJournal(work, "acts", query)).entries.toReversed();
}

/** Orders that are not carried out yet, without supplied passwords, which are not in the work folder. */
async function ordersFor(work: string, record: TransferRecord): Promise<Story["orders"]> {
  const given = await listOrders(work);
  return given.flatMap(({ order, number }) => {
    if (order.trackingId === undefined || nameOf(order) !== nameOf(record)) return [];
    if (isIncluded(number, record)) return [];
    const act = "grants" in order && order.grants !== undefined ? "grant" : order.action;
    return [{ act, ...order.by, at: order.at }];
  });
}

/** The command and the console format times, paths and the output of programs differently. */
type Piece = string | { readonly time: string } | { readonly path: string } | { readonly output: string };

export type Phrase = readonly Piece[];

export type Fact = readonly [label: string, value: Phrase];

/** What is known; a fact that is not known is missing. */
export function factsOf(story: Story): Fact[] {
  const { state, reason, message, output, until, expires, route, allowedBy, released } = story;
  const { passwordsSpent, passwordAttempts, folder, inbox, kept, verified } = story;
  const size = formatSize(story);
  const facts: (Fact | false)[] = [
    ["Mailbox", [story.mailbox]],
    ["Sender", [story.sender]],
    ...addresseesOf(story),
    story.subject !== null && ["Subject", [story.subject]],
    size !== "" && ["Content", [size]],
    ["Transfer ID", [story.transferId]],
    ["State", [state, reason === null ? "" : ` (${reason})`, ", since ", { time: timeOf(story) }]],
    message !== null && ["Message", [message]],
    output !== null && ["Check says", [{ output }]],
    ...story.orders.map(({ act, who, at }): Fact => {
      return ["Ordered", [`${act}, by ${who}, `, { time: at }, "; not carried out yet"]];
    }),
    until !== null && ["Waits until", [{ time: until }]],
    expires !== null && ["Expires", [{ time: expires }]],
    route !== null && ["Route", [`${route}, because ${story.routedBecause}`]],
    allowedBy !== null && ["Allowed", [`by ${allowedBy}, whatever the routes say`]],
    folder !== null && isInInbox(story) && ["Folder", [{ path: shownFolder({ folder, inbox }) }]],
    verified !== null && ["Verified", [verified]],
    released !== null && [
      "Released",
      [`by ${released.by}, `, { time: released.at }, `, despite ${released.reason}`],
    ],
    passwordsSpent !== null && [
      "Passwords",
      [`${passwordsSpent} of ${passwordAttempts ?? "an unknown number of"} attempts spent`],
    ],
    ["Attempts", [`${story.attempts} started in this round`]],
    kept !== null && ["Quarantine", [{ path: kept }]],
    ...story.staged.map((path): Fact => ["Staged in", [{ path }]]),
    story.acknowledged && ["Acknowledged", ["yes, by an operator"]],
  ];
  return facts.filter((fact) => fact !== false);
}

/** To whom it was sent, and how it was protected. */
function addresseesOf({ recipients, securityMode, passwordMode }: Story): Fact[] {
  const { to, cc, more = 0 } = recipients ?? {};
  const others = more > 0 ? [`${more} more`] : [];
  const describe = (all: readonly string[] | undefined) =>
    all === undefined ? "not known" : all.join(", ") || "nobody";
  const protection = [securityMode, passwordMode && `password ${passwordMode}`].filter(Boolean).join(", ");
  return [
    ["To", [[describe(to), ...others].join(", ")]],
    ["Copies to", [describe(cc)]],
    ["Protection", [protection || "not known"]],
  ];
}

function isInInbox(story: Story): boolean {
  return isDelivered(story) || story.state === "delivering";
}

/** When it entered each state, oldest first. */
export function timesOf(story: Story): Fact[] {
  const times = STATES.flatMap((state) => {
    const time = story.at[state];
    return time === undefined ? [] : [[state, time] as const];
  });
  return times
    .toSorted(([, one], [, other]) => Date.parse(one) - Date.parse(other))
    .map(([state, time]) => [state, [{ time }]]);
}

/** Without the number of the round. */
export function linesOf({ begun, ended }: RoundView): Phrase[] {
  const lines: Phrase[] = [
    begun === undefined ? ["discovered"] : [`${begun.why} by ${begun.by}, `, { time: begun.at }],
  ];
  if (ended === undefined) return [...lines, ["open"]];
  const { outcome, at, reason, message, folder, inbox, verified, released, isPlaced, handoff } = ended;
  lines.push([
    `${outcome}${reason === undefined ? "" : ` (${reason})`}`,
    ...(at === undefined ? [] : [", ", { time: at }]),
  ]);
  if (message !== undefined) lines.push([message]);
  if (folder !== undefined && outcome === "delivered")
    lines.push(["folder ", { path: shownFolder({ folder, inbox }) }]);
  if (verified !== undefined) lines.push([`verified: ${verified}`]);
  if (released !== undefined) lines.push([`released by ${released.by}, despite ${released.reason}`]);
  if (!isPlaced) lines.push(["its content has not been moved yet"]);
  if (handoff !== undefined) lines.push(...handoffLines(handoff));
  return lines;
}

function handoffLines({ progress, failed = [], pickedUpAt }: HandoffView): Phrase[] {
  const lines: Phrase[] = [];
  if (progress === "open" && failed.length === 0) lines.push(["a command or webhook is pending"]);
  for (const { step, message, output, nextAt } of failed) {
    const next: Phrase = nextAt === undefined ? ["given up"] : ["next try ", { time: nextAt }];
    lines.push([`${step}, `, ...next, `: ${message}`], ...(output === undefined ? [] : [[{ output }]]));
  }
  if (progress === "waiting") lines.push(["not picked up yet"]);
  if (pickedUpAt !== undefined) lines.push(["picked up, ", { time: pickedUpAt }]);
  return lines;
}
