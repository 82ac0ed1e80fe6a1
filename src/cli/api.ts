/** `api`: single operations of the service's interface. This file has those on the service itself. */
import { basename } from "node:path";
import { type Command, Option } from "commander";
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { type Call, type Operations, operationsOf, type PasswordOptions, print } from "./api/operation.ts";
import { addDownloads, addListing, ownName, saveDownload } from "./api/transfers.ts";
import { askHidden, readPassword, readSecret } from "./asking.ts";
import { canPoll, LACKS_VERSION } from "./client.ts";
import { invalid, type Outcome, type Runner } from "./command.ts";
import { addConfig, wholeNumber } from "./options.ts";
import { printJson, say } from "./printing.ts";

const ENVIRONMENT = `
Settings come from the configuration file, if there is one, and from variables, which take precedence:
  INLET_SERVICE__BASEURL              the part before /api (or --base-url)
  INLET_SERVICE__CLIENTID             the client id registered with the service
  INLET_SERVICE__VERIFICATION__TOKEN  a token, if the address was verified by mail
  INLET_SERVICE__...                  every other key of service, such as TIMEOUT, CA or PROXY
  INLET_PASSWORD                      the transfer's password, without --password-file`;

export function define(api: Command, run: Runner): void {
  addConfig(api.option("--base-url <url>", "the service's address: the part before /api"))
    .option("--mailbox <name>", "use the service that the configuration names for this mailbox")
    .option("--json", "print data as JSON")
    .addHelpText("after", ENVIRONMENT);
  const operations = operationsOf(api, run);
  const group = (name: string, summary: string) => operationsOf(api.command(name).description(summary), run);
  addListing(operations);
  addDownloads(operations);
  addPasswords(group("password", "generate and check transfer passwords, and list their rules"));
  addLanguages(group("languages", "list and download language packs"));
  operations.add("status", "show the interface versions that the service offers", showStatus);
  operations.add("client-id", "let the service create a client id, and print it", async (call) =>
    printSecret(call, "clientId", await call.service.requestClientId(call.stop)),
  );
  addVerification(group("verification", "verify an address"));
}

function addPasswords(password: Operations): void {
  password.add("generate", "let the service generate a password, and print it", async (call) =>
    printSecret(call, "password", await call.service.generatePassword(call.stop)),
  );
  password
    .add("check", "list the rules that a password breaks", checkPassword)
    .option("--password-file <file>", "read the password from a file, or from standard input for -");
  const rules = "list the rules that a transfer password must fulfil";
  password.add("rules", rules, async (call) =>
    print(call, ["name", "details"], await call.service.passwordRules(call.stop)),
  );
}

async function checkPassword(call: Call<PasswordOptions>): Promise<Outcome> {
  const { context, options, service, stop } = call;
  const password =
    (await readPassword(context, options.passwordFile)) ?? (await askHidden(context, "Password to check: "));
  if (password === undefined) throw invalid("no password: add --password-file (- for standard input)");
  const check = await service.checkPassword(password, stop);
  print(call, ["name", "details"], check.broken, check);
  if (check.valid) say(context, "The password fulfils all rules.");
  return check.valid ? "fine" : "attention";
}

const PACK_COLUMNS = ["id", "locale", "version", "changed", "displayName", "href"] as const;

function addLanguages(languages: Operations): void {
  const list = async (call: Call<{ readonly majorVersion?: number }>) =>
    print(call, PACK_COLUMNS, await call.service.languagePacks(call.options.majorVersion, call.stop));
  languages
    .add("list", "list the installed language packs", list)
    .option("--major-version <number>", "only packs of this major version", wholeNumber(1, 1_000_000));
  languages
    .add("show", "show one language pack", async (call, id = "") =>
      print(call, PACK_COLUMNS, await call.service.languagePack(id, call.stop)),
    )
    .argument("<id>", "the id of the pack, such as en-US_2");
  languages
    .add("get", "download a file of a language pack", getLanguageFile)
    .argument("<id>", "the id of the pack, such as en-US_2")
    .argument("<path>", "the file's name without its language, such as messages.properties")
    .option("-o, --output <file>", "where to save it (default: its own name, in the current folder)");
}

async function getLanguageFile(
  call: Call<{ readonly output?: string }>,
  id = "",
  file = "",
): Promise<Outcome> {
  const { context, options, service, stop } = call;
  const target = options.output ?? ownName(basename(file));
  const open = () => service.openLanguageFile(id, file, stop);
  return print(call, ["path", "bytes"], await saveDownload(context, target, open));
}

function addVerification(verification: Operations): void {
  verification.add("status <email>", "show whether an address is verified", showVerification);
  verification.add("mail-code <email>", "let the service mail a code to an address", mailCode);
  verification
    .add("token <email>", "obtain a token with the client id or a mailed code, and print it", obtainToken)
    .addOption(new Option("--code", "ask for the mailed code on the terminal").conflicts("codeFile"))
    .option("--code-file <file>", "read the mailed code from a file, or from standard input for -");
}

async function showStatus(call: Call): Promise<Outcome> {
  const versions = await call.service.apiVersions(call.stop);
  const rows = (versions ?? []).map(({ major, minor }) => ({ version: `${major}.${minor}` }));
  print(call, ["version"], rows, { apiVersions: versions ?? null });
  if (versions === undefined) {
    say(call.context, `The service ${LACKS_VERSION}.`);
    return "attention";
  }
  if (!canPoll(versions)) throw new Fault("API_VERSION");
  return "fine";
}

async function showVerification(call: Call, email = ""): Promise<Outcome> {
  const status = await call.service.verification(email, call.token, call.stop);
  print(call, ["verified", "validUntil", "methods"], status);
  return status.verified ? "fine" : "attention";
}

async function mailCode({ context, service, stop }: Call, email = ""): Promise<Outcome> {
  await service.mailVerificationCode(email, stop);
  say(context, `The service mails a code to ${email}. Exchange it for a token:`);
  say(context, `  inlet api verification token ${email} --code`);
  return "fine";
}

async function obtainToken(
  call: Call<{ readonly code?: boolean; readonly codeFile?: string }>,
  email = "",
): Promise<Outcome> {
  const { context, options, service, stop } = call;
  const code =
    (await readSecret(context, options.codeFile)) ??
    (options.code ? await askHidden(context, `Code mailed to ${email}: `) : undefined);
  if (options.code && code === undefined) {
    throw invalid("no code, and no terminal to ask on: add --code-file");
  }
  const { token, validUntil } = await service.obtainToken(email, code, stop);
  return printSecret(call, "token", token, { validUntil });
}

/** `more`: facts for JSON only. */
function printSecret({ context, options }: Call, key: string, secret: Secret, more: object = {}): "fine" {
  if (options.json) printJson(context, { [key]: secret.reveal(), ...more });
  else context.stdout.write(`${secret.reveal()}\n`);
  return "fine";
}
