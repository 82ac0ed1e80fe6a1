/** The answers that `init` needs, from options, environment or questions. Those about the service are tried on it. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { describeFault, Fault, withAdvice } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { showValue } from "../config/draft.ts";
import { loadService } from "../config/load.ts";
import { makeClientId } from "../config/memory.ts";
import { SCHEMA } from "../config/schema.ts";
import { PATH } from "../config/schema-nodes.ts";
import { describeWrongClientId } from "../config/service.ts";
import type { ServiceSettings } from "../config/settings.ts";
import type { ServicePort } from "../service/port.ts";
import { ask, askHidden, askYesNo, readSecret } from "./asking.ts";
import { canPoll, formatVersions, openClient } from "./client.ts";
import { type Context, invalid, outcomeOfFault } from "./command.ts";
import { Findings } from "./doctor/findings.ts";
import { checkFolder } from "./doctor/folders.ts";
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
  readonly inbox: string;
  readonly state: string | undefined;
  readonly passwords: readonly GivenPassword[];
  readonly inFiles: boolean;
}

/** Answers from options and environment; questions fill in the rest. */
export type Given = { readonly [Key in keyof Answers]?: Answers[Key] | undefined };

export interface InitOptions extends CommonOptions {
  readonly baseUrl?: string;
  readonly clientIdFile?: string;
  readonly mailbox?: readonly string[];
  readonly inbox?: string;
  readonly state?: string;
  readonly ca?: string;
  readonly passwordFile?: readonly string[];
  readonly plainSecrets?: boolean;
  /** Commander's name for `--no-test`. */
  readonly test?: boolean;
  readonly yes?: boolean;
  readonly force?: boolean;
}

const EMAIL = new RegExp(SCHEMA.properties.mailboxes.items.properties.email.pattern, "u");

/** Options win over the environment. Throws `CONFIG_INVALID`. */
export async function readGiven(context: Context, options: InitOptions): Promise<Given> {
  const { env } = context;
  const baseUrl = options.baseUrl ?? env["INLET_SERVICE__BASEURL"];
  const inbox = options.inbox ?? env["INLET_INBOX"];
  const { mailbox: mailboxes, state, ca } = options;
  const paths = [inbox, state, ca].filter((path) => path !== undefined);
  const [wrong] = [...(mailboxes ?? []).map(describeWrongEmail), ...paths.map(describeWrongPath)].filter(
    Boolean,
  );
  if (wrong !== undefined) throw invalid(wrong);
  const clientId = await readClientId(context, options);
  const passwords = await Promise.all(
    (options.passwordFile ?? []).map((rule) => readPassword(context, rule)),
  );
  return {
    baseUrl: baseUrl || undefined,
    ca: ca && resolve(ca),
    clientId,
    mailboxes,
    inbox: inbox ? resolve(inbox) : undefined,
    state: state && resolve(state),
    passwords: passwords.length === 0 ? undefined : passwords,
    inFiles: options.plainSecrets ? false : undefined,
  };
}

/** The settings of the service, as the daemon would load them. Throws `CONFIG_INVALID`. */
export async function loadServiceAt(
  { env }: Context,
  { baseUrl, ca }: { readonly baseUrl: string; readonly ca?: string | undefined },
): Promise<ServiceSettings> {
  const others = withoutOurs(env);
  return loadService({
    path: "/dev/null",
    baseUrl,
    env: ca === undefined ? others : { ...others, INLET_SERVICE__CA: ca },
  });
}

/** The environment without Inlet's variables: the file must be valid without them. */
export function withoutOurs(env: Context["env"]): Context["env"] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^INLET_/i.test(name)));
}

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
): Promise<GivenSecret | undefined> {
  const variable = context.env["INLET_SERVICE__CLIENTID"];
  const secret = (await readSecret(context, clientIdFile)) ?? (variable ? new Secret(variable) : undefined);
  if (secret === undefined) return undefined;
  const wrong = describeWrongClientId(secret);
  if (wrong !== undefined) throw invalid(`${clientIdFile ?? "INLET_SERVICE__CLIENTID"} ${wrong}`);
  const isFile = clientIdFile !== undefined && clientIdFile !== "-";
  return isFile ? { secret, file: resolve(clientIdFile) } : { secret };
}

/** `*@supplier.example=/etc/inlet/supplier`. */
async function readPassword(context: Context, rule: string): Promise<GivenPassword> {
  const [, sender, file] = /^([^=]+)=(.+)$/.exec(rule) ?? [];
  if (sender === undefined || file === undefined) {
    throw invalid(`--password-file ${showValue(rule)}: write SENDER=FILE`);
  }
  const secret = await readSecret(context, file);
  if (secret === undefined || secret.reveal() === "") throw invalid(`${file} is empty`);
  return { sender, password: file === "-" ? { secret } : { secret, file: resolve(file) } };
}

const IN_FILES = "Keep secrets in separate files, not in the configuration?";

export async function askForAnswers(context: Context, given: Given, trial: Trial): Promise<Answers> {
  say(context, "Press Enter to accept the answer in brackets.");
  say(context, "");
  const { baseUrl, service } = await askService(context, given, trial);
  const clientId = given.clientId ?? (await askClientId(context));
  const mailboxes = await askMailboxes(context, given, trial, service, clientId.secret);
  const inbox = given.inbox ?? (await askInbox(context));
  const passwords = given.passwords ?? (await askPasswords(context));
  const hasSecretToStore = [clientId, ...passwords.map(({ password }) => password)].some(
    ({ file }) => file === undefined,
  );
  const inFiles = given.inFiles ?? (!hasSecretToStore || (await askYesNo(context, IN_FILES, true)));
  return { baseUrl, ca: given.ca, clientId, mailboxes, inbox, state: given.state, passwords, inFiles };
}

const CHECK_NETWORK =
  "Check that the address is right, and that this machine reaches it: the network, name resolution, a proxy, a firewall.";

async function askService(
  context: Context,
  { baseUrl: first, ca }: Given,
  trial: Trial,
): Promise<{ baseUrl: string; service: ServiceSettings }> {
  for (let baseUrl = first; ; baseUrl = undefined) {
    baseUrl ??= await ask(context, "Address of the service (the part before /api)");
    try {
      const service = await loadServiceAt(context, { baseUrl, ca });
      const fault = await trial.service(service);
      if (fault === undefined) return { baseUrl, service };
      say(context, `  ${describeFault(fault)}`);
      if (await askYesNo(context, "Use it anyway?", false)) return { baseUrl, service };
    } catch (error) {
      const [, wrong] = error instanceof Fault ? (/service\.baseUrl: (.*)$/s.exec(error.message) ?? []) : [];
      // Any other fault comes from an option.
      if (wrong === undefined) throw error;
      say(context, `  ${wrong}.`);
    }
  }
}

async function askClientId(context: Context): Promise<Answers["clientId"]> {
  for (;;) {
    const secret = await askHidden(context, "Client id, not shown (Enter: create one): ");
    if (secret === undefined) return { secret: makeClientId() };
    const wrong = describeWrongClientId(secret);
    if (wrong === undefined) return { secret };
    say(context, `  This ${wrong}.`);
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
      isFirst ? "Mailbox (the address whose transfers to download)" : "Another mailbox (Enter: none)",
    );
    if (email === "" && !isFirst) return mailboxes;
    const wrong = mailboxes.includes(email) ? "This mailbox is already listed" : describeWrongEmail(email);
    if (wrong === undefined) await add(email);
    else say(context, `  ${wrong}.`);
  }
}

async function askInbox(context: Context): Promise<string> {
  const likely = process.getuid?.() === 0 ? "/srv/inbox" : join(homedir(), "inlet", "inbox");
  for (;;) {
    const inbox = await ask(context, "Inbox (the folder in which finished transfers appear)", likely);
    const wrong = describeWrongPath(inbox);
    if (wrong !== undefined) {
      say(context, `  ${wrong}.`);
      continue;
    }
    const findings = new Findings("folders", ({ detail, advice }) =>
      say(context, `  ${[detail, advice].filter(Boolean).join(". ")}`),
    );
    const isUsable = (await checkFolder(findings, "inbox", resolve(inbox))) !== undefined;
    if (isUsable || (await askYesNo(context, "Use it anyway?", false))) return resolve(inbox);
  }
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
  for (;;) {
    const first = await askHidden(context, question);
    if (first === undefined) return undefined;
    const second = await askHidden(context, "The same password again: ");
    if (first.reveal() === second?.reveal()) return first;
    say(context, "  The two passwords differ.");
  }
}

const TRIAL_TIMEOUT_MS = 10_000;

export type Trial = ReturnType<typeof startTrial>;

/** Tries answers on the service before anything is written. `isOn: false` skips every request. */
export function startTrial(context: Context, isOn: boolean) {
  /** Addresses whose client id is not registered yet. */
  const unregistered: string[] = [];
  /** Returns the fault that the work throws, if any. Throws `STOPPED`. */
  const attempt = async (
    settings: ServiceSettings,
    clientId: Secret,
    work: (service: ServicePort) => Promise<void>,
  ): Promise<Fault | undefined> => {
    if (!isOn) return undefined;
    const service = openClient(settings, clientId, TRIAL_TIMEOUT_MS);
    try {
      await work(service);
      return undefined;
    } catch (error) {
      if (!(error instanceof Fault) || error.code === "STOPPED") throw error;
      // The fault's own advice assumes a daemon that retries.
      return outcomeOfFault(error) === "unreachable" ? withAdvice(error, CHECK_NETWORK) : error;
    } finally {
      await service.close();
    }
  };
  return {
    unregistered,
    /** The fault that prevents use of the service, if any. */
    service: (settings: ServiceSettings) =>
      attempt(settings, makeClientId(), async (service) => {
        const versions = await service.apiVersions(context.stop);
        const offered = versions && formatVersions(versions);
        if (versions !== undefined && !canPoll(versions)) {
          throw new Fault("API_VERSION", { detail: `it offers ${offered}` });
        }
        const known = `with version ${offered} of the interface`;
        const version = offered === undefined ? "but does not report its version" : known;
        say(context, `  ${service.id} answers, ${version}.`);
      }),
    /** The fault that prevents the verification of the address, if any. Sends no mail, keeps no token. */
    async mailbox(settings: ServiceSettings, clientId: Secret, email: string): Promise<Fault | undefined> {
      const fault = await attempt(settings, clientId, async (service) => {
        await service.obtainToken(email, undefined, context.stop);
        say(context, `  ${email} is verified by the client id.`);
      });
      if (fault === undefined || !["TOKEN_REFUSED", "POLICY_REFUSED"].includes(fault.code)) return fault;
      unregistered.push(email);
      say(context, `  ${email}: this client id is not registered for it yet.`);
      return undefined;
    },
  };
}
