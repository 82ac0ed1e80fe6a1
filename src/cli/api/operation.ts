/** Every `api` command: opens the client, runs one operation, and closes the client. */
import { type Command, Option } from "commander";
import { Secret } from "../../base/secret.ts";
import { loadService } from "../../config/load.ts";
import type { ServicePort, TransferAccess, VerifiedAddress } from "../../service/port.ts";
import { askHidden, readPassword } from "../asking.ts";
import { openClient, throwawayClientId } from "../client.ts";
import type { Context, Run } from "../context.ts";
import type { Outcome } from "../exit-codes.ts";
import { invalid } from "../options.ts";

const NO_CLIENT_ID =
  "a verified address needs its registered client id: set service.clientId or INLET_SERVICE__CLIENTID";
const NO_PASSWORD =
  "no password: add --password-file (- for standard input), set INLET_PASSWORD, or use --no-password";

export interface ApiOptions {
  readonly baseUrl?: string;
  readonly config?: string;
  readonly mailbox?: string;
  readonly json?: boolean;
}

export interface PasswordOptions {
  readonly passwordFile?: string;
  /** Commander's name for `--no-password`. */
  readonly password?: boolean;
}

export interface Call<Options> {
  readonly context: Context;
  readonly options: ApiOptions & Options;
  readonly service: ServicePort;
  /** The token from the configuration. */
  readonly token: Secret | undefined;
  /** The address with the configured token, else with one that the client id obtains. */
  verified(email: string): Promise<VerifiedAddress>;
}

/** Adds a command whose operation gets the command's arguments. The caller adds arguments and options. */
export function addOperation<Options>(
  parent: Command,
  run: Run,
  name: string,
  summary: string,
  operation: (call: Call<Options>, ...args: string[]) => Promise<Outcome>,
): Command {
  const command = parent.command(name).description(summary);
  return command.action(() =>
    run((context) =>
      withService<Options>(context, command.optsWithGlobals(), (call) => operation(call, ...command.args)),
    ),
  );
}

/** Adds a command that opens a transfer. Its first argument is the transfer-id. */
export function addTransferOperation<Options>(
  parent: Command,
  run: Run,
  name: string,
  summary: string,
  operation: (call: Call<Options>, access: TransferAccess, ...args: string[]) => Promise<Outcome>,
): Command {
  const opening = async (call: Call<Options & PasswordOptions>, transferId = "", ...args: string[]) =>
    operation(call, await accessTo(call.context, transferId, call.options), ...args);
  return addOperation(parent, run, name, summary, opening)
    .argument(
      "<transfer-id>",
      "the transfer-id, which differs for each recipient; inlet api received lists it",
    )
    .option("--password-file <file>", "read the password from a file, or from standard input for -")
    .addOption(
      new Option("--no-password", "send no password, for transfers that need none").conflicts("passwordFile"),
    );
}

async function withService<Options>(
  context: Context,
  options: ApiOptions & Options,
  work: (call: Call<Options>) => Promise<Outcome>,
): Promise<Outcome> {
  const { config: path, baseUrl, mailbox } = options;
  const settings = await loadService({ path, baseUrl, mailbox, env: context.env });
  const clientId = await settings.clientId?.read(context.stop);
  const token = await settings.token?.read(context.stop);
  const service = openClient(settings, clientId ?? throwawayClientId());
  const verified = async (email: string): Promise<VerifiedAddress> => {
    if (token !== undefined) return { email, token };
    if (clientId === undefined) throw invalid(NO_CLIENT_ID);
    return { email, token: (await service.obtainToken(email, undefined, context.stop)).token };
  };
  try {
    return await work({ context, options, service, token, verified });
  } finally {
    await service.close();
  }
}

/** The password comes from a file, the environment, standard input or the terminal. */
async function accessTo(
  context: Context,
  transferId: string,
  options: PasswordOptions,
): Promise<TransferAccess> {
  if (options.password === false) return { transferId, password: undefined };
  const variable = context.env["INLET_PASSWORD"];
  const password =
    (await readPassword(context, options.passwordFile)) ??
    (variable ? new Secret(variable) : undefined) ??
    (await askHidden(context, `Password of transfer ${transferId}: `));
  if (password === undefined) throw invalid(NO_PASSWORD);
  return { transferId, password };
}
