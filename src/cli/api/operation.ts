/** Every `api` command: opens the client, runs one operation, and closes the client. */
import { type Command, Option } from "commander";
import { Secret } from "../../base/secret.ts";
import { loadService } from "../../config/load.ts";
import { makeClientId } from "../../host/memory.ts";
import type { ServicePort, TransferAccess, VerifiedAddress } from "../../service/port.ts";
import { askHidden, readPassword } from "../asking.ts";
import { openClient } from "../client.ts";
import { type Context, invalid, type Outcome, type Runner } from "../command.ts";
import type { CommonOptions } from "../options.ts";
import { columnsOf, printRows } from "../printing.ts";

const NO_CLIENT_ID =
  "a verified address needs its registered client id: set service.clientId or INLET_SERVICE__CLIENTID";
const NO_PASSWORD =
  "no password: add --password-file (- for standard input), set INLET_PASSWORD, or use --no-password";

interface ApiOptions extends CommonOptions {
  readonly baseUrl?: string;
  readonly mailbox?: string;
}

export interface PasswordOptions {
  readonly passwordFile?: string;
  /** Commander's name for `--no-password`. */
  readonly password?: boolean;
}

export interface Call<Options = unknown> {
  readonly context: Context;
  readonly stop: AbortSignal;
  readonly options: ApiOptions & Options;
  readonly service: ServicePort;
  /** The token from the configuration. */
  readonly token: Secret | undefined;
  /** The address with the configured token, else with one that the client id obtains. */
  verified(email: string): Promise<VerifiedAddress>;
}

/** Prints what was found, one row or several, with a column for each key; with `--json` the document. */
export function print<Row extends object>(
  { context, options }: Call,
  keys: readonly (keyof Row & string)[],
  found: Row | readonly Row[],
  document: unknown = found,
): "fine" {
  const rows = (Array.isArray(found) ? found : [found]) as readonly Row[];
  printRows(context, options, columnsOf<Row>(...keys), rows, document);
  return "fine";
}

type Operation<Options, Args extends unknown[]> = (call: Call<Options>, ...args: Args) => Promise<Outcome>;

export type Operations = ReturnType<typeof operationsOf>;

/** Adds commands to `parent`, to which callers add options. An operation gets the values of the command's arguments. */
export function operationsOf(parent: Command, run: Runner) {
  const add = <Options>(usage: string, summary: string, operation: Operation<Options, string[]>): Command => {
    const command = parent.command(usage).description(summary);
    return command.action(
      run((context) =>
        withService<Options>(context, command.optsWithGlobals(), (call) => operation(call, ...command.args)),
      ),
    );
  };
  /** Adds a command that opens a transfer. Its first argument is the transfer-id. */
  const addForTransfer = <Options>(
    name: string,
    summary: string,
    operation: Operation<Options, [access: TransferAccess, ...args: string[]]>,
  ): Command => {
    const opening = async (call: Call<Options & PasswordOptions>, transferId = "", ...args: string[]) =>
      operation(call, await accessTo(call.context, transferId, call.options), ...args);
    const none = new Option("--no-password", "send no password, for transfers that need none");
    return add(name, summary, opening)
      .argument(
        "<transfer-id>",
        "the transfer-id, which differs for each recipient; inlet api received lists it",
      )
      .option("--password-file <file>", "read the password from a file, or from standard input for -")
      .addOption(none.conflicts("passwordFile"));
  };
  return { add, addForTransfer };
}

async function withService<Options>(
  context: Context,
  options: ApiOptions & Options,
  work: (call: Call<Options>) => Promise<Outcome>,
): Promise<Outcome> {
  const { config: path, baseUrl, mailbox } = options;
  const { stop } = context;
  const settings = await loadService({ path, baseUrl, mailbox, env: context.env });
  const clientId = await settings.clientId?.read(stop);
  const token = await settings.token?.read(stop);
  // A new client id is enough for operations without a verified address.
  const service = openClient(settings, clientId ?? makeClientId());
  const verified = async (email: string): Promise<VerifiedAddress> => {
    if (token !== undefined) return { email, token };
    if (clientId === undefined) throw invalid(NO_CLIENT_ID);
    return { email, token: (await service.obtainToken(email, undefined, stop)).token };
  };
  try {
    return await work({ context, stop, options, service, token, verified });
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
