/** `verify-address`: verifies a mailbox's address with a code that the service mails to it. */
import { join } from "node:path";
import type { Command } from "commander";
import { makeFolderDurably } from "../base/durable.ts";
import { Fault, withAdvice } from "../base/faults.ts";
import { formatMoment, zoneName } from "../base/phrases.ts";
import { asOwnerOf } from "../base/process.ts";
import { Secret } from "../base/secret.ts";
import { loadSettings } from "../config/load.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { keepClientId } from "../host/memory.ts";
import { withDaemonsState } from "../operate/local.ts";
import { askHidden, canAsk, readSecret } from "./asking.ts";
import { openClient, openTokens } from "./client.ts";
import { type Context, invalid, type Outcome, type Runner } from "./command.ts";
import { addUnit } from "./in-unit.ts";
import { addConfig, type CommonOptions, demandMailbox } from "./options.ts";
import { printJson, say } from "./printing.ts";

interface VerifyAddressOptions extends CommonOptions {
  readonly codeFile?: string;
}

/** A service drops a code after some wrong tries. */
const TRIES = 3;

const HELP = `
The service mails a code to the address; enter it on the terminal, or pass it on standard input. Inlet exchanges it for
a token, which it keeps in the state folder for the daemon, even a running one. Services limit how many codes they mail:
use --code-file for a code that has arrived.

  inlet verify-address orders@example.com
  sudo inlet verify-address orders@example.com --unit inlet`;

export function define(command: Command, run: Runner): void {
  addConfig(command)
    .argument("<mailbox>", "the mailbox's name or address, as configured")
    .option(
      "--code-file <file>",
      "read a code that was already mailed, from a file, or from standard input for -; requests no mail",
    )
    .option("--json", "print the result as JSON")
    .addHelpText("after", HELP)
    .action(run(addUnit(command, verifyAddress)));
}

async function verifyAddress(
  context: Context,
  wanted: string,
  options: VerifyAddressOptions,
): Promise<Outcome> {
  const settings = await withDaemonsState(await loadSettings({ env: context.env, path: options.config }));
  const mailbox = demandMailbox(settings.mailboxes, wanted);
  const { name, email, service: serviceSettings } = mailbox;
  if (serviceSettings.token !== undefined) {
    throw invalid(
      `${name} has a configured token (${serviceSettings.token.described}), and the daemon uses no other: remove service.verification`,
    );
  }
  const tokensFolder = join(settings.state, "tokens");
  await asOwnerOf(settings.state, () => makeFolderDurably(tokensFolder, 0o700));
  const clientId =
    (await serviceSettings.clientId?.read(context.stop)) ??
    (await asOwnerOf(settings.state, () => keepClientId(settings.state))).clientId;
  const service = openClient(serviceSettings, clientId);
  try {
    const tokens = await openTokens(mailbox, service, tokensFolder);
    if (options.codeFile === undefined) {
      await service.mailVerificationCode(email, context.stop).catch((error: unknown) => {
        const isLimit = error instanceof Fault && error.code === "RATE_LIMITED";
        throw isLimit ? withAdvice(error, adviceForLimit(name)) : error;
      });
      say(context, `The service mails a code to ${email}.`);
    }
    await redeem(context, mailbox, options, (code) =>
      asOwnerOf(settings.state, () => tokens.redeem(code, context.stop)),
    );
    const { timezone } = settings;
    const untilMs = tokens.facts?.validUntilMs;
    const validUntil = untilMs === undefined ? undefined : new Date(untilMs).toISOString();
    const until = validUntil && ` until ${formatMoment(validUntil, timezone)} (${zoneName(timezone)})`;
    if (options.json) printJson(context, { mailbox: name, email, verified: true, validUntil });
    else say(context, `${email} is verified${until ?? ""}. The daemon uses the token from its next poll on.`);
    return "fine";
  } finally {
    await service.close();
  }
}

/** A person may try again after a typing error; a program may not. */
async function redeem(
  context: Context,
  { name, email }: MailboxSettings,
  { codeFile }: VerifyAddressOptions,
  exchange: (code: Secret) => Promise<void>,
): Promise<void> {
  const isTyped = codeFile === undefined && canAsk(context);
  // Each call without `--code-file` makes the codes of earlier mails useless.
  const advice = `The code is wrong or too old. Use the one in the newest mail: inlet verify-address ${name} --code-file FILE. For a new mail, leave out --code-file.`;
  for (let tries = 1; ; tries++) {
    const given = isTyped
      ? await askHidden(context, `Code mailed to ${email}: `)
      : await readSecret(context, codeFile ?? "-");
    // A code copied from a mail may carry a space.
    const code = new Secret(given?.reveal().trim() ?? "");
    if (code.reveal() === "") {
      throw invalid(`no code: when it has arrived, run inlet verify-address ${name} --code-file FILE`);
    }
    try {
      return await exchange(code);
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== "TOKEN_REFUSED") throw error;
      if (!isTyped || tries === TRIES) throw withAdvice(error, advice);
      say(context, "The service does not accept this code. Check the newest mail, and try again.");
    }
  }
}

function adviceForLimit(name: string): string {
  return `The service limits how many codes it mails to an address. If a code has arrived, use the newest: inlet verify-address ${name} --code-file FILE. Otherwise wait before you request another.`;
}
