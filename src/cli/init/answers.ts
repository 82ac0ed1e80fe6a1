/** What a configuration is made of, as options and environment give it, and whether it can be used. */
import { resolve } from "node:path";
import { Fault } from "../../base/faults.ts";
import { Secret } from "../../base/secret.ts";
import { loadService } from "../../config/load.ts";
import { showValue } from "../../config/problems.ts";
import { SCHEMA } from "../../config/schema.ts";
import { PATH } from "../../config/schema-nodes.ts";
import { CLIENT_ID_PATTERN } from "../../config/schema-service.ts";
import type { ServiceSettings } from "../../config/settings.ts";
import { readSecret } from "../asking.ts";
import type { Context } from "../context.ts";

/** A secret that is to be stored, or one that stands in a file already. */
export interface GivenSecret {
  readonly secret: Secret;
  readonly file?: string;
}

export interface GivenPassword {
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

/** What was given beforehand; the rest is asked for, or missing. */
export type Given = Partial<Answers>;

export interface InitOptions {
  readonly config?: string;
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
  readonly json?: boolean;
}

const EMAIL = new RegExp(SCHEMA.properties.mailboxes.items.properties.email.pattern, "u");

/** Options win over the environment. Throws `CONFIG_INVALID`. */
export async function readGiven(context: Context, options: InitOptions): Promise<Given> {
  const { env } = context;
  const baseUrl = options.baseUrl ?? env["INLET_SERVICE__BASEURL"];
  const inbox = options.inbox ?? env["INLET_INBOX"];
  const { mailbox: mailboxes, state, ca } = options;
  for (const email of mailboxes ?? []) demand(describeWrongEmail(email));
  for (const path of [inbox, state, ca]) if (path !== undefined) demand(describeWrongPath(path));
  const clientId = await readClientId(context, options);
  const passwords = await Promise.all(
    (options.passwordFile ?? []).map((rule) => readPassword(context, rule)),
  );
  return {
    ...(baseUrl ? { baseUrl } : {}),
    ...(ca === undefined ? {} : { ca: resolve(ca) }),
    ...(clientId === undefined ? {} : { clientId }),
    ...(mailboxes === undefined ? {} : { mailboxes }),
    ...(inbox ? { inbox: resolve(inbox) } : {}),
    ...(state === undefined ? {} : { state: resolve(state) }),
    ...(passwords.length === 0 ? {} : { passwords }),
    ...(options.plainSecrets ? { inFiles: false } : {}),
  };
}

/** The service as the configuration will describe it, checked by the same code. Throws `CONFIG_INVALID`. */
export async function describeService(
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

/** The environment without what would set keys: the file has to stand for itself. */
export function withoutOurs(env: Context["env"]): Context["env"] {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^INLET_/i.test(name)));
}

/** What is wrong with it, `undefined` for nothing. */
export function describeWrongEmail(email: string): string | undefined {
  return EMAIL.test(email) ? undefined : `${showValue(email)} is not an email address`;
}

export function describeWrongPath(path: string): string | undefined {
  if (new RegExp(PATH.pattern, "u").test(path)) return undefined;
  return path.startsWith("~") ? `${showValue(path)}: ~ is not expanded here` : "a path must not be empty";
}

export function describeWrongClientId(clientId: Secret): string | undefined {
  const isRight = new RegExp(CLIENT_ID_PATTERN, "u").test(clientId.reveal());
  return isRight ? undefined : "This is no client id: that is 50 to 4000 letters and digits.";
}

async function readClientId(
  context: Context,
  { clientIdFile }: InitOptions,
): Promise<GivenSecret | undefined> {
  const variable = context.env["INLET_SERVICE__CLIENTID"];
  const secret = (await readSecret(context, clientIdFile)) ?? (variable ? new Secret(variable) : undefined);
  if (secret === undefined) return undefined;
  demand(describeWrongClientId(secret));
  const isFile = clientIdFile !== undefined && clientIdFile !== "-";
  return isFile ? { secret, file: resolve(clientIdFile) } : { secret };
}

/** `*@supplier.example=/etc/inlet/supplier`. */
async function readPassword(context: Context, rule: string): Promise<GivenPassword> {
  const [, sender, file] = /^([^=]+)=(.+)$/.exec(rule) ?? [];
  if (sender === undefined || file === undefined) {
    throw invalid(`--password-file ${showValue(rule)} is not of the form SENDER=FILE`);
  }
  const secret = await readSecret(context, file);
  if (secret === undefined || secret.reveal() === "") throw invalid(`${file} is empty`);
  return { sender, password: file === "-" ? { secret } : { secret, file: resolve(file) } };
}

function demand(wrong: string | undefined): void {
  if (wrong !== undefined) throw invalid(wrong.replace(/\.$/, ""));
}

export function invalid(detail: string): Fault {
  return new Fault("CONFIG_INVALID", { detail });
}
