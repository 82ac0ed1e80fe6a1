/**
 * The text of a message. Senders and servers choose parts of it. These parts stay out of the subject, their control and
 * invisible characters are spelt out, and their links cannot be clicked.
 */
import { type ChatLink, formatChat } from "../base/chat.ts";
import {
  escapeJson,
  formatCount,
  formatMoment,
  localizeTimes,
  neutralize,
  outputLines,
  printable,
  zoneName,
} from "../base/phrases.ts";
import type { WebhookFormat } from "../base/signed-post.ts";
import type { NoticeKind } from "../model/notify.ts";
import { type Action, commandFor, quote } from "../model/order.ts";
import { pageOf } from "../model/record.ts";
import type { Notice } from "./notices.ts";

/** Notices that are shown of each kind. */
const MAX_SHOWN = 20;
/** Mailboxes that are named of a service that fails. */
const MAX_NAMED = 20;
/** Kinds that the subject names. */
const MAX_IN_SUBJECT = 2;
const BODY_VERSION = 1;

/** The daemon that a message comes from. */
export interface MessageOrigin {
  readonly host: string;
  readonly inbox: string;
  readonly version: string;
  /** The value of `--config` that commands need, if they need it. */
  readonly config: string | undefined;
  readonly hasSeveralMailboxes: boolean;
  /** The address of the console, without a slash at its end; `undefined`: there is none to link to. */
  readonly console: string | undefined;
  /** The time zone of mails; `undefined`: the machine's. */
  readonly zone: string | undefined;
}

export interface Message {
  readonly subject: string;
  readonly text: string;
  /** JSON for a webhook. */
  body(id: string, format: WebhookFormat): string;
}

/** Notices of one kind: open ones, or ended troubles. */
interface NoticeGroup {
  readonly kind: NoticeKind;
  readonly isOver: boolean;
  readonly count: number;
  /** The first that have details. */
  readonly shown: readonly Notice[];
}

/** For one, and for many; only one if it happens to the daemon as a whole, and is not counted. */
type Title = readonly [one: string, many?: string];

interface Words {
  readonly title: Title;
  /** The title when the trouble is over. */
  readonly over?: Title;
  readonly todo: string;
  /** The command for each transfer, or for each mailbox. */
  readonly command?: Action | "password" | "show" | "verify-address";
  /** The command that lists all of this kind; missing: `status`. */
  readonly list?: string;
}

const WORDS: Readonly<Record<NoticeKind, Words>> = {
  password: {
    title: ["transfer needs a password", "transfers need a password"],
    todo: "Ask the sender for the password, then supply it with the command.",
    command: "password",
    list: "list --state waiting",
  },
  quarantined: {
    title: ["transfer is in quarantine", "transfers are in quarantine"],
    todo: "Run inlet show to see what is wrong. Then use inlet retry, inlet release or inlet discard.",
    command: "show",
    list: "list --state quarantined",
  },
  expiring: {
    title: ["transfer expires soon", "transfers expire soon"],
    todo: "Not delivered yet, and the service deletes what has expired. inlet show says why a transfer waits.",
    command: "show",
    list: "list",
  },
  gone: {
    title: ["transfer is gone", "transfers are gone"],
    todo: "Nothing was delivered. Ask the sender to send it again.",
    list: "list --state gone",
  },
  refused: {
    title: ["transfer cannot be delivered", "transfers cannot be delivered"],
    todo: "inlet status says why. Correct the cause, then use inlet retry for each transfer.",
    command: "retry",
    list: "list --state waiting",
  },
  held: {
    title: ["transfer is held", "transfers are held"],
    todo: "A route of the mailbox says so. Deliver it with inlet release, or drop it with inlet discard.",
    command: "show",
    list: "list --reason held",
  },
  overdue: {
    title: ["expected transfer did not arrive", "expected transfers did not arrive"],
    over: ["expected transfer arrived late", "expected transfers arrived late"],
    todo: "Ask the sender.",
  },
  "not-picked-up": {
    title: ["delivered folder was not picked up", "delivered folders were not picked up"],
    todo: "Check the program that picks folders up.",
    list: "list --state delivered",
  },
  handoff: {
    title: ["hand-off fails", "hand-offs fail"],
    over: ["hand-off works again", "hand-offs work again"],
    todo: "Correct the command or the receiver. Inlet retries by itself for three days. To retry now, or after that, use inlet retry.",
    command: "retry",
  },
  service: {
    title: ["service fails", "services fail"],
    over: ["service works again", "services work again"],
    todo: "Run inlet doctor: it checks the service and each mailbox.",
  },
  verification: {
    title: ["address has to be verified again", "addresses have to be verified again"],
    todo: "The service mails a code to the address. Type it after the command.",
    command: "verify-address",
  },
  disk: {
    title: ["a disk cannot be used"],
    over: ["the disk can be used again"],
    todo: "Inlet continues by itself when the disk can be used again.",
  },
  queue: {
    title: ["the queue does not work"],
    over: ["the queue works again"],
    todo: "Bring Redis back. Work then resumes.",
  },
  stalled: {
    title: ["piece of work is late", "pieces of work are late"],
    over: ["piece of work is no longer late", "pieces of work are no longer late"],
    todo: "Inlet should have done it by now, and has not. inlet status and the log say more.",
  },
  configuration: {
    title: ["a changed configuration was refused"],
    over: ["the configuration is valid again"],
    todo: "Correct the file. The old settings stay in force until then.",
  },
};

/** `isTest`: there are no notices. */
export function formatMessage(
  notices: readonly Notice[],
  origin: MessageOrigin,
  atMs: number,
  isTest = false,
): Message {
  const groups = groupsOf(notices);
  const titles = groups.map(titleOf);
  const named = titles.slice(0, MAX_IN_SUBJECT).join(", ");
  const more = titles.length > MAX_IN_SUBJECT ? ` and ${titles.length - MAX_IN_SUBJECT} more` : "";
  const summary = isTest ? "a test of its notifications" : `${named}${more}`;
  const subject = `[inlet ${printable(origin.host)}] ${summary}`;
  const textFor = (from: MessageOrigin) =>
    isTest
      ? "This is a test. Notifications arrive here."
      : groups.map((group) => formatGroup(group, from)).join("\n\n");
  return {
    subject,
    text: `${textFor(origin)}\n\n${formatFooter(origin)}\n`,
    body(id, format) {
      if (format === "inlet") {
        const event = isTest ? "test" : "notification";
        return formatBody({ event, id, at: new Date(atMs).toISOString() }, summary, groups, origin);
      }
      // Here links have their own place.
      const from = { ...origin, console: undefined };
      const links = linksOf(groups, origin);
      return formatChat(format, { title: subject, text: textFor(from), footer: formatFooter(from), links });
    },
  };
}

/** Ended troubles follow after everything that is open. */
function groupsOf(notices: readonly Notice[]): NoticeGroup[] {
  return [false, true].flatMap((isOver) => {
    const some = notices.filter((it) => (it.isOver ?? false) === isOver);
    return [...Map.groupBy(some, ({ kind }) => kind)].map(([kind, all]) => {
      const detailed = all.filter(({ isTrouble, mailbox }) => isTrouble || mailbox !== undefined);
      return { kind, isOver, count: all.length, shown: detailed.slice(0, MAX_SHOWN) };
    });
  });
}

/** The console, and the pages of the transfers. */
function linksOf(groups: readonly NoticeGroup[], origin: MessageOrigin): ChatLink[] {
  const open = groups.filter(({ isOver }) => !isOver).flatMap(({ shown }) => shown);
  const links = open.map((notice) => ({ label: notice.trackingId ?? "", url: linkTo(notice, origin) ?? "" }));
  const all = [{ label: "Console", url: origin.console ?? "" }, ...links];
  return all.filter(({ url }) => url !== "");
}

function titleOf({ kind, isOver, count, shown: [first] }: NoticeGroup): string {
  const { title, over = title } = WORDS[kind];
  const [one, many] = isOver ? over : title;
  if (many === undefined) return one;
  if (kind === "service" && count === 1 && first !== undefined && !isOver) return titleOfService(first);
  return formatCount(count, one, many);
}

function titleOfService({ mailboxes = [], service = "" }: Notice): string {
  return `${formatCount(mailboxes.length, "mailbox", "mailboxes")} of ${printable(service)} cannot be polled`;
}

function formatGroup(group: NoticeGroup, origin: MessageOrigin): string {
  const { kind, isOver, count, shown } = group;
  const words = WORDS[kind];
  const left = count - shown.length;
  const list = commandWith(words.list ?? "status", origin);
  const title = titleOf(group);
  const lines = [
    `${title.charAt(0).toUpperCase()}${title.slice(1)}.`,
    ...shown.flatMap((notice) => ["", ...formatNotice(notice, words, origin)]),
    ...(left > 0 ? ["", `  … and ${left} more: ${list}`] : []),
    ...(isOver ? [] : ["", words.todo]),
  ];
  return lines.join("\n");
}

function formatNotice(notice: Notice, { command }: Words, origin: MessageOrigin): string[] {
  const { trackingId, text = "", advice = "", output, isOver } = notice;
  const { zone } = origin;
  const head = headOf(notice, zone);
  const link = linkTo(notice, origin);
  // The record's message quotes the command without options. The complete command follows on its own line.
  const short = command === undefined ? "" : commandFor(command, trackingId ?? "");
  const shownText = short === "" ? text : text.replaceAll(short, () => `inlet ${command}`);
  const detail = (line: string) => (line === "" ? [] : [`    ${neutralize(localizeTimes(line, zone))}`]);
  const lines = [...(head === "" ? [] : [`  ${head}`]), ...detail(shownText)];
  if (isOver) return lines;
  return [
    ...lines,
    ...detail(advice),
    ...(output === undefined ? [] : formatOutput(output)),
    ...(command === undefined ? [] : formatCommand(command, notice, origin)),
    ...(link === undefined ? [] : [`      ${link}`]),
  ];
}

/** The page of a transfer in the console. */
function linkTo({ mailbox = "", trackingId }: Notice, origin: MessageOrigin): string | undefined {
  if (trackingId === undefined || origin.console === undefined) return undefined;
  return pageOf(origin.console, { mailbox, trackingId });
}

function formatOutput(output: string): string[] {
  return ["    Its last output:", ...outputLines(output).map((line) => `    | ${neutralize(line)}`)];
}

function formatCommand(
  command: NonNullable<Words["command"]>,
  { mailbox, trackingId }: Notice,
  origin: MessageOrigin,
): string[] {
  const isOfMailbox = command === "verify-address";
  const subject = isOfMailbox ? mailbox : trackingId;
  if (subject === undefined) return [];
  const isNamed = origin.hasSeveralMailboxes && !isOfMailbox;
  const line = commandFor(command, subject, { config: origin.config, ...(isNamed ? { mailbox } : {}) });
  // A tracking-id with characters that are spelt out cannot be copied.
  return [`      ${neutralize(line) === line ? line : commandWith("list", origin)}`];
}

function headOf(notice: Notice, zone: string | undefined): string {
  const { mailbox, trackingId, sender, expires, service, mailboxes = [] } = notice;
  if (service !== undefined) {
    const named = mailboxes.slice(0, MAX_NAMED).map(neutralize).join(", ");
    const more = mailboxes.length > MAX_NAMED ? ` and ${mailboxes.length - MAX_NAMED} more` : "";
    return `${printable(service)}${named === "" ? "" : `: ${named}${more}`}`;
  }
  if (trackingId === undefined) return mailbox === undefined ? "" : `Mailbox ${neutralize(mailbox)}`;
  const from = sender === undefined || sender === "" ? "" : ` from ${neutralize(sender)}`;
  const until = expires === undefined ? "" : `, expires ${neutralize(formatMoment(expires, zone))}`;
  return `${neutralize(trackingId)}${from} to ${neutralize(mailbox ?? "")}${until}`;
}

function commandWith(words: string, { config }: MessageOrigin): string {
  return printable(config === undefined ? `inlet ${words}` : `inlet ${words} --config ${quote(config)}`);
}

function formatFooter(origin: MessageOrigin): string {
  const { host, inbox, version, console: address, zone } = origin;
  const lines = [
    "-- ",
    `Inlet ${version} on ${printable(host)}, inbox ${printable(inbox)}`,
    ...(address === undefined ? [] : [`Console: ${printable(address)}`]),
    `Times are in the zone ${zoneName(zone)}.`,
    `Everything that is open: ${commandWith("status", origin)}`,
  ];
  return lines.join("\n");
}

/** Keys that receivers rely on; docs/operating.md explains them. */
function formatBody(
  head: { readonly event: "test" | "notification"; readonly id: string; readonly at: string },
  summary: string,
  groups: readonly NoticeGroup[],
  origin: MessageOrigin,
): string {
  return escapeJson(
    JSON.stringify({
      version: BODY_VERSION,
      ...head,
      host: origin.host,
      inbox: origin.inbox,
      console: origin.console,
      summary,
      notices: groups.map(({ kind, isOver, count, shown }) => ({
        kind,
        over: isOver,
        count,
        first: shown.map((notice) => {
          const { mailbox, trackingId, sender, expires, text, advice, output, service } = notice;
          const texts = { message: text, advice, output, link: linkTo(notice, origin) };
          const mailboxes = notice.mailboxes?.slice(0, MAX_NAMED);
          return { mailbox, trackingId, sender, expires, ...texts, service, mailboxes };
        }),
      })),
    }),
  );
}
