/** The questions of `init`, one after the other; each answer is tried out before the next question. */
import { resolve } from "node:path";
import { describeFault, Fault } from "../../base/faults.ts";
import type { Secret } from "../../base/secret.ts";
import { makeClientId } from "../../config/memory.ts";
import type { ServiceSettings } from "../../config/settings.ts";
import { ask, askHidden, askYesNo } from "../asking.ts";
import type { Context } from "../context.ts";
import { Findings } from "../doctor/findings.ts";
import { checkFolder } from "../doctor/folders.ts";
import { say } from "../printing.ts";
import {
  type Answers,
  describeService,
  describeWrongClientId,
  describeWrongEmail,
  describeWrongPath,
  type Given,
  type GivenPassword,
} from "./answers.ts";
import type { Trial } from "./trial.ts";

export async function askForAnswers(context: Context, given: Given, trial: Trial): Promise<Answers> {
  say(context, "A few questions; what stands in brackets counts where you just press Enter.");
  say(context, "");
  const { baseUrl, service } = await askService(context, given, trial);
  const clientId = given.clientId ?? (await askClientId(context));
  const mailboxes = await askMailboxes(context, given, trial, service, clientId.secret);
  const inbox = given.inbox ?? (await askInbox(context));
  const passwords = given.passwords ?? (await askPasswords(context));
  const isAnyToStore = [clientId, ...passwords.map(({ password }) => password)].some(
    ({ file }) => file === undefined,
  );
  const inFiles = given.inFiles ?? (!isAnyToStore || (await askPlace(context)));
  return { baseUrl, ca: given.ca, clientId, mailboxes, inbox, state: given.state, passwords, inFiles };
}

async function askService(
  context: Context,
  { baseUrl: first, ca }: Given,
  trial: Trial,
): Promise<{ baseUrl: string; service: ServiceSettings }> {
  for (let baseUrl = first; ; baseUrl = undefined) {
    baseUrl ??= await ask(context, "Address of the service (what stands before /api)");
    try {
      const service = await describeService(context, { baseUrl, ca });
      const fault = await trial.service(service);
      if (fault === undefined) return { baseUrl, service };
      say(context, `  ${describeFault(fault)}`);
      if (await askYesNo(context, "Use it all the same?", false)) return { baseUrl, service };
    } catch (error) {
      tellInvalid(context, error);
    }
  }
}

async function askClientId(context: Context): Promise<Answers["clientId"]> {
  for (;;) {
    const secret = await askHidden(context, "Client id, which is not shown (Enter: make a new one): ");
    if (secret === undefined) return { secret: makeClientId() };
    const wrong = describeWrongClientId(secret);
    if (wrong === undefined) return { secret };
    say(context, `  ${wrong}`);
  }
}

async function askMailboxes(
  context: Context,
  { mailboxes: given }: Given,
  trial: Trial,
  service: ServiceSettings,
  clientId: Secret,
): Promise<readonly string[]> {
  const mailboxes: string[] = [];
  const add = async (email: string) => {
    const fault = await trial.mailbox(service, clientId, email);
    if (fault !== undefined) say(context, `  ${describeFault(fault)}`);
    mailboxes.push(email);
  };
  for (const email of given ?? []) await add(email);
  if (given !== undefined) return mailboxes;
  for (;;) {
    const isFirst = mailboxes.length === 0;
    const email = await ask(
      context,
      isFirst ? "Mailbox: the address whose transfers are collected" : "Another mailbox (Enter: no more)",
    );
    if (email === "" && !isFirst) return mailboxes;
    const wrong = mailboxes.includes(email) ? "You have named it already" : describeWrongEmail(email);
    if (wrong === undefined) await add(email);
    else say(context, `  ${wrong}.`);
  }
}

async function askInbox(context: Context): Promise<string> {
  for (;;) {
    const inbox = await ask(context, "Inbox: the folder in which finished transfers appear", "/srv/inbox");
    const wrong = describeWrongPath(inbox);
    if (wrong !== undefined) {
      say(context, `  ${wrong}.`);
      continue;
    }
    const findings = new Findings(({ detail, advice }) =>
      say(context, `  ${[detail, advice].filter(Boolean).join(". ")}`),
    );
    const isUsable = (await checkFolder(findings, "inbox", resolve(inbox))) !== undefined;
    if (isUsable || (await askYesNo(context, "Use it all the same?", false))) return resolve(inbox);
  }
}

async function askPasswords(context: Context): Promise<GivenPassword[]> {
  say(
    context,
    "Passwords of transfers can be stored here by sender, or be supplied later, each by itself ('inlet password').",
  );
  const passwords: GivenPassword[] = [];
  for (;;) {
    const more = passwords.length === 0 ? "none" : "no more";
    const sender = await ask(context, `Sender, such as *@supplier.example (Enter: ${more})`);
    if (sender === "") return passwords;
    const secret = await askTwice(context, `Password of transfers from ${sender}, which is not shown: `);
    if (secret !== undefined) passwords.push({ sender, password: { secret } });
  }
}

/** A mistyped password would cost attempts, and too many wrong ones destroy a transfer. */
async function askTwice(context: Context, question: string): Promise<Secret | undefined> {
  for (;;) {
    const first = await askHidden(context, question);
    if (first === undefined) return undefined;
    const second = await askHidden(context, "The same once more: ");
    if (first.reveal() === second?.reveal()) return first;
    say(context, "  The two differ.");
  }
}

async function askPlace(context: Context): Promise<boolean> {
  return askYesNo(context, "Keep secrets in files of their own, rather than in the configuration?", true);
}

/** What is wrong with the address is told in its own words; anything else was given beforehand, and ends it. */
function tellInvalid(context: Context, error: unknown): void {
  const [, wrong] = error instanceof Fault ? (/service\.baseUrl: (.*)$/s.exec(error.message) ?? []) : [];
  if (wrong === undefined) throw error;
  say(context, `  ${wrong}.`);
}
