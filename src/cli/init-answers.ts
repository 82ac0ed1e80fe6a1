/** The answers that `init` needs, from options, environment or questions. Those about the service are tried on it. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { exists } from "../base/durable.ts";
import { describeFault, Fault, withAdvice } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { showValue } from "../config/draft.ts";
import { loadService } from "../config/load.ts";
import { SCHEMA } from "../config/schema.ts";
import { PATH } from "../config/schema-nodes.ts";
import { describeWrongClientId } from "../config/service.ts";
import type { ServiceSettings } from "../config/settings.ts";
import { makeClientId } from "../host/memory.ts";
import type { ServicePort } from "../service/port.ts";
import { ask, askHidden, askYesNo, readSecret } from "./asking.ts";
import { canPoll, formatVersions, openClient } from "./client.ts";
import { type Context, invalid, outcomeOfFault } from "./command.ts";
import type { CommonOptions } from "./options.ts";
import { say } from "./printing.ts";

/** A secret to store, unless a `file` holds it already. */
export interface GivenSecret {
  readonly secret: Secret;
  readonly file?: string;
}

interface GivenPassword {
  readonly sender: string;
  readonly password: GivenSecret;
}

export interface Answers {
  readonly baseUrl: string;
  readonly ca: string | undefined;
  readonly clientId: GivenSecret;
  readonly mailboxes: readonly string[];
  /** Addresses whose client id is not registered yet. */
  readonly unregistered: readonly string[];
  readonly inbox: string;
  readonly state: string | undefined;
  readonly passwords: readonly GivenPassword[];
}

export interface InitOptions extends CommonOptions {
  readonly baseUrl?: string | undefined;
  readonly clientIdFile?: string;
  readonly mailbox?: readonly string[];
  readonly inbox?: string | undefined;
  readonly state?: string;
  readonly ca?: string;
  readonly passwordFile?: readonly string[];
  /** Commander's name for `--no-test`. */
  readonly test?: boolean;
  readonly yes?: boolean;
  readonly force?: boolean;
}

interface Interview {
  readonly context: Context;
  readonly options: InitOptions;
  /** Otherwise the options have to be complete. */
  readonly isAsking: boolean;
}

/** `keptId`: the file in which an earlier call may have left a client id. Throws `CONFIG_INVALID` for a wrong option. */
export async function findAnswers(
  context: Context,
  options: InitOptions,
  isAsking: boolean,
  keptId: string,
): Promise<Answers> {
  demandSound(options, isAsking);
  const ownId = await readClientId(context, options, keptId);
  const ownPasswords = (options.passwordFile ?? []).map((rule) => readPassword(context, rule));
  const passwords = await Promise.all(ownPasswords);
  if (isAsking) say(context, "Press Enter to accept the answer in brackets.");
  const interview = { context, options, isAsking };
  const ca = options.ca && resolve(options.ca);
  const { baseUrl, settings } = await findService(interview, ca);
  const newId = isAsking && ownId === undefined ? await askClientId(context) : undefined;
  const clientId = ownId ?? { secret: newId ?? makeClientId() };
  const mailboxes = await findMailboxes(interview, settings, clientId.secret);
  const inbox = resolve(options.inbox ?? (await askInbox(context)));
  if (isAsking && passwords.length === 0) passwords.push(...(await askPasswords(context)));
  const state = options.state && resolve(options.state);
  return { ...mailboxes, baseUrl, ca, clientId, inbox, state, passwords };
}

/** Throws `CONFIG_INVALID`. */
function demandSound({ baseUrl, mailbox, inbox, state, ca, yes }: InitOptions, isAsking: boolean): void {
  const needed = { "--base-url": baseUrl, "--mailbox": mailbox, "--inbox": inbox, "--yes": yes };
  const missing = Object.entries(needed).flatMap(([option, value]) => (value === undefined ? option : []));
  const why = yes ? "--yes asks no questions" : "no terminal to ask on";
  if (!isAsking && missing.length > 0) throw invalid(`${why}: add ${missing.join(", ")}`);
  const paths = [inbox, state, ca].filter((path) => path !== undefined);
  const [wrong] = [...(mailbox ?? []).map(describeWrongEmail), ...paths.map(describeWrongPath)].filter(
    Boolean,
  );
  if (wrong !== undefined) throw invalid(wrong);
}

const EMAIL = new RegExp(SCHEMA.properties.mailboxes.items.properties.email.pattern, "u");

/** `undefined` for a valid one. */
function describeWrongEmail(email: string): string | undefined {
  return EMAIL.test(email) ? undefined : `${showValue(email)} is not an email address`;
}

function describeWrongPath(path: string): string | undefined {
  if (new RegExp(PATH.pattern, "u").test(path)) return undefined;
  return path.startsWith("~")
    ? `${showValue(path)}: write the whole path, such as ${join(homedir(), "inbox")}`
    : "a path must not be empty";
}

async function readClientId(
  context: Context,
  { clientIdFile }: InitOptions,
  kept: string,
): Promise<GivenSecret | undefined> {
  const given = await readSecret(context, clientIdFile);
  if (given !== undefined) {
    const wrong = describeWrongClientId(given);
    if (wrong !== undefined) throw invalid(`${clientIdFile} ${wrong}`);
    return keptIn(given, clientIdFile);
  }
  // It may be registered by now.
  const found = (await exists(kept)) ? await readSecret(context, kept) : undefined;
  if (found === undefined || describeWrongClientId(found) !== undefined) return undefined;
  say(context, `Using the client id in ${kept}.`);
  return { secret: found, file: kept };
}

/** `*@supplier.example=/etc/inlet/supplier`. */
async function readPassword(context: Context, rule: string): Promise<GivenPassword> {
  const [, sender, file] = /^([^=]+)=(.+)$/.exec(rule) ?? [];
  if (sender === undefined || file === undefined) {
    throw invalid(`--password-file ${showValue(rule)}: write SENDER=FILE`);
  }
  const secret = await readSecret(context, file);
  if (secret === undefined || secret.reveal() === "") throw invalid(`${file} is empty`);
  return { sender, password: keptIn(secret, file) };
}

/** Standard input keeps no secret. */
function keptIn(secret: Secret, path = "-"): GivenSecret {
  return path === "-" ? { secret } : { secret, file: resolve(path) };
}

/** The settings of the service, as the daemon would load them. */
async function findService(interview: Interview, ca: string | undefined) {
  const { context, options, isAsking } = interview;
  const others = withoutOurs(context.env);
  const env = ca === undefined ? others : { ...others, INLET_SERVICE__CA: ca };
  for (let { baseUrl } = options; ; baseUrl = undefined) {
    baseUrl ??= await ask(context, "Address of the service (the part before /api)");
    try {
      const settings = await loadService({ path: "/dev/null", baseUrl, env });
      const isUsable = await tryOut(interview, settings, makeClientId(), (service) =>
        demandVersion(context, service),
      );
      if (isUsable || (await askYesNo(context, "Use it anyway?", false))) return { baseUrl, settings };
    } catch (error) {
      const [, wrong] = error instanceof Fault ? (/service\.baseUrl: (.*)$/s.exec(error.message) ?? []) : [];
      // Any other fault comes from an option.
      if (wrong === undefined || !isAsking) throw error;
      say(context, `  ${wrong}.`);
    }
  }
}

/** The environment without Inlet's variables: the file must be valid without them. */
export function withoutOurs(env: Context["env"]): Context["env"] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^INLET_/i.test(name)));
}

async function demandVersion(context: Context, service: ServicePort): Promise<void> {
  const versions = await service.apiVersions(context.stop);
  const offered = versions && formatVersions(versions);
  if (versions !== undefined && !canPoll(versions)) {
    throw new Fault("API_VERSION", { detail: `it offers ${offered}` });
  }
  const known = `with version ${offered} of the interface`;
  say(
    context,
    `  ${service.id} answers, ${offered === undefined ? "but does not report its version" : known}.`,
  );
}

const TRIAL_TIMEOUT_MS = 10_000;

const CHECK_NETWORK =
  "Check that the address is right, and that this machine reaches it: the network, name resolution, a proxy, a firewall.";
const NOT_WRITTEN =
  "Nothing was written. To write the configuration without asking the service, add --no-test.";

/** Returns whether it works, and says why not. Without questions, it throws the reason. Makes no request with `--no-test`. */
async function tryOut(
  { context, options, isAsking }: Interview,
  settings: ServiceSettings,
  clientId: Secret,
  work: (service: ServicePort) => Promise<void>,
): Promise<boolean> {
  if (options.test === false) return true;
  const service = openClient(settings, clientId, TRIAL_TIMEOUT_MS);
  try {
    await work(service);
    return true;
  } catch (error) {
    if (!(error instanceof Fault) || error.code === "STOPPED") throw error;
    // The fault's own advice assumes a daemon that retries.
    const fault = outcomeOfFault(error) === "unreachable" ? withAdvice(error, CHECK_NETWORK) : error;
    if (!isAsking) throw withAdvice(fault, `${fault.advice} ${NOT_WRITTEN}`);
    say(context, `  ${describeFault(fault)}`);
    return false;
  } finally {
    await service.close();
  }
}

/** Repeats a question until nothing is wrong with the answer. */
async function askUntilSound<Answer>(
  context: Context,
  read: () => Promise<Answer>,
  describeWrong: (answer: Answer) => string | undefined,
): Promise<Answer> {
  for (;;) {
    const answer = await read();
    const wrong = describeWrong(answer);
    if (wrong === undefined) return answer;
    say(context, `  ${wrong}.`);
  }
}

function askClientId(context: Context): Promise<Secret | undefined> {
  const read = () => askHidden(context, "Client id, not shown (Enter: create one): ");
  return askUntilSound(context, read, (secret) => {
    const wrong = secret && describeWrongClientId(secret);
    return wrong && `This ${wrong}`;
  });
}

function askInbox(context: Context): Promise<string> {
  const likely = process.getuid?.() === 0 ? "/srv/inbox" : join(homedir(), "inlet", "inbox");
  const read = () => ask(context, "Inbox (the folder in which finished transfers appear)", likely);
  return askUntilSound(context, read, describeWrongPath);
}

/** Sends no mail, and keeps no token. */
async function findMailboxes(interview: Interview, settings: ServiceSettings, clientId: Secret) {
  const { context, options } = interview;
  const mailboxes: string[] = [];
  const unregistered: string[] = [];
  const add = async (email: string) => {
    mailboxes.push(email);
    await tryOut(interview, settings, clientId, async (service) => {
      try {
        await service.obtainToken(email, undefined, context.stop);
        say(context, `  ${email} is verified by the client id.`);
      } catch (error) {
        const isUnregistered =
          error instanceof Fault && ["TOKEN_REFUSED", "POLICY_REFUSED"].includes(error.code);
        if (!isUnregistered) throw error;
        unregistered.push(email);
        say(context, `  ${email}: this client id is not registered for it yet.`);
      }
    });
  };
  for (const email of options.mailbox ?? []) await add(email);
  while (options.mailbox === undefined) {
    const isFirst = mailboxes.length === 0;
    const first = "Mailbox (the address whose transfers to download)";
    const read = () => ask(context, isFirst ? first : "Another mailbox (Enter: none)");
    const email = await askUntilSound(context, read, (typed) => {
      if (typed === "" && !isFirst) return undefined;
      return mailboxes.includes(typed) ? "This mailbox is already listed" : describeWrongEmail(typed);
    });
    if (email === "") break;
    await add(email);
  }
  return { mailboxes, unregistered };
}

async function askPasswords(context: Context): Promise<GivenPassword[]> {
  say(context, "Transfer passwords: store them by sender now, or supply them later with inlet password.");
  const passwords: GivenPassword[] = [];
  for (;;) {
    const sender = await ask(context, "Sender, such as *@supplier.example (Enter: none)");
    if (sender === "") return passwords;
    const secret = await askTwice(context, `Password of transfers from ${sender}, not shown: `);
    if (secret !== undefined) passwords.push({ sender, password: { secret } });
  }
}

/** A mistyped password would cost attempts, and too many wrong ones destroy transfers. */
async function askTwice(context: Context, question: string): Promise<Secret | undefined> {
  const read = async () => {
    const first = await askHidden(context, question);
    return { first, second: first && (await askHidden(context, "The same password again: ")) };
  };
  const isSame = ({ first, second }: Awaited<ReturnType<typeof read>>) =>
    first?.reveal() === second?.reveal();
  const typed = await askUntilSound(context, read, (both) =>
    isSame(both) ? undefined : "The two passwords differ",
  );
  return typed.first;
}
