/** The story of a transfer in words. Commands and pages show the same, each in its own form. */
import { formatSize } from "../base/phrases.ts";
import { isDelivered, STATES, shownFolder } from "../model/record.ts";
import { type HandoffView, type RoundView, type Story, timeOf } from "../model/views.ts";

/** Each way of showing forms times, paths and the output of programs itself. */
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

function isInInbox(story: Story): boolean {
  return isDelivered(story) || story.state === "delivering";
}

/** When it entered each state, in this order. */
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
