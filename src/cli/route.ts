/** `route`: which route a transfer takes, and why. */
import type { Command } from "commander";
import { loadSettings } from "../config/load.ts";
import { findMailbox } from "../config/mailboxes.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { parseSize } from "../config/units.ts";
import type { Routing } from "../model/mailbox.ts";
import { hasEnded } from "../model/record.ts";
import { compareRoutes, decideRoute, type RouteDecision, type RouteFacts } from "../model/route.ts";
import type { Story } from "../model/views.ts";
import { type Context, invalid, type Outcome, type Runner } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import { addConfig, type CommonOptions, demandMailbox, gather, parser } from "./options.ts";
import { findStory } from "./orders.ts";
import { printable, printJson } from "./printing.ts";

interface RouteOptions extends CommonOptions {
  readonly mailbox?: string;
  readonly sender?: string;
  readonly subject?: string;
  readonly recipient?: readonly string[];
  readonly file?: readonly string[];
  readonly size?: number;
}

const HELP = `
It compares a transfer with the routes of its mailbox, as configured now. Nothing is downloaded or changed.

  inlet route A1B2-C3D4
  inlet route --mailbox orders@example.com --sender anna@supplier.example --file invoice.xml --size 2MB`;

export function define(command: Command, run: Runner): void {
  addConfig(command)
    .argument("[tracking-id]", "a known transfer; without one, name a sender")
    .option("--mailbox <name>", "the mailbox, if there are several")
    .option("--sender <address>", "compare with this sender")
    .option("--subject <text>", "compare with this subject")
    .option("--recipient <address>", "compare with this recipient; may be repeated", gather)
    .option("--file <name>", "compare with a file of this name; may be repeated", gather)
    .option("--size <size>", "compare with this size of all files together, such as 2MB", size)
    .option("--json", "print the comparison as JSON")
    .addHelpText("after", HELP)
    .action(run(explain));
}

const size = parser(parseSize, "a size such as 10MiB, 1GB or a number");

/** A transfer that is known, or only described. */
interface Explained {
  readonly mailbox: MailboxSettings;
  readonly facts: RouteFacts;
  readonly story: Story | undefined;
}

async function explain(
  context: Context,
  trackingId: string | undefined,
  options: RouteOptions,
): Promise<Outcome> {
  const { mailbox, facts, story } = await (trackingId === undefined
    ? describeNew(context, options)
    : describeKnown(context, trackingId, options));
  const routing: Routing = mailbox.routing ?? { routes: [], otherwise: "deliver" };
  const compared = await compareRoutes(routing.routes, facts);
  const decision = await decideRoute(routing, facts);
  const by = decision?.route;
  if (options.json) {
    printJson(context, {
      mailbox: mailbox.name,
      trackingId: trackingId ?? null,
      ...facts,
      recorded: story && { route: story.route, because: story.routedBecause, allowedBy: story.allowedBy },
      routes: compared.map(({ route: { name, action }, match, conditions }) => ({
        name,
        action,
        match,
        conditions: conditions.map(({ text }) => text),
      })),
      decision: decision && { route: by?.name ?? null, action: decision.action, because: decision.why },
    });
    return "fine";
  }
  const subject = facts.subject === undefined ? "" : `, subject ${JSON.stringify(facts.subject)}`;
  const lines = [
    `Mailbox ${mailbox.name}, sender ${facts.sender || "unknown"}${subject}`,
    ...(story === undefined ? [] : describeRecorded(story)),
    ...compared.map(({ route, match, conditions }) => {
      const texts = conditions.map(({ text }) => text).join("; ") || "it applies to every transfer";
      return `  ${MATCHES[match].padEnd(3)}  ${route.name} (${route.action}): ${texts}`;
    }),
    describeDecision(decision, mailbox, story),
  ];
  for (const line of lines) context.stdout.write(`${printable(line)}\n`);
  return "fine";
}

const MATCHES = { yes: "yes", no: "no", later: "?", unknown: "?" } as const;

/** As sent and as delivered; `undefined` unless all are known. */
function namesOf({ contents, moreContents }: Story): string[] | undefined {
  return moreContents > 0 ? undefined : contents?.flatMap(({ name, originalName }) => [name, originalName]);
}

async function describeKnown(
  context: Context,
  trackingId: string,
  options: RouteOptions,
): Promise<Explained> {
  const { access, settings } = await openConfigured(context, options);
  const story = await findStory(access, trackingId, options.mailbox);
  const mailbox = settings.mailboxes[findMailbox(settings.mailboxes, story.mailbox)];
  if (mailbox === undefined) throw invalid(`its mailbox ${story.mailbox} is not in the configuration`);
  const facts = {
    sender: options.sender ?? story.sender,
    subject: options.subject ?? story.subject ?? undefined,
    recipients: recipientsOf(options) ?? story.recipients ?? undefined,
    fileNames: options.file ?? namesOf(story),
    bytes: options.size ?? story.bytes ?? undefined,
  };
  return { mailbox, facts, story };
}

async function describeNew({ env }: Context, options: RouteOptions): Promise<Explained> {
  const { mailboxes } = await loadSettings({ env, path: options.config, ignoreSecrets: true });
  const { sender, subject, file, size: bytes } = options;
  if (sender === undefined) throw invalid("name a tracking-id, or a sender with --sender");
  const wanted = options.mailbox ?? (mailboxes.length === 1 ? mailboxes[0]?.name : undefined);
  if (wanted === undefined) throw invalid("name a mailbox with --mailbox");
  const mailbox = demandMailbox(mailboxes, wanted);
  const recipients = recipientsOf(options) ?? { to: [mailbox.email], cc: [] };
  return { mailbox, facts: { sender, subject, recipients, fileNames: file, bytes }, story: undefined };
}

/** Described by a person: there are no others. */
function recipientsOf({ recipient: to }: RouteOptions): RouteFacts["recipients"] {
  return to && { to, cc: [] };
}

function describeDecision(
  decision: RouteDecision | undefined,
  { layout }: MailboxSettings,
  story: Story | undefined,
): string {
  const isOver = story !== undefined && hasEnded(story);
  if (decision === undefined) {
    return isOver
      ? "Today's routes depend on facts that are no longer known."
      : "The decision depends on facts that are known once the transfer is opened.";
  }
  const { route, action } = decision;
  const today = isOver ? "by today's routes: " : "";
  const who = route === undefined ? "no route matches" : `the route ${route.name} decides`;
  const by = `${today}${who}`.replace(/^./, (first) => first.toUpperCase());
  if (decision.doubt !== undefined)
    return `It is unknown whether the route ${decision.doubt} applies: the transfer is held until you release or discard it.`;
  if (action === "hold") return `${by}: it is held, until you release or discard it.`;
  if (action === "ignore") return `${by}: it is left out.`;
  return `${by}: it is delivered to ${route?.layout ?? layout}.`;
}

/** How it was decided at the time, perhaps with other routes. */
function describeRecorded(story: Story): string[] {
  const { route, routedBecause, allowedBy, state } = story;
  const none = hasEnded(story) ? [`It is ${state}, and no route decided that.`] : [];
  const recorded =
    route === null ? none : [`It is ${state}. The route ${route} decided, because ${routedBecause}.`];
  return allowedBy === null ? recorded : [...recorded, `${allowedBy} allowed it, whatever the routes say.`];
}
