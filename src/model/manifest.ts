/**
 * The files that Inlet adds to a delivered folder: the manifest, the sums that `sha256sum -c` checks, and the
 * confidential message. Consumers may change or replace everything in the folder, so all that is read from it is
 * validated.
 */
import { createHash, hash } from "node:crypto";
import { join } from "node:path";
import * as v from "valibot";
import { INBOX_ENTRY_BYTES, INBOX_MANIFEST_BYTES, INBOX_SUMS_BYTES } from "../base/bounds.ts";
import {
  DamagedFolder,
  ForeignFile,
  linesOf,
  piecesOf,
  type ReadBound,
  RefusedRead,
} from "../base/foreign-files.ts";
import { isPlainName } from "../base/inbox-door.ts";
import { formatJson, parseLongJson } from "../base/long-text.ts";
import { escapeJson } from "../base/phrases.ts";
import type { Sum } from "../base/sums.ts";
import { inTurns } from "../base/timers.ts";
import { ReleaseShape, type TransferRecord, VERIFIED, type Verified } from "./record.ts";
import { AddresseesShape } from "./transfer.ts";

export const MANIFEST = "transfer.json";
export const SUMS = "SHA256SUMS";
export const MESSAGE = "message.eml";
/** Added to a folder in quarantine. */
export const REASON = "reason.json";

/** No file of a sender, no marker and no acknowledgement may have one of these names. */
export const RESERVED_NAMES: readonly string[] = [MANIFEST, SUMS, MESSAGE, REASON];

const MANIFEST_VERSION = 2;

const FILE = {
  /** Safe on every file system, and unique in the folder. */
  name: v.string(),
  originalName: v.string(),
  size: v.number(),
  /** The sender's checksum; missing if the service has none. */
  checksum: v.optional(v.string()),
  algorithm: v.optional(v.string()),
  sha256: v.string(),
  /** Every checksum of the sender matches, and there is at least one. */
  verified: v.boolean(),
  /** The name of the archive that it was unpacked from; its `originalName` is the path there. */
  from: v.optional(v.string()),
};

export const FileShape = v.object(FILE);

const MessageShape = v.object({ name: v.literal(MESSAGE), size: v.number(), sha256: v.string() });

/**
 * A row of the checksums file that is in no list of files: that of the confidential message. `compared`: its checksum is
 * that of the message file here (`eml`), that of the file from which the service makes the EML (`file`), or not proved.
 */
const MessageRowShape = v.object({
  originalName: v.string(),
  checksum: v.optional(v.string()),
  algorithm: v.optional(v.string()),
  compared: v.picklist(["eml", "file", "none"]),
});

const ArchiveShape = v.object({
  name: v.string(),
  originalName: v.string(),
  size: v.number(),
  sha256: v.string(),
  /** It is among the delivered files. */
  isDelivered: v.boolean(),
  /** How many files were unpacked from it. */
  files: v.number(),
  /** Why it was not unpacked. */
  refused: v.optional(v.string()),
});

/** A file that was sent, and that the service has removed. */
const MissingShape = v.object({
  originalName: v.string(),
  size: v.number(),
  checksum: v.optional(v.string()),
  algorithm: v.optional(v.string()),
  /** In the service's words, if it gives any. */
  cause: v.optional(v.string()),
});

const CONTENTS = {
  subject: v.optional(v.string()),
  /** `refused`: the service does not provide the message, and there may be one. */
  message: v.picklist(["present", "none", "refused"]),
  messageFile: v.optional(MessageShape),
  messageRow: v.optional(MessageRowShape),
  files: v.pipe(v.array(FileShape), v.readonly()),
  missing: v.optional(v.array(MissingShape)),
  /** Received archives; missing if none was to be unpacked. */
  unpacked: v.optional(v.array(ArchiveShape)),
};

/** Everything that a complete transfer consists of. */
export const ContentsShape = v.object(CONTENTS);

/** The name of a file that was delivered by itself; missing for a file in a delivered folder. */
const DELIVERED_AS = { deliveredAs: v.optional(v.string()) };
const DeliveredShape = v.object({ ...FILE, ...DELIVERED_AS });

/** Consumers rely on these keys. */
const ManifestShape = v.object({
  version: v.literal(MANIFEST_VERSION),
  deliveryId: v.string(),
  mailbox: v.string(),
  sender: v.string(),
  trackingId: v.string(),
  transferId: v.string(),
  /** Missing, as a whole or in part: the service does not say. */
  recipients: v.optional(AddresseesShape),
  securityMode: v.optional(v.string()),
  passwordMode: v.optional(v.string()),
  received: v.optional(v.string()),
  expires: v.optional(v.string()),
  verified: v.picklist(VERIFIED),
  released: v.optional(ReleaseShape),
  ...CONTENTS,
  messageFile: v.optional(v.object({ ...MessageShape.entries, ...DELIVERED_AS })),
  files: v.pipe(v.array(DeliveredShape), v.readonly()),
});

type Delivered = { readonly name: string; readonly deliveredAs?: string | undefined };
type AllFiles<File, Message> = {
  readonly files: readonly File[];
  readonly messageFile?: Message | undefined;
};
type MessageFile = Readonly<v.InferOutput<typeof MessageShape>>;
export type MessageRow = Readonly<v.InferOutput<typeof MessageRowShape>>;
export type Contents = Readonly<v.InferOutput<typeof ContentsShape>>;
/** Contents with sums of this process, made since the files were last out of its hands. Only these are delivered. */
export type Proven = Omit<Contents, keyof AllFiles<0, 0>> & AllFiles<ProvenFile, ProvenMessage>;
export type ProvenFile = Contents["files"][number] & { readonly sha256: Sum };
export type ProvenMessage = MessageFile & { readonly sha256: Sum };
export type Manifest = Readonly<v.InferOutput<typeof ManifestShape>>;

/**
 * Identifies a delivery to consumers: in the manifest, to the command and to the webhook. `name`: the ledger's name of
 * the transfer. Every process derives the same id; a redelivery is another round and has another id.
 */
export function deliveryId(name: string, round: number): string {
  return hash("sha256", `${name}~${round}`, "hex").slice(0, 32);
}

/** The keys of contents, and of all objects in them, in the order in which a digest takes them. */
const SHAPES = [MissingShape, ArchiveShape, MessageShape, MessageRowShape].map(({ entries }) => entries);
const KEYS = [CONTENTS, FILE, ...SHAPES].flatMap(Object.keys);

/** Equal for equal contents: the order of their keys and the names in their delivery make no difference. */
export async function digestOf(contents: Contents): Promise<string> {
  const { subject, message, messageFile, messageRow, files, missing = [], unpacked = [] } = contents;
  const digest = createHash("sha256");
  for await (const part of inTurns([
    { subject, message, messageFile, messageRow },
    ...files,
    ...missing,
    ...unpacked,
  ])) {
    digest.update(JSON.stringify(part, KEYS));
  }
  return digest.digest("hex");
}

/** The contents of a manifest, without the names of its delivery. */
export function withoutNames(contents: Contents): Contents {
  return v.parse(ContentsShape, contents);
}

/** `none` for a transfer without files: no checksum proved anything. */
export function verifiedOf({ files, missing = [] }: Contents): Verified {
  const count = files.filter(({ verified }) => verified).length;
  if (count === 0) return "none";
  return count === files.length + missing.length ? "all" : "some";
}

/** Of the sender's files. */
export function bytesOf({ files }: Contents): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** The sender's files, and the message if there is one. */
export function filesIn<File, Message>({ files, messageFile }: AllFiles<File, Message>): (File | Message)[] {
  return messageFile === undefined ? [...files] : [...files, messageFile];
}

/** The names of files that are delivered by themselves, by their names in the contents. */
export type DeliveredNames = ReadonlyMap<string, string>;

/** `name`: the ledger's name of the transfer. */
export function* formatManifest(
  record: TransferRecord,
  name: string,
  contents: Contents,
  names: DeliveredNames = new Map(),
): Generator<string> {
  const { mailbox, sender, trackingId, transferId, expires, round, released, at } = record;
  const { recipients, securityMode, passwordMode } = record;
  const manifest: Manifest = {
    version: MANIFEST_VERSION,
    deliveryId: deliveryId(name, round),
    mailbox,
    sender,
    trackingId,
    transferId,
    recipients,
    securityMode: securityMode || undefined,
    passwordMode,
    received: at.discovered,
    expires,
    verified: verifiedOf(contents),
    released,
    ...contents,
    messageFile: contents.messageFile && withName(contents.messageFile, names),
    files: contents.files.map((file) => withName(file, names)),
  };
  // A terminal may show it to a person.
  for (const piece of formatJson(manifest)) yield escapeJson(piece);
}

function withName<File extends { readonly name: string }>(file: File, names: DeliveredNames) {
  return names.size === 0 ? file : { ...file, deliveredAs: names.get(file.name) };
}

/** `pathOf`: from the folder of the sums. Safe names need none of the escapes that `sha256sum` knows. */
export function* formatSums(contents: Contents, pathOf = (name: string) => name): Generator<string> {
  for (const { name, sha256 } of filesIn(contents)) yield `${sha256}  ${pathOf(name)}\n`;
}

/**
 * What may be read of a delivery's manifest: the file that was written, or where that is not recorded, what so many `files` can
 * need, by the owner of its folder. By default, as much as any manifest of ours.
 */
export function manifestBound(record?: Pick<TransferRecord, "files" | "written">): ManifestBound {
  const { most, few, perFile } = INBOX_MANIFEST_BYTES;
  if (record === undefined) return { maxBytes: most };
  const { files = Number.POSITIVE_INFINITY, written } = record;
  if (written === undefined) return { maxBytes: Math.min(most, few + files * perFile), isOwned: true };
  const { bytes, sha256 } = written.manifest;
  return { maxBytes: bytes, isExact: true, sha256 };
}

/** `sha256`: a manifest with another one is refused. */
export type ManifestBound = ReadBound & { readonly sha256?: string };

/** Throws `DamagedFolder` if the manifest is missing, is not one of ours, or names a file outside the folder. */
export async function readManifest(
  folder: string,
  { sha256, ...bound }: ManifestBound,
  file: string = MANIFEST,
): Promise<Manifest> {
  const hash = createHash("sha256");
  const hashed = async function* () {
    for await (const piece of piecesOf(join(folder, file), bound)) {
      hash.update(piece);
      yield piece;
    }
  };
  const check = <Shape extends v.GenericSchema>(shape: Shape, value: unknown, ...at: (string | number)[]) => {
    // A changed manifest may be wrong in a million places.
    const result = v.safeParse(shape, value, { abortEarly: true });
    if (result.success) return result.output;
    const key = [...at, ...(result.issues[0].path ?? []).map((step) => String(step.key))].join(".");
    throw new DamagedFolder(`${file} is not one of ours: look at ${key || "its beginning"}`);
  };
  const files: Manifest["files"][number][] = [];
  const unpacked: NonNullable<Manifest["unpacked"]> = [];
  const missing: NonNullable<Manifest["missing"]> = [];
  const onItem = (item: unknown, list: string) => {
    if (list === "files") files.push(check(DeliveredShape, item, list, files.length));
    else if (list === "missing") missing.push(check(MissingShape, item, list, missing.length));
    else unpacked.push(check(ArchiveShape, item, list, unpacked.length));
  };
  const json = await parseLongJson(linesOf(hashed(), file), INBOX_ENTRY_BYTES, onItem).catch((error) => {
    throw error instanceof SyntaxError ? new DamagedFolder(`${file} is not JSON`) : error;
  });
  if (sha256 !== undefined && hash.digest("hex") !== sha256)
    throw new ForeignFile(`${file} is not the one that was delivered`);
  const short = check(ManifestShape, json);
  const manifest = {
    ...short,
    files: files.length > 0 ? files : short.files,
    unpacked: unpacked.length > 0 ? unpacked : short.unpacked,
    missing: missing.length > 0 ? missing : short.missing,
  };
  for (const { name, deliveredAs = name } of filesIn<Delivered, Delivered>(manifest)) {
    demandPlainName(name, file);
    demandPlainName(deliveredAs, file);
  }
  return manifest;
}

/**
 * The SHA-256 of each file by its name. `files`: how many there may be. `within`: how all paths in the sums begin. Throws
 * `DamagedFolder`.
 */
export async function readSums(
  folder: string,
  files: number,
  file: string = SUMS,
  within = "",
): Promise<Map<string, string>> {
  const { few, perFile } = INBOX_SUMS_BYTES;
  const sums = new Map<string, string>();
  let number = 0;
  const take = (line: string) => {
    number++;
    if (line === "") return;
    const [, sum, path] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
    if (sum === undefined || path === undefined) {
      throw new DamagedFolder(`line ${number} of ${file} is not a sum with a name`);
    }
    const name = path.startsWith(within) ? path.slice(within.length) : path;
    demandPlainName(name, file);
    if (sums.has(name)) throw new DamagedFolder(`${file} names ${JSON.stringify(name)} twice`);
    sums.set(name, sum);
  };
  const pieces = piecesOf(join(folder, file), { maxBytes: few + files * perFile });
  for await (const lines of linesOf(pieces, file)) for (const line of lines) take(line);
  return sums;
}

/** The beginning of a manifest. */
const ID = /^\s*\{\s*(?:"version"\s*:\s*\d+\s*,\s*)?"deliveryId"\s*:\s*"([^"\\]*)"/;

/**
 * The id at the beginning of a manifest; missing without one. `problem`: why it is not the file that was delivered. `refused`:
 * the file system refuses to read it.
 */
export async function readDeliveryId(folder: string, bound: ReadBound) {
  let problem: string | undefined;
  const note = (why: string) => {
    problem = why;
  };
  try {
    for await (const piece of piecesOf(join(folder, MANIFEST), bound, note))
      return { id: ID.exec(piece.toString())?.[1], problem };
  } catch (error) {
    if (error instanceof RefusedRead) return "refused";
    if (error instanceof ForeignFile) note(error.message);
  }
  return { id: undefined, problem };
}

/** Every file is in the folder itself: a name with a path is refused. */
function demandPlainName(name: string, where: string): void {
  if (isPlainName(name)) return;
  throw new DamagedFolder(`${where} names ${JSON.stringify(name)}, which is not a name in the folder`);
}
