/** `api status`, `api client-id` and `api verification`: who the service is, and who we are to it. */
import { type Command, Option } from "commander";
import { Fault } from "../../base/faults.ts";
import { POLLING_MINOR_VERSION } from "../../service/http.ts";
import type { ApiVersion, VerificationStatus } from "../../service/port.ts";
import { askHidden } from "../asking.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { type Column, printJson, printRows, say } from "../printing.ts";
import { type ApiOptions, readSecret, withService } from "./session.ts";

export function addIdentity(api: Command, run: Run): void {
  const status = api.command("status").description("show which versions of the interface the service speaks");
  status.action(() => run((context) => showStatus(context, status.optsWithGlobals())));
  const clientId = api.command("client-id").description("have the service make a client id, and print it");
  clientId.action(() => run((context) => makeClientId(context, clientId.optsWithGlobals())));

  const verification = api.command("verification").description("verify that an address is ours");
  const show = verification
    .command("status")
    .description("say whether an address is verified")
    .argument("<email>");
  show.action((email: string) => run((context) => showVerification(context, email, show.optsWithGlobals())));
  const mail = verification
    .command("mail-code")
    .description("have a code mailed to an address")
    .argument("<email>");
  mail.action((email: string) => run((context) => mailCode(context, email, mail.optsWithGlobals())));
  const token = verification
    .command("token")
    .description("obtain a token by client id, or by a mailed code, and print it")
    .argument("<email>")
    .addOption(new Option("--code", "ask for the mailed code at the terminal").conflicts("codeFile"))
    .option("--code-file <file>", "read the mailed code from a file, or from standard input for -");
  token.action((email: string) => run((context) => makeToken(context, email, token.optsWithGlobals())));
}

function showStatus(context: Context, options: ApiOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const versions = await service.apiVersions(context.stop);
    printRows(context, options, VERSION_COLUMNS, versions ?? [], { apiVersions: versions ?? null });
    if (versions === undefined) {
      say(
        context,
        "It does not tell its version: either it is older than 1.13, or the base URL is not quite right.",
      );
      return "attention";
    }
    const fits = versions.some(({ major, minor }) => major === 1 && minor >= POLLING_MINOR_VERSION);
    if (!fits) throw new Fault("API_VERSION");
    return "fine";
  });
}

const VERSION_COLUMNS: readonly Column<ApiVersion>[] = [
  { title: "VERSION", value: ({ major, minor }) => `${major}.${minor}` },
];

function makeClientId(context: Context, options: ApiOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const clientId = (await service.requestClientId(context.stop)).reveal();
    if (options.json) printJson(context, { clientId });
    else context.stdout.write(`${clientId}\n`);
    return "fine";
  });
}

function showVerification(context: Context, email: string, options: ApiOptions): Promise<Outcome> {
  return withService(context, options, async ({ service, token }) => {
    const status = await service.verification(email, token, context.stop);
    printRows(context, options, STATUS_COLUMNS, [status], status);
    return status.verified ? "fine" : "attention";
  });
}

const STATUS_COLUMNS: readonly Column<VerificationStatus>[] = [
  { title: "VERIFIED", value: (row) => (row.verified ? "yes" : "no") },
  { title: "UNTIL", value: (row) => row.validUntil?.toISOString() ?? "" },
  { title: "BY", value: (row) => row.methods.join(", ") },
];

function mailCode(context: Context, email: string, options: ApiOptions): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    await service.mailVerificationCode(email, context.stop);
    say(
      context,
      `A code is on its way to ${email}: use it with 'inlet api verification token ${email} --code'.`,
    );
    return "fine";
  });
}

function makeToken(
  context: Context,
  email: string,
  options: ApiOptions & { readonly code?: boolean; readonly codeFile?: string },
): Promise<Outcome> {
  return withService(context, options, async ({ service }) => {
    const code =
      (await readSecret(context, options.codeFile)) ??
      (options.code ? await askHidden(context, `Code mailed to ${email}: `) : undefined);
    if (options.code && code === undefined) {
      throw new Fault("CONFIG_INVALID", { detail: "no code: nobody can be asked here, so give --code-file" });
    }
    const { token, validUntil } = await service.obtainToken(email, code, context.stop);
    if (options.json) printJson(context, { token: token.reveal(), validUntil });
    else context.stdout.write(`${token.reveal()}\n`);
    return "fine";
  });
}
