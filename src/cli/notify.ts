/** `notify test`: sends a test message through each entry of `notify`. */
import type { Command } from "commander";
import { systemClock } from "../base/clock.ts";
import { asFault } from "../base/faults.ts";
import { loadSettings } from "../config/load.ts";
import { type ChannelSettings, describeChannel } from "../model/notify.ts";
import { formatMessage, type MessageOrigin } from "../notify/message.ts";
import { sendMessage } from "../notify/send.ts";
import { describeDaemon } from "../operate/facts.ts";
import { addExitCodes, type Context, invalid, type Outcome, outcomeOfFault, type Runner } from "./command.ts";
import { addUnit } from "./in-unit.ts";
import { addConfig, type CommonOptions, wholeNumber } from "./options.ts";
import { printFinding, printJson } from "./printing.ts";

const MAX_ENTRIES = 1_000;

const HELP = `
Quiet hours do not apply. It reads the same secrets as the daemon: run it as the daemon's user, or as root with --unit.

  inlet notify test --to 2`;

export function define(notify: Command, run: Runner): void {
  const test = notify.command("test").description("send a test message through each entry of notify");
  addConfig(test)
    .option("--to <number>", "only this entry of notify, counted from 1", wholeNumber(1, MAX_ENTRIES))
    .option("--json", "print the results as JSON")
    .addHelpText("after", HELP)
    .action(run(addUnit(test, testAll)));
  addExitCodes(test, {
    fine: "all messages were accepted",
    usage: "the configuration has to change: a login, certificate or address was refused",
    unreachable: "a server cannot be reached, or does not accept the message now",
  });
}

type TestOptions = CommonOptions & { readonly to?: number };

async function testAll(context: Context, { config: path, to, json }: TestOptions): Promise<Outcome> {
  const settings = await loadSettings({ env: context.env, path });
  const { notify = [], mailboxes } = settings;
  if (notify.length === 0) throw invalid("notify is not configured: add an entry with mail or webhook");
  if (to !== undefined && to > notify.length)
    throw invalid(`notify has no entry ${to}: it has ${notify.length}`);
  const { host, inbox, program, config } = describeDaemon(settings);
  const hasSeveralMailboxes = mailboxes.length > 1;
  const place = { console: settings.http?.publicUrl, zone: settings.timezone };
  const origin = { host, inbox, version: program, config, hasSeveralMailboxes, ...place };
  const chosen = [...notify.entries()].filter(([at]) => to === undefined || at === to - 1);
  const results: Awaited<ReturnType<typeof testOne>>[] = [];
  for (const [at, entry] of chosen) {
    const result = await testOne(at + 1, entry, origin, context.stop);
    results.push(result);
    const { number, status, channel, detail, advice } = result;
    const cells = [status, String(number), channel, detail] as const;
    const colour = status === "ok" ? "green" : "red";
    if (!json) printFinding(context, colour, cells, `${number}. ${channel}: ${detail}`, advice);
  }
  if (json) printJson(context, results);
  const failed = results.filter(({ status }) => status === "failed");
  if (failed.length === 0) return "fine";
  return failed.every(({ code }) => code && outcomeOfFault({ code }) === "unreachable")
    ? "unreachable"
    : "usage";
}

async function testOne(
  number: number,
  { channel }: ChannelSettings,
  origin: MessageOrigin,
  stop: AbortSignal,
) {
  const nowMs = systemClock.now();
  const message = formatMessage([], origin, nowMs, true);
  const facts = { number, channel: describeChannel(channel) };
  try {
    const { answer, refused } = await sendMessage(channel, message, `inlet-test-${nowMs}`, systemClock, stop);
    if (refused !== undefined) throw refused;
    return { ...facts, advice: undefined, code: undefined, status: "ok", detail: answer } as const;
  } catch (error) {
    const { code, message: detail, advice } = asFault(error);
    if (code === "STOPPED" || code === "UNEXPECTED") throw error;
    return { ...facts, advice, code, status: "failed", detail } as const;
  }
}
