/** Loads the configuration from file and environment into complete, checked settings. */
import { isTimeZone } from "../base/timetable.ts";
import { describeReaders } from "./credentials.ts";
import { type Draft, formatPath } from "./draft.ts";
import { checkInboxes, type Folders, readFolders } from "./folders.ts";
import { readAddedNames, readHandoff } from "./handoff.ts";
import { readHttp } from "./http.ts";
import { type Layer, layersWithin } from "./layers.ts";
import { readKeep, readLimits } from "./limits.ts";
import {
  describeUnknownMailbox,
  findMailbox,
  type RawMailbox,
  readMailboxes,
  serviceLayers,
} from "./mailboxes.ts";
import { readNotify } from "./notify.ts";
import { readQueue } from "./queue.ts";
import { type RawSettings, SCHEMA } from "./schema.ts";
import { type RawService, readService } from "./service.ts";
import type { HttpSettings, ServiceSettings, Settings } from "./settings.ts";
import { readSource, type Source, type SourceOptions } from "./source.ts";

export interface LoadOptions extends SourceOptions {
  /** The user, who determines the default state folder. */
  readonly uid?: number | undefined;
}

export interface ServiceOptions extends SourceOptions {
  /** The value of `--mailbox`: the name or address of a mailbox whose service to use. */
  readonly mailbox?: string | undefined;
}

/** Throws `CONFIG_INVALID`, which names every problem. Reads only files: no network, no commands. */
export async function loadSettings(options: LoadOptions): Promise<Settings> {
  const { uid = process.getuid?.() } = options;
  const { raw, draft, digest } = await readSource(options, SCHEMA.required);
  // A wrong one is a problem, whether a key needs it or not.
  if (raw.timezone !== undefined) draft.zone();
  const folders = readFolders(raw, draft, uid);
  const inboxes = ownGroups(raw).flatMap((each) => layersWithin([each], "inbox"));
  checkInboxes(inboxes, folders, draft);
  const settings = {
    source: draft.file ?? "the environment",
    digest,
    ...folders,
    timezone: raw.timezone,
    queue: await readQueue(raw, draft),
    mailboxes: await readMailboxes(raw, draft),
    limits: await readLimits(raw.limits, draft),
    handoff: await readHandoff(layersWithin([{ raw, path: [] }], "handoff"), draft),
    notify: await readNotify(raw.notify, draft),
    keep: await readKeep(raw.keep, draft),
    http: await readHttp(raw.http, draft),
    logLevel: raw.log?.level,
  };
  draft.problems.throwIfAny();
  return { ...settings, warnings: [...draft.warnings, ...(await warnOfPlainSecrets(draft))] };
}

/** The mailboxes and their routes. */
function ownGroups({ mailboxes = [] }: RawSettings): Layer<Pick<RawMailbox, "inbox" | "handoff">>[] {
  return mailboxes.flatMap((mailbox = {}, at) => {
    const path = ["mailboxes", at];
    const routes = (mailbox.routes ?? []).map((raw = {}, number) => ({
      raw,
      path: [...path, "routes", number],
    }));
    return [{ raw: mailbox, path }, ...routes];
  });
}

/** The folders and the time zone only, for commands that read the folders. Needs no secret. Throws `CONFIG_INVALID`. */
export async function loadFolders(options: LoadOptions): Promise<Folders & Pick<Settings, "timezone">> {
  const { uid = process.getuid?.() } = options;
  const { raw, draft } = await readSource(options, ["inbox"]);
  const folders = readFolders(raw, draft, uid);
  draft.problems.throwIfAny();
  const { timezone } = raw;
  return { ...folders, timezone: timezone !== undefined && isTimeZone(timezone) ? timezone : undefined };
}

/**
 * The address of the daemon's console; `undefined` for none. Problems of other keys are ignored: a running daemon
 * keeps its old settings. Throws `CONFIG_INVALID`.
 */
export async function loadHttp(options: SourceOptions): Promise<HttpSettings | undefined> {
  const { raw, draft } = await readSource({ ...options, ignoreSecrets: true }, []);
  const http = await readHttp(raw.http, draft);
  if (draft.problems.has(["http", "listen"])) draft.problems.throwIfAny();
  return http;
}

/** Names of files that hand-offs add to delivered folders, of any mailbox. Throws `CONFIG_INVALID`. */
export async function loadAddedNames(options: SourceOptions): Promise<string[]> {
  const { raw, draft } = await readSource(options, []);
  const all = [{ raw, path: [] }, ...ownGroups(raw)];
  const names = readAddedNames(layersWithin<Pick<RawMailbox, "handoff">, "handoff">(all, "handoff"), draft);
  draft.problems.throwIfAny();
  return names;
}

/** The service only, for `inlet api`: inbox and mailboxes may be missing. Throws `CONFIG_INVALID`. */
export async function loadService(options: ServiceOptions): Promise<ServiceSettings> {
  const source = await readSource(options, []);
  const { draft, wanted } = source;
  const service = await readService(layersFor(options, source), draft);
  if (service === undefined && draft.problems.isEmpty) {
    draft.problems.add(
      [],
      `no service is configured: add --base-url, or set INLET_SERVICE__BASEURL, or service.baseUrl in ${wanted}`,
    );
  }
  draft.problems.throwIfAny();
  return service as ServiceSettings;
}

function layersFor(
  { mailbox: wanted, baseUrl }: ServiceOptions,
  { raw, draft }: Source,
): Layer<RawService>[] {
  const { service: common = {}, mailboxes = [] } = raw;
  if (wanted === undefined) return [{ raw: common, path: ["service"] }];
  const at = findMailbox(mailboxes, wanted);
  if (at < 0) draft.problems.add([], describeUnknownMailbox(mailboxes, wanted), { name: "--mailbox" });
  const { baseUrl: ownUrl, ...own } = mailboxes[at]?.service ?? {};
  const isUrlOwn = ownUrl !== undefined && baseUrl === undefined;
  return serviceLayers(common, isUrlOwn ? { ...own, baseUrl: ownUrl } : own, ["mailboxes", at]);
}

async function warnOfPlainSecrets({ file, plainSecrets }: Draft): Promise<string[]> {
  if (file === undefined || plainSecrets.length === 0) return [];
  const readers = await describeReaders(file);
  const keys = plainSecrets.map(formatPath).join(", ");
  return readers === undefined ? [] : [`A secret is in plain text (${keys}), and ${readers}`];
}
