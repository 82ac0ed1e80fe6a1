/** What every `api` command needs before it can ask: the client, the address's token, the transfer's password. */
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { Fault } from "../../base/faults.ts";
import { Secret } from "../../base/secret.ts";
import { readServiceSettings, type ServiceSettings } from "../../config/service.ts";
import { openService } from "../../service/open.ts";
import type { ServicePort, TransferAccess, VerifiedAddress } from "../../service/port.ts";
import { askHidden } from "../asking.ts";
import type { Context, Outcome } from "../context.ts";

/** Enough for one person at a terminal. */
const CONNECTIONS = 4;

export interface ApiOptions {
  readonly baseUrl?: string;
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
  const settings = await readServiceSettings(context.env, options.baseUrl);
  const service = openService({
    ...connectionOf(settings),
    clientId: settings.clientId ?? throwawayClientId(),
  });
  try {
    const { token } = settings;
    return await work({ service, token, verified: (email) => verify(context, settings, service, email) });
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
    const content = path === "-" ? await text(context.stdin) : await readFile(path, "utf8");
    return new Secret(content.replace(/\r?\n$/, ""));
  } catch (cause) {
    throw new Fault("CONFIG_INVALID", { detail: `${path} cannot be read`, cause });
  }
}

function connectionOf(settings: ServiceSettings) {
  const { baseUrl, acceptLanguage, ca, cert, key, proxy, timeoutMs } = settings;
  return {
    baseUrl,
    acceptLanguage,
    proxy,
    timeoutMs,
    connections: CONNECTIONS,
    idListForm: "repeat" as const,
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}

async function verify(
  context: Context,
  settings: ServiceSettings,
  service: ServicePort,
  email: string,
): Promise<VerifiedAddress> {
  if (settings.token !== undefined) return { email, token: settings.token };
  if (settings.clientId === undefined) {
    throw new Fault("CONFIG_INVALID", {
      detail: "a verified address needs the client id that is registered for it: set INLET_SERVICE__CLIENTID",
    });
  }
  const { token } = await service.obtainToken(email, undefined, context.stop);
  return { email, token };
}

/** Operations that know nobody still want a client id of the right form. */
function throwawayClientId(): Secret {
  return new Secret(randomBytes(32).toString("hex"));
}

function secretOf(value: string | undefined): Secret | undefined {
  return value ? new Secret(value) : undefined;
}
