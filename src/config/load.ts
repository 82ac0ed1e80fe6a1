/** Loads the configuration from file and environment into complete, checked settings. */

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describeReaders } from "./credentials.ts";
import { type Draft, formatPath, type Spot } from "./draft.ts";
import { checkInboxes, readFolders, runtimeFolders, SOCKET_NAME, socketsOf } from "./folders.ts";
import {
  describeUnknownMailbox,
  findMailbox,
  MAILBOXES,
  type MailboxSettings,
  type Named,
  requireAddress,
} from "./mailboxes.ts";
import { commonRulesFor } from "./passwords.ts";
import { readQueue } from "./queue.ts";
import { entriesOf, readKeys } from "./read.ts";
import { SCHEMA } from "./schema.ts";
import { SERVICE, type ServiceSettings } from "./service.ts";
import { candidatesOf, DEFAULT_PATH, findFile, readSource, type SourceOptions } from "./source.ts";

export interface LoadOptions extends SourceOptions {
  /** The user, who determines the default state folder. */
  readonly uid?: number | undefined;
}

export interface ServiceOptions extends SourceOptions {
  /** The value of `--mailbox`: the name or address of a mailbox whose service to use. */
  readonly mailbox?: string | undefined;
}

/** The keys that are read one by one. Mailboxes inherit `defaults` and `check`, and `readQueue` reads `redis`. */
const { version, defaults, redis, check, ...KEYS } = SCHEMA.properties;

/** The configuration as the program uses it: complete, checked, in plain units. */
export type Settings = Awaited<ReturnType<typeof loadSettings>>;

/** Throws `CONFIG_INVALID`, which names every problem. Reads only files: no network, no commands. */
export async function loadSettings(options: LoadOptions) {
  const { uid = process.getuid?.() } = options;
  const { at, digest } = await readSource(options, SCHEMA.required);
  const { draft } = at;
  // Adds the problem of a wrong time zone, even if no key needs the zone.
  if (at.isSet("timezone")) draft.zone();
  const folders = await readFolders(at, uid);
  const entries = at.at("mailboxes").entries();
  const owners = entries.flatMap((mailbox) => [mailbox, ...mailbox.at("routes").entries()]);
  const inboxes = owners.map((owner) => owner.at("inbox")).filter((inbox) => inbox.isSet());
  checkInboxes(inboxes, folders);
  const { mailboxes = [], passwords = [], notify = [], ...read } = await readKeys(KEYS, at);
  if (entries.length === 0) requireAddress(at.at("service"));
  const services = mailboxes.map(({ service }) => service.baseUrl);
  const common = commonRulesFor(passwords, services, at.at("passwords"));
  const all: readonly MailboxSettings[] = mailboxes.map((mailbox) => ({
    ...mailbox,
    passwords: [...mailbox.passwords, ...common(mailbox.service.baseUrl)],
  }));
  const settings = {
    /** For messages: a path, or `the environment`. */
    source: draft.file ?? "the environment",
    digest,
    ...folders,
    /** The configuration, and the files of its secrets, keys and certificates. */
    files: [draft.file ?? [], ...draft.trusted].flat(),
    /** Where the daemon listens for commands: the first of these that it can use. */
    sockets: socketsOf(folders.inbox, options.env),
    /** For times that people see; `undefined`: the machine's. */
    timezone: read.timezone,
    queue: await readQueue(read, at),
    mailboxes: all,
    limits: read.limits,
    handoff: read.handoff,
    notify,
    keep: read.keep,
    /** `undefined`: there is no console. */
    http: read.http,
    /** `undefined`: each command has its own default. */
    logLevel: read.log.level,
  };
  draft.problems.throwIfAny();
  return { ...settings, warnings: [...draft.warnings, ...(await warnOfPlainSecrets(draft))] };
}

/**
 * Where to find the daemon. Problems of other keys are ignored: a running daemon keeps its old settings. Throws `CONFIG_INVALID`.
 */
export async function loadWhereabouts(
  options: SourceOptions,
): Promise<Pick<Settings, "sockets" | "inbox" | "work" | "state" | "http">> {
  const { at } = await readSource({ ...options, ignoreSecrets: true }, []);
  const { inbox, work, state } = await readFolders(at, process.getuid?.());
  const { http } = await readKeys({ http: SCHEMA.properties.http }, at);
  if (at.isRefused("http", "listen")) at.draft.problems.throwIfAny();
  return { sockets: socketsOf(inbox, options.env), inbox, work, state, http };
}

/**
 * The file that the daemon was started with, and the sockets of all daemons. Works for a file that is not valid, or not YAML
 * at all. Never throws.
 */
export async function findLastSockets(
  options: SourceOptions,
): Promise<{ readonly file: string; readonly sockets: readonly string[] }> {
  // The daemon itself says why it cannot read its configuration.
  const found = await findFile(options).catch(() => undefined);
  const file = found?.file ?? candidatesOf(options).candidates.at(-1) ?? DEFAULT_PATH;
  const sockets = runtimeFolders(options.env).map(async (folder) => {
    // A folder that is missing, or closed to this user, has none for it.
    const names = await readdir(folder).catch(() => []);
    return names.filter((name) => SOCKET_NAME.test(name)).map((name) => join(folder, name));
  });
  return { file, sockets: (await Promise.all(sockets)).flat() };
}

/** The service only, for `inlet api`: inbox and mailboxes may be missing. Throws `CONFIG_INVALID`. */
export async function loadService(options: ServiceOptions): Promise<ServiceSettings> {
  const { at, wanted } = await readSource(options, []);
  const { problems } = at.draft;
  const { service } = await readKeys({ service: SERVICE }, findOwner(options, at));
  if (service === undefined && problems.isEmpty) {
    problems.add(
      [],
      `no service is configured: add --base-url, or set INLET_SERVICE__BASEURL, or service.baseUrl in ${wanted}`,
    );
  }
  // `--base-url` takes precedence over the address of the mailbox.
  const { service: common } = options.baseUrl === undefined ? {} : await readKeys({ service: SERVICE }, at);
  problems.throwIfAny();
  // Without a problem, there is a service. Assigned, because a copy would lose how the settings hide secrets when printed.
  return Object.assign(service ?? {}, common && { baseUrl: common.baseUrl }) as ServiceSettings;
}

function findOwner({ mailbox: wanted }: ServiceOptions, at: Spot): Spot {
  if (wanted === undefined) return at;
  const mailboxes = entriesOf(MAILBOXES.items, at.at("mailboxes"), at);
  const named = mailboxes.map(({ raw }) => (raw ?? {}) as Named);
  const found = mailboxes[findMailbox(named, wanted)];
  if (found === undefined) {
    at.draft.problems.add([], describeUnknownMailbox(named, wanted), { name: "--mailbox" });
  }
  return found ?? at;
}

async function warnOfPlainSecrets({ file, plainSecrets }: Draft): Promise<string[]> {
  if (file === undefined || plainSecrets.length === 0) return [];
  const readers = await describeReaders(file);
  const keys = plainSecrets.map(formatPath).join(", ");
  return readers === undefined ? [] : [`A secret is in plain text (${keys}), and ${readers}`];
}
