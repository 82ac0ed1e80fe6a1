/** The configuration as a file, and its secrets as files beside it: proven by the loader before it gets its name. */
import { randomBytes } from "node:crypto";
import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { createTextDurably, exists, faultOfDisk, replaceDurably } from "../../base/durable.ts";
import { FAULT_CODES } from "../../base/fault-codes.ts";
import { Fault } from "../../base/faults.ts";
import { makeFolderDurably } from "../../base/folders.ts";
import type { Secret } from "../../base/secret.ts";
import { loadSettings } from "../../config/load.ts";
import type { Settings } from "../../config/settings.ts";
import type { Context } from "../context.ts";
import { type Answers, type GivenSecret, invalid, withoutOurs } from "./answers.ts";

export interface Written {
  readonly settings: Settings;
  /** The files with secrets that were made. */
  readonly secrets: readonly string[];
  /** Where the file that was there before is kept. */
  readonly backup: string | undefined;
}

/** What is to be written: the text for the file, the same as it may be shown, and the secrets that go beside it. */
export interface Draft {
  readonly text: string;
  readonly shown: string;
  readonly secrets: ReadonlyMap<string, Secret>;
  /** Where the client id will stand; missing where it stands in the file itself. */
  readonly clientIdFile: string | undefined;
}

/** Its file beside the configuration. */
export const CLIENT_ID = "client-id";

const HEADER = "# Written by `inlet init`. Every other key, and what it means: config/inlet.example.yaml.\n";

/** Looks for free names; writes nothing. */
export async function draftConfiguration(answers: Answers, target: string): Promise<Draft> {
  const secrets = new Map<string, Secret>();
  const place = async ({ secret, file }: GivenSecret, name: string): Promise<Secret | { file: string }> => {
    if (file !== undefined) return { file };
    if (!answers.inFiles) return secret;
    const path = await freeName(join(dirname(target), name), secrets);
    secrets.set(path, secret);
    return { file: path };
  };
  const clientId = await place(answers.clientId, CLIENT_ID);
  const rules: { sender: string; password: Secret | { file: string } }[] = [];
  for (const { sender, password } of answers.passwords) {
    rules.push({ sender, password: await place(password, `password-${slugOf(sender)}`) });
  }
  const format = (show: (secret: Secret) => string): string => {
    const value = (it: Secret | { file: string }) => ("file" in it ? it : show(it));
    const passwords = rules.map(({ sender, password }) => ({ sender, password: value(password) }));
    const document = {
      service: {
        baseUrl: answers.baseUrl,
        clientId: value(clientId),
        ...(answers.ca === undefined ? {} : { ca: answers.ca }),
      },
      inbox: answers.inbox,
      ...(answers.state === undefined ? {} : { state: answers.state }),
      mailboxes: answers.mailboxes.map((email) => ({
        email,
        ...(passwords.length === 0 ? {} : { passwords }),
      })),
    };
    return HEADER + stringify(document, { lineWidth: 0, aliasDuplicateObjects: false });
  };
  return {
    text: format((secret) => secret.reveal()),
    shown: format(String),
    secrets,
    clientIdFile: "file" in clientId ? clientId.file : undefined,
  };
}

/** All of it or nothing. Throws `CONFIG_INVALID` where the loader would not accept it. */
export async function writeConfiguration(
  { env }: Context,
  { text, secrets }: Draft,
  target: string,
): Promise<Written> {
  await makeFolderDurably(dirname(target), 0o755);
  const made: string[] = [];
  try {
    for (const [path, secret] of secrets) {
      await createTextDurably(path, `${secret.reveal()}\n`);
      made.push(path);
    }
    const settings = await prove(text, target, withoutOurs(env));
    const backup = (await exists(target)) ? await backUp(target) : undefined;
    if (backup === undefined) await createTextDurably(target, text);
    else await replaceDurably(target, text, 0o600);
    return { settings, secrets: made, backup };
  } catch (error) {
    for (const path of made) await rm(path, { force: true });
    throw error;
  }
}

/** Has the loader read it, under a name beside its own, so that relative paths mean the same. */
async function prove(text: string, target: string, env: Context["env"]): Promise<Settings> {
  const draft = join(dirname(target), `.inlet-init-${randomBytes(6).toString("hex")}.yaml`);
  try {
    await writeFile(draft, text, { flag: "wx", mode: 0o600 });
    return await loadSettings({ path: draft, env });
  } catch (error) {
    if (!(error instanceof Fault)) throw faultOfDisk(error, target);
    const detail = error.message.slice(FAULT_CODES[error.code].happened.length).replace(/^: /, "");
    throw error.code === "CONFIG_INVALID" ? invalid(detail.replaceAll(draft, target)) : error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** A copy: the file itself is never away. */
async function backUp(target: string): Promise<string> {
  const before = await readFile(target);
  const backup = await freeName(`${target}.bak`, new Map());
  await createTextDurably(backup, before);
  return backup;
}

async function freeName(path: string, taken: ReadonlyMap<string, unknown>): Promise<string> {
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? path : `${path}-${number}`;
    if (!taken.has(candidate) && !(await exists(candidate))) return candidate;
  }
}

/** `*@supplier.example` → `supplier.example`. */
function slugOf(sender: string): string {
  const plain = sender.replace(/[^A-Za-z0-9.-]+/g, "-").replace(/^[-.]+|[-.]+$/g, "");
  return plain.slice(0, 60) || "all";
}
