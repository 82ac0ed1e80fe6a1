/** What every `api` command needs before it can ask: the client, the address's token, the transfer's password. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { Fault } from "../../base/faults.ts";
import { Secret } from "../../base/secret.ts";
import { loadService } from "../../config/load.ts";
import type { ServicePort, TransferAccess, VerifiedAddress } from "../../service/port.ts";
import { askHidden } from "../asking.ts";
import { openClient } from "../client.ts";
import type { Context, Outcome } from "../context.ts";

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

export interface Session {
  readonly service: ServicePort;
  /** The token from the configuration. */
  readonly token: Secret | undefined;
  /** The address with a token: the configured one, else one obtained on the strength of the client id. */
  verified(email: string): Promise<VerifiedAddress>;
}

/** Opens the client for the time of one command. */
export async function withService(
  context: Context,
  options: ApiOptions,
  work: (session: Session) => Promise<Outcome>,
): Promise<Outcome> {
  const { config: path, baseUrl, mailbox } = options;
  const settings = await loadService({ path, baseUrl, mailbox, env: context.env });
  const clientId = await settings.clientId?.read(context.stop);
  const token = await settings.token?.read(context.stop);
  const service = openClient(settings, clientId ?? throwawayClientId());
  const verified = async (email: string): Promise<VerifiedAddress> => {
    if (token !== undefined) return { email, token };
    if (clientId === undefined) throw noClientId();
    return { email, token: (await service.obtainToken(email, undefined, context.stop)).token };
  };
  try {
    return await work({ service, token, verified });
  } finally {
    await service.close();
  }
}

/** What opens a transfer: the password comes from a file, the environment, standard input or the person. */
export async function accessTo(
  context: Context,
  transferId: string,
  options: PasswordOptions,
): Promise<TransferAccess> {
  if (options.password === false) return { transferId, password: undefined };
  const password =
    (await readSecret(context, options.passwordFile)) ??
    secretOf(context.env["INLET_PASSWORD"]) ??
    (await askHidden(context, `Password of transfer ${transferId}: `));
  if (password === undefined) {
    throw new Fault("CONFIG_INVALID", {
      detail:
        "no password: give --password-file (- for standard input), set INLET_PASSWORD, or use --no-password",
    });
  }
  return { transferId, password };
}

/** The text of a file, or of standard input for `-`, without the line end that editors add. */
export async function readSecret(context: Context, path: string | undefined): Promise<Secret | undefined> {
  if (path === undefined) return undefined;
  try {
    const content = path === "-" ? await buffer(context.stdin) : await readFile(path);
    return parseSecret(content, path === "-" ? "standard input" : path);
  } catch (cause) {
    if (cause instanceof Fault) throw cause;
    throw new Fault("CONFIG_INVALID", { detail: `${path} cannot be read`, cause });
  }
}

/** One line of UTF-8: anything else is a mistake that would cost an attempt. */
function parseSecret(content: Uint8Array, where: string): Secret {
  let line: string;
  try {
    line = new TextDecoder("utf-8", { fatal: true }).decode(content).replace(/\r?\n$/, "");
  } catch (cause) {
    throw new Fault("PASSWORD_UNUSABLE", { detail: `${where} is not UTF-8 text; nothing was sent`, cause });
  }
  if (/\p{Cc}/u.test(line)) {
    throw new Fault("PASSWORD_UNUSABLE", { detail: `${where} holds more than one line; nothing was sent` });
  }
  return new Secret(line);
}

function noClientId(): Fault {
  return new Fault("CONFIG_INVALID", {
    detail:
      "a verified address needs the client id that is registered for it: give service.clientId or set INLET_SERVICE__CLIENTID",
  });
}

/** Operations that know nobody still want a client id of the right form. */
export function throwawayClientId(): Secret {
  return new Secret(randomBytes(32).toString("hex"));
}

function secretOf(value: string | undefined): Secret | undefined {
  return value ? new Secret(value) : undefined;
}
