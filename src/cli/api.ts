/** `api`: single operations of the service's interface. This file has those on the service itself. */
import { basename } from "node:path";
import { type Command, Option } from "commander";
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { ApiVersion, LanguagePack, PasswordPolicyRule, VerificationStatus } from "../service/port.ts";
import { addDownloads } from "./api/downloads.ts";
import { addListing } from "./api/listing.ts";
import { addOperation, type Call, type PasswordOptions } from "./api/operation.ts";
import { ownName, saveDownload } from "./api/saving.ts";
import { askHidden, readPassword, readSecret } from "./asking.ts";
import { canPoll } from "./client.ts";
import type { Run } from "./context.ts";
import type { Outcome } from "./exit-codes.ts";
import { invalid, wholeNumber } from "./options.ts";
import { type Column, printJson, printRows, say } from "./printing.ts";

const ENVIRONMENT = `
Settings come from the configuration file, if there is one, and from these variables, which take precedence:
  INLET_CONFIG                        the configuration file (or --config)
  INLET_SERVICE__BASEURL              the part before /api (or --base-url)
  INLET_SERVICE__CLIENTID             the client id registered with the service
  INLET_SERVICE__VERIFICATION__TOKEN  a token, if the address was verified by mail
  INLET_SERVICE__ACCEPTLANGUAGE       language of the checksums file (default en)
  INLET_SERVICE__FILEIDLIST           how 'api zip' sends several file ids: repeat (default) or comma
  INLET_SERVICE__CA, __CERT, __KEY    PEM files: additional authorities; mutual TLS
  INLET_SERVICE__PROXY                a proxy (default: HTTPS_PROXY, HTTP_PROXY, NO_PROXY)
  INLET_SERVICE__TIMEOUT              the longest silence, such as 30s
  INLET_SERVICE__ALLOWHTTP            true: allow plain http to other machines
  INLET_PASSWORD                      the transfer's password, without --password-file`;

export function define(api: Command, run: Run): void {
  api
    .option("--base-url <url>", "the service's address: the part before /api")
    .option(
      "--config <file>",
      "the configuration file (default: INLET_CONFIG, else ~/.config/inlet/inlet.yaml, else /etc/inlet/inlet.yaml, if it exists)",
    )
    .option("--mailbox <name>", "use the service that the configuration names for this mailbox")
    .option("--json", "print data as JSON")
    .addHelpText("after", ENVIRONMENT);
  addListing(api, run);
  addDownloads(api, run);
  addPasswords(api, run);
  addLanguages(api, run);
  addIdentity(api, run);
}

function addPasswords(api: Command, run: Run): void {
  const password = api
    .command("password")
    .description("generate and check transfer passwords, and list their rules");
  addOperation(
    password,
    run,
    "generate",
    "let the service generate a password, and print it",
    async (call) => {
      printSecret(call, "password", await call.service.generatePassword(call.context.stop));
      return "fine";
    },
  );
  addOperation(password, run, "check", "list the rules that a password breaks", checkPassword).option(
    "--password-file <file>",
    "read the password from a file, or from standard input for -",
  );
  const rules = "list the rules that a transfer password must fulfil";
  addOperation(password, run, "rules", rules, async ({ context, options, service }) => {
    printRows(context, options, RULE_COLUMNS, await service.passwordRules(context.stop));
    return "fine";
  });
}

async function checkPassword({ context, options, service }: Call<PasswordOptions>): Promise<Outcome> {
  const password =
    (await readPassword(context, options.passwordFile)) ?? (await askHidden(context, "Password to check: "));
  if (password === undefined) {
    throw invalid("no password: add --password-file (- for standard input)");
  }
  const check = await service.checkPassword(password, context.stop);
  printRows(context, options, RULE_COLUMNS, check.broken, check);
  if (check.valid) say(context, "The password fulfils all rules.");
  return check.valid ? "fine" : "attention";
}

const RULE_COLUMNS: readonly Column<PasswordPolicyRule>[] = [
  { title: "RULE", value: (rule) => rule.name },
  {
    title: "DETAILS",
    value: (rule) =>
      Object.entries(rule.details)
        .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`)
        .join(", "),
  },
];

function addLanguages(api: Command, run: Run): void {
  const languages = api.command("languages").description("list and download language packs");
  addOperation(languages, run, "list", "list the installed language packs", showPacks).option(
    "--major-version <number>",
    "only packs of this major version",
    wholeNumber(1, 1_000_000),
  );
  addOperation(languages, run, "show", "show one language pack", showPack).argument(
    "<id>",
    "the id of the pack, such as en-US_2",
  );
  addOperation(languages, run, "get", "download a file of a language pack", getLanguageFile)
    .argument("<id>", "the id of the pack, such as en-US_2")
    .argument("<path>", "the file's name without its language, such as messages.properties")
    .option("-o, --output <file>", "where to save it (default: its own name, in the current folder)");
}

async function showPacks(call: Call<{ readonly majorVersion?: number }>): Promise<Outcome> {
  const { context, options, service } = call;
  printRows(context, options, PACK_COLUMNS, await service.languagePacks(options.majorVersion, context.stop));
  return "fine";
}

async function showPack({ context, options, service }: Call<unknown>, id: string): Promise<Outcome> {
  const pack = await service.languagePack(id, context.stop);
  printRows(context, options, PACK_COLUMNS, [pack], pack);
  return "fine";
}

async function getLanguageFile(
  { context, options, service }: Call<{ readonly output?: string }>,
  id: string,
  path: string,
): Promise<Outcome> {
  const target = options.output ?? ownName(basename(path));
  const download = await service.openLanguageFile(id, path, context.stop);
  const saved = await saveDownload(context, download, target, { checksums: [] });
  if (options.json) printJson(context, { path: saved.path, bytes: saved.bytes });
  else context.stdout.write(`${saved.path}\n`);
  return "fine";
}

const PACK_COLUMNS: readonly Column<LanguagePack>[] = [
  { title: "ID", value: (pack) => pack.id },
  { title: "LOCALE", value: (pack) => pack.locale },
  { title: "VERSION", value: (pack) => pack.version },
  { title: "CHANGED", value: (pack) => pack.changed?.toISOString() ?? "never" },
  { title: "NAME", value: (pack) => pack.displayName },
  { title: "HREF", value: (pack) => pack.href ?? "" },
];

function addIdentity(api: Command, run: Run): void {
  addOperation(api, run, "status", "show the interface versions that the service offers", showStatus);
  addOperation(api, run, "client-id", "let the service create a client id, and print it", async (call) => {
    printSecret(call, "clientId", await call.service.requestClientId(call.context.stop));
    return "fine";
  });
  const verification = api.command("verification").description("verify an address");
  const show = "show whether an address is verified";
  addOperation(verification, run, "status", show, showVerification).argument("<email>");
  const mail = "let the service mail a code to an address";
  addOperation(verification, run, "mail-code", mail, mailCode).argument("<email>");
  const token = "obtain a token with the client id or a mailed code, and print it";
  addOperation(verification, run, "token", token, obtainToken)
    .argument("<email>")
    .addOption(new Option("--code", "ask for the mailed code on the terminal").conflicts("codeFile"))
    .option("--code-file <file>", "read the mailed code from a file, or from standard input for -");
}

async function showStatus({ context, options, service }: Call<unknown>): Promise<Outcome> {
  const versions = await service.apiVersions(context.stop);
  printRows(context, options, VERSION_COLUMNS, versions ?? [], { apiVersions: versions ?? null });
  if (versions === undefined) {
    say(
      context,
      "The service does not report its version: it is older than 1.13, or the base URL is not quite right.",
    );
    return "attention";
  }
  if (!canPoll(versions)) throw new Fault("API_VERSION");
  return "fine";
}

const VERSION_COLUMNS: readonly Column<ApiVersion>[] = [
  { title: "VERSION", value: ({ major, minor }) => `${major}.${minor}` },
];

async function showVerification(
  { context, options, service, token }: Call<unknown>,
  email: string,
): Promise<Outcome> {
  const status = await service.verification(email, token, context.stop);
  printRows(context, options, STATUS_COLUMNS, [status], status);
  return status.verified ? "fine" : "attention";
}

const STATUS_COLUMNS: readonly Column<VerificationStatus>[] = [
  { title: "VERIFIED", value: (row) => (row.verified ? "yes" : "no") },
  { title: "UNTIL", value: (row) => row.validUntil?.toISOString() ?? "" },
  { title: "BY", value: (row) => row.methods.join(", ") },
];

async function mailCode({ context, service }: Call<unknown>, email: string): Promise<Outcome> {
  await service.mailVerificationCode(email, context.stop);
  say(context, `The service mails a code to ${email}. Exchange it for a token:`);
  say(context, `  inlet api verification token ${email} --code`);
  return "fine";
}

async function obtainToken(
  call: Call<{ readonly code?: boolean; readonly codeFile?: string }>,
  email: string,
): Promise<Outcome> {
  const { context, options, service } = call;
  const code =
    (await readSecret(context, options.codeFile)) ??
    (options.code ? await askHidden(context, `Code mailed to ${email}: `) : undefined);
  if (options.code && code === undefined) {
    throw invalid("no code, and no terminal to ask on: add --code-file");
  }
  const { token, validUntil } = await service.obtainToken(email, code, context.stop);
  printSecret(call, "token", token, { validUntil });
  return "fine";
}

/** `more`: facts for JSON only. */
function printSecret(
  { context, options }: Call<unknown>,
  key: string,
  secret: Secret,
  more: Readonly<Record<string, unknown>> = {},
): void {
  if (options.json) printJson(context, { [key]: secret.reveal(), ...more });
  else context.stdout.write(`${secret.reveal()}\n`);
}
