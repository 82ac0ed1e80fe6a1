/** Loads the configuration: from the file and the environment to settings that are complete and checked. */
import type { Handoff } from "../model/mailbox.ts";
import { type Draft, type DraftOptions, readDraft } from "./draft.ts";
import { describeUnknownMailbox, findMailbox } from "./find-mailbox.ts";
import { type Folders, parseFolders } from "./folders.ts";
import { parseHandoff } from "./handoff.ts";
import { parseHttp } from "./http.ts";
import { parseKeep } from "./keep.ts";
import { parseLimits } from "./limits.ts";
import { parseMailboxes, serviceLayers } from "./mailboxes.ts";
import { formatPath } from "./problems.ts";
import { describeReaders } from "./readers.ts";
import { parseQueue } from "./redis.ts";
import { SCHEMA } from "./schema.ts";
import { parseService, type ServiceLayer } from "./service.ts";
import type { HttpSettings, ServiceSettings, Settings } from "./settings.ts";
import { parseTimezone } from "./times.ts";
import { parseWebhook } from "./webhook.ts";

export interface LoadOptions extends DraftOptions {
  /** Whose settings: decides where the state folder is, where none is named. */
  readonly uid?: number | undefined;
}

export interface ServiceOptions extends DraftOptions {
  /** The value of `--mailbox`: a name or address whose own service counts. */
  readonly mailbox?: string | undefined;
}

/** Throws `CONFIG_INVALID`, which names everything that is wrong. Reads only files: no network, no commands. */
export async function loadSettings(options: LoadOptions): Promise<Settings> {
  const { uid = process.getuid?.() } = options;
  const draft = await readDraft(options, SCHEMA.required);
  const zone = parseTimezone(draft);
  const settings = {
    source: draft.file ?? "the environment",
    digest: draft.digest,
    ...parseFolders(draft, uid),
    queue: await parseQueue(draft),
    mailboxes: await parseMailboxes(zone, draft),
    limits: parseLimits(zone, draft),
    handoff: { ...parseHandoff(draft), webhook: await parseWebhook(draft) },
    keep: parseKeep(draft),
    http: await parseHttp(draft),
    logLevel: draft.raw.log?.level,
  };
  draft.problems.throwIfAny();
  return { ...settings, warnings: [...draft.warnings, ...(await warnOfPlainSecrets(draft))] };
}

/** The folders alone, for whoever only looks into them: no secret needs to be readable. Throws `CONFIG_INVALID`. */
export async function loadFolders(options: LoadOptions): Promise<Folders> {
  const { uid = process.getuid?.() } = options;
  const draft = await readDraft(options, ["inbox"]);
  const folders = parseFolders(draft, uid);
  draft.problems.throwIfAny();
  return folders;
}

/**
 * Where a daemon is asked how it is; `undefined` for nowhere. What is wrong elsewhere in the configuration is not looked
 * at: a daemon goes on with the old one. Throws `CONFIG_INVALID`.
 */
export async function loadHttp(options: DraftOptions): Promise<HttpSettings | undefined> {
  const draft = await readDraft({ ...options, ignoreSecrets: true }, []);
  const http = await parseHttp(draft);
  if (draft.problems.has(["http", "listen"])) draft.problems.throwIfAny();
  return http;
}

/** How folders are handed over, for whoever looks at them afterwards. Throws `CONFIG_INVALID`. */
export async function loadHandoff(options: DraftOptions): Promise<Handoff> {
  const draft = await readDraft(options, []);
  const handoff = parseHandoff(draft);
  draft.problems.throwIfAny();
  return handoff;
}

/** The service alone, for work by hand: inbox and mailboxes may be missing. Throws `CONFIG_INVALID`. */
export async function loadService(options: ServiceOptions): Promise<ServiceSettings> {
  const draft = await readDraft(options, []);
  const service = await parseService(layersFor(options, draft), draft);
  if (service === undefined && draft.problems.isEmpty) {
    draft.problems.add(
      [],
      `no service is named: give --base-url or set INLET_SERVICE__BASEURL, or write service.baseUrl into ${draft.wanted}`,
    );
  }
  draft.problems.throwIfAny();
  return service as ServiceSettings;
}

function layersFor({ mailbox: wanted, baseUrl }: ServiceOptions, draft: Draft): ServiceLayer[] {
  const { service: common = {}, mailboxes = [] } = draft.raw;
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
  return readers === undefined ? [] : [`A secret stands in plain text (${keys}), and ${readers}`];
}
