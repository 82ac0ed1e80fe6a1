/** `init`: asks a few questions, tries the answers, and writes a configuration. */

import { randomBytes } from "node:crypto";
import { access, chmod, chown, constants, readFile, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { Command } from "commander";
import { stringify } from "yaml";
import { createDurably, exists, makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { detailOf, Fault, faultOfDisk } from "../base/faults.ts";
import { lookAt } from "../base/files.ts";
import type { Secret } from "../base/secret.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { DEFAULT_PATH, EXAMPLE, userPath } from "../config/source.ts";
import { askYesNo, canAsk } from "./asking.ts";
import { addExitCodes, type Context, invalid, type Outcome, type Runner } from "./command.ts";
import { nearestExisting } from "./doctor/folders.ts";
import {
  type Answers,
  findAnswers,
  type GivenSecret,
  type InitOptions,
  withoutOurs,
} from "./init-answers.ts";
import { gather } from "./options.ts";
import { printJson, say } from "./printing.ts";

const HELP = `
On a terminal, it asks for everything that the options leave open, and tries each answer on the service. It never
overwrites a file: --force keeps the old one beside the new one. Secrets go into separate files that only you can read;
where Inlet is installed as a service, root stores them in /etc/inlet/secrets.

Without a terminal, or with --yes, the options must be complete:
  inlet init --yes --base-url https://transfer.example.com --mailbox orders@example.com --inbox /srv/inbox \\
      --client-id-file /etc/inlet/client-id --password-file '*@supplier.example=/etc/inlet/supplier'

Without a client id, it creates one.`;

export function define(command: Command, run: Runner): void {
  command
    .option(
      "--config <file>",
      "the file to write (default: INLET_CONFIG, else /etc/inlet/inlet.yaml, or ~/.config/inlet/inlet.yaml if you are not root)",
    )
    .option("--base-url <url>", "the service's address: the part before /api")
    .option("--ca <file>", "a PEM file with the private certificate authority of the service")
    .option("--client-id-file <file>", "read the client id from a file, or from standard input for -")
    .option("--mailbox <address>", "an address whose transfers to download; may be repeated", gather)
    .option("--inbox <folder>", "the folder in which finished transfers appear")
    .option(
      "--state <folder>",
      "the folder for tokens and supplied passwords (default: STATE_DIRECTORY, else /var/lib/inlet for root, else inlet in XDG_STATE_HOME or ~/.local/state)",
    )
    .option(
      "--password-file <sender=file>",
      "the password of this sender's transfers; may be repeated",
      gather,
    )
    .option("--no-test", "do not try the answers on the service")
    .option("--force", "replace an existing file, and keep the old one beside it")
    .option("--yes", "ask no questions")
    .option("--json", "print the written files as JSON")
    .addHelpText("after", HELP)
    .action(run(initialise));
  addExitCodes(command, {
    fine: "the configuration was written",
    attention: "the configuration was written, and the client id still has to be registered",
    unreachable: "the service cannot be reached, and nothing was written",
  });
}

async function initialise(context: Context, options: InitOptions): Promise<Outcome> {
  const target = resolve(options.config ?? (context.env["INLET_CONFIG"] || defaultTarget(context)));
  await demandPlace(target, options.force === true);
  const isAsking = canAsk(context) && !options.yes;
  const storage = await chooseStorage(target);
  const answers = await findAnswers(context, options, isAsking, join(storage.folder, CLIENT_ID));
  const draft = await draftConfiguration(answers, storage);
  say(context, "");
  for (const line of draft.text.trimEnd().split("\n")) say(context, `  ${line}`);
  say(context, "");
  if (isAsking && !(await askYesNo(context, `Write this to ${target}?`, true))) {
    say(context, "Nothing was written.");
    return "fine";
  }
  const written = await writeConfiguration(context, draft, storage);
  const { unregistered } = answers;
  const { backup } = written;
  if (options.json) {
    printJson(context, { config: target, backup, secrets: [...draft.secrets.keys()], unregistered });
  } else sayNext(context, storage, draft, written, unregistered);
  return unregistered.length === 0 ? "fine" : "attention";
}

/** Root writes the configuration of the machine, another user a personal one. */
function defaultTarget({ env }: Context): string {
  return (process.getuid?.() === 0 ? undefined : userPath(env)) ?? DEFAULT_PATH;
}

/** The units pass each file NAME of this folder to the daemon, as the credential `secret_NAME`. */
const UNIT_SECRETS = join(dirname(DEFAULT_PATH), "secrets");

/** Where the configuration and the secrets are stored. */
interface Storage {
  readonly target: string;
  readonly folder: string;
  /** The group of the daemon, where systemd runs it with the files of `UNIT_SECRETS`. */
  readonly unitGroup: number | undefined;
}

/** `UNIT_SECRETS` exists only where the units are installed. */
async function chooseStorage(target: string): Promise<Storage> {
  const folder = dirname(target);
  const isForUnit =
    process.getuid?.() === 0 &&
    target === DEFAULT_PATH &&
    (await lookAt(UNIT_SECRETS))?.isDirectory() === true;
  if (!isForUnit) return { target, folder, unitGroup: undefined };
  return { target, folder: UNIT_SECRETS, unitGroup: (await stat(folder)).gid };
}

/** Called before the questions, so that no answer is wasted. */
async function demandPlace(target: string, isForced: boolean): Promise<void> {
  const facts = await lookAt(target);
  if (facts !== undefined && !facts.isFile()) throw invalid(`${target} is not a file`);
  if (facts !== undefined && !isForced) {
    throw invalid(
      `${target} exists: choose another file with --config, or replace it with --force, which keeps the old one`,
    );
  }
  const folder = await nearestExisting(dirname(target));
  await access(folder, constants.W_OK | constants.X_OK).catch(() => {
    throw invalid(`this user may not write to ${folder}: choose another file with --config, or use sudo`);
  });
}

function sayNext(
  context: Context,
  { target, unitGroup }: Storage,
  { clientIdFile, secrets }: Draft,
  { settings, backup }: Written,
  unregistered: readonly string[],
): void {
  const isForUnit = unitGroup !== undefined;
  const option = isForUnit ? " --unit inlet" : target === defaultTarget(context) ? "" : ` --config ${target}`;
  const files = [target, ...secrets.keys()];
  const readers = isForUnit ? "root and the daemon" : "this user";
  const them = files.length === 1 ? "it" : "them";
  say(context, `Written: ${files.join(", ")}. Only ${readers} can read ${them}.`);
  if (backup !== undefined) say(context, `The old file is kept as ${backup}.`);
  if (process.getuid?.() === 0 && !isForUnit) {
    say(context, "If the daemon runs as another user, give it the files:");
    say(context, `  chown USER ${files.join(" ")}`);
  }
  for (const warning of settings.warnings) say(context, `Warning: ${warning}`);
  if (unregistered.length > 0) {
    const addresses = unregistered.join(", ");
    say(
      context,
      `Ask the service's administrator to register the client id in ${clientIdFile} for ${addresses}.`,
    );
    say(context, "Or verify each address with a mailed code:");
    for (const email of unregistered) say(context, `  inlet verify-address ${email}${option}`);
  }
  say(context, "Next, check everything, then start the daemon:");
  say(context, `  inlet doctor${option}`);
  const start = backup === undefined ? "enable --now" : "restart";
  say(context, isForUnit ? `  systemctl ${start} inlet` : `  inlet run${option}`);
}

/** A configuration before it is written. */
interface Draft {
  readonly text: string;
  /** The secrets to store, by path. */
  readonly secrets: ReadonlyMap<string, Secret>;
  readonly clientIdFile: string;
}

/** The name of the client id's file. */
const CLIENT_ID = "client-id";

const HEADER = `# Written by \`inlet init\`. All other keys are explained in ${EXAMPLE}.\n`;

/** Chooses free names for the secrets' files; writes nothing. */
async function draftConfiguration(answers: Answers, { folder, unitGroup }: Storage): Promise<Draft> {
  const secrets = new Map<string, Secret>();
  const place = async ({ secret, file }: GivenSecret, name: string): Promise<string> => {
    // The daemon of a unit may not read a file elsewhere.
    if (file !== undefined && (unitGroup === undefined || dirname(file) === folder)) return file;
    const path = await freeName(join(folder, name), secrets);
    secrets.set(path, secret);
    return path;
  };
  const refer = (file: string) =>
    unitGroup === undefined ? { file } : { credential: `secret_${basename(file)}` };
  const clientIdFile = await place(answers.clientId, CLIENT_ID);
  const passwords: object[] = [];
  for (const { sender, password } of answers.passwords) {
    passwords.push({ sender, password: refer(await place(password, `password-${slugOf(sender)}`)) });
  }
  const { baseUrl, ca, inbox, state } = answers;
  const document = {
    service: { baseUrl, clientId: refer(clientIdFile), ca },
    inbox,
    state,
    mailboxes: answers.mailboxes.map((email) => (passwords.length === 0 ? { email } : { email, passwords })),
  };
  const text = HEADER + stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
  return { text, secrets, clientIdFile };
}

type Written = Awaited<ReturnType<typeof writeConfiguration>>;

/** Writes all files or none. `backup`: the copy of the earlier configuration. Throws `CONFIG_INVALID` if the loader does not accept the text. */
async function writeConfiguration(
  { env }: Context,
  { text, secrets }: Draft,
  { target, unitGroup }: Storage,
) {
  await makeFolderDurably(dirname(target), 0o755);
  const made: string[] = [];
  try {
    for (const [path, secret] of secrets) {
      await createDurably(path, `${secret.reveal()}\n`);
      made.push(path);
    }
    const settings = await tryLoad(text, target, withoutOurs(env), unitGroup !== undefined);
    const backup = (await exists(target)) ? await freeName(`${target}.bak`) : undefined;
    if (backup === undefined) await createDurably(target, text);
    else {
      // A copy, so that the configuration exists at every moment.
      await createDurably(backup, await readFile(target));
      await replaceDurably(target, text, 0o600);
    }
    if (unitGroup !== undefined) {
      await chown(target, 0, unitGroup);
      await chmod(target, 0o640);
    }
    return { settings, backup };
  } catch (error) {
    for (const path of made) await rm(path, { force: true });
    throw error;
  }
}

/**
 * Loads the text from a temporary file in the same folder, so that relative paths mean the same. `ignoreSecrets`: only
 * systemd can give credentials.
 */
async function tryLoad(
  text: string,
  target: string,
  env: Context["env"],
  ignoreSecrets: boolean,
): Promise<Settings> {
  const draft = join(dirname(target), `.inlet-init-${randomBytes(6).toString("hex")}.yaml`);
  try {
    await writeFile(draft, text, { flag: "wx", mode: 0o600 });
    return await loadSettings({ path: draft, env, ignoreSecrets });
  } catch (error) {
    if (!(error instanceof Fault)) throw faultOfDisk(error, target);
    throw error.code === "CONFIG_INVALID" ? invalid(detailOf(error).replaceAll(draft, target)) : error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function freeName(path: string, taken?: ReadonlyMap<string, unknown>): Promise<string> {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? path : `${path}-${number}`;
    if (!taken?.has(candidate) && !(await exists(candidate))) return candidate;
  }
}

/** `*@supplier.example` → `supplier.example`. */
function slugOf(sender: string): string {
  const plain = sender.replace(/[^A-Za-z0-9.-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  return plain.slice(0, 60) || "all";
}
