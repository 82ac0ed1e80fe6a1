/** `show`: everything known about one transfer. */
import { styleText } from "node:util";
import type { Command } from "commander";
import { formatBytes, outputLines, zoneName } from "../base/phrases.ts";
import { commandOf } from "../model/actions.ts";
import { describeChecksum, describeVerdict, type FileView, type Story } from "../model/views.ts";
import { describeDaemon } from "../operate/facts.ts";
import { type Fact, factsOf, linesOf, type Phrase, timesOf } from "../operate/story.ts";
import type { Context, Outcome, Runner } from "./command.ts";
import { openConfigured } from "./open-access.ts";
import { addConfig, type CommonOptions } from "./options.ts";
import { findStory } from "./orders.ts";
import { formatTime, printable, printJson } from "./printing.ts";

export function define(command: Command, run: Runner): void {
  addConfig(command)
    .argument("<tracking-id>", "the transfer's tracking-id")
    .option("--mailbox <name>", "the mailbox, if several received it")
    .option("--json", "print the transfer as JSON")
    .action(run(show));
}

async function show(
  context: Context,
  trackingId: string,
  options: CommonOptions & { readonly mailbox?: string },
): Promise<Outcome> {
  const { settings, access } = await openConfigured(context, options);
  const { mailbox } = options;
  const known = await findStory(access, trackingId, mailbox);
  // The commands have to work in another shell, which may have another folder and environment.
  const { config } = describeDaemon(settings);
  const story = {
    ...known,
    commands: known.actions.map((act) => commandOf(act, trackingId, { config, mailbox })),
  };
  if (options.json) printJson(context, story);
  else context.stdout.write(`${formatText(context, settings.timezone, story)}\n`);
  return "fine";
}

function formatText(context: Context, timezone: string | undefined, story: Story): string {
  const { stdout } = context;
  const { acts, commands } = story;
  const form = (phrase: Phrase) => formatPhrase(context, timezone, phrase);
  const title = styleText("bold", printable(story.trackingId), { stream: stdout });
  const rounds = story.rounds.flatMap((round) => {
    const [first = "", ...rest] = linesOf(round).flatMap(form);
    return [`  ${round.round}, ${first}`, ...rest.map((line) => `     ${line}`)];
  });
  const operators = acts.map(({ act, who, from, given, at }) => {
    return `  ${form([{ time: given ?? at }])}  ${printable(`${act}, by ${who} from ${from}`)}`;
  });
  const sections = [
    [title, ...formatFacts(factsOf(story), form)],
    ...(story.contents === null ? [] : [["Files:", ...formatFiles(story, story.contents)]]),
    ...(story.contentsProblem === null
      ? []
      : [["Files:", `  not known: ${printable(story.contentsProblem)}`]]),
    [stdout.isTTY ? `Times (${zoneName(timezone)}):` : "Times:", ...formatFacts(timesOf(story), form)],
    ["Rounds:", ...rounds],
    ...(acts.length === 0 ? [] : [["Operators:", ...operators]]),
    commands.length === 0
      ? ["No command applies in this state."]
      : ["Commands that apply now:", ...commands.map((command) => `  ${printable(command)}`)],
  ];
  return sections.map((lines) => lines.join("\n")).join("\n\n");
}

/** The output of a program takes several lines. */
function formatPhrase(context: Context, timezone: string | undefined, phrase: Phrase): string[] {
  const [output] = phrase.flatMap((piece) =>
    typeof piece === "object" && "output" in piece ? piece.output : [],
  );
  if (output !== undefined) return outputLines(output).map((line) => `| ${printable(line)}`);
  const words = phrase.map((piece) => {
    if (typeof piece === "string") return piece;
    if ("time" in piece) return formatTime(context, piece.time, timezone) || "an unknown time";
    return "path" in piece ? piece.path : "";
  });
  return [printable(words.join(""))];
}

function formatFacts(facts: readonly Fact[], form: (phrase: Phrase) => string[]): string[] {
  const width = Math.max(0, ...facts.map(([label]) => label.length));
  return facts.flatMap(([label, value]) =>
    form(value).map((line, at) => `  ${(at === 0 ? label : "").padEnd(width)}  ${line}`),
  );
}

function formatFiles({ moreContents }: Story, files: readonly FileView[]): string[] {
  const lines = files.map((file) => {
    const sent = file.originalName === file.name ? "" : ` (sent as ${file.originalName})`;
    const facts = [formatBytes(file.size), describeVerdict(file), describeChecksum(file)];
    return `  ${printable([`${file.name}${sent}`, ...facts].join(", "))}`;
  });
  return moreContents === 0 ? lines : [...lines, `  … and ${moreContents} more`];
}
