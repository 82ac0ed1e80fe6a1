/**
 * The files that Inlet adds to a delivered folder: the manifest, the sums that `sha256sum -c` checks, and the
 * confidential message. Consumers may change or replace everything in the folder, so all that is read from it is
 * validated.
 */
import { createHash, hash } from "node:crypto";
import { join } from "node:path";
import * as v from "valibot";
import { READ_PLAIN_FILE, withFile } from "../base/files.ts";
import { isPlainName } from "../base/inbox-door.ts";
import { formatJson } from "../base/long-text.ts";
import type { Sum } from "../base/sums.ts";
import { inTurns, nextTurn } from "../base/timers.ts";
import { ReleaseShape, type TransferRecord, VERIFIED, type Verified } from "./record.ts";

export const MANIFEST = "transfer.json";
export const SUMS = "SHA256SUMS";
export const MESSAGE = "message.eml";
/** Added to a folder in quarantine. */
export const REASON = "reason.json";

/** No file of a sender, no marker and no acknowledgement may have one of these names. */
export const RESERVED_NAMES: readonly string[] = [MANIFEST, SUMS, MESSAGE, REASON];

const MANIFEST_VERSION = 2;
/** More than the largest transfer needs, and small enough for memory. */
const MAX_BYTES = 512 * 1024 * 1024;

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

const CONTENTS = {
  subject: v.optional(v.string()),
  /** `refused`: the service does not provide the message, and there may be one. */
  message: v.picklist(["present", "none", "refused"]),
  messageFile: v.optional(MessageShape),
  messageRow: v.optional(MessageRowShape),
  files: v.pipe(v.array(FileShape), v.readonly()),
  /** Received archives; missing if none was to be unpacked. */
  unpacked: v.optional(v.array(ArchiveShape)),
};

/** Everything that a complete transfer consists of. */
export const ContentsShape = v.object(CONTENTS);

/** The name of a file that was delivered by itself; missing for a file in a delivered folder. */
const DELIVERED_AS = { deliveredAs: v.optional(v.string()) };

/** Consumers rely on these keys. */
const ManifestShape = v.object({
  version: v.literal(MANIFEST_VERSION),
  deliveryId: v.string(),
  mailbox: v.string(),
  sender: v.string(),
  trackingId: v.string(),
  transferId: v.string(),
  received: v.optional(v.string()),
  expires: v.optional(v.string()),
  verified: v.picklist(VERIFIED),
  released: v.optional(ReleaseShape),
  ...CONTENTS,
  messageFile: v.optional(v.object({ ...MessageShape.entries, ...DELIVERED_AS })),
  files: v.pipe(v.array(v.object({ ...FILE, ...DELIVERED_AS })), v.readonly()),
});

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
const KEYS = [CONTENTS, FILE, ArchiveShape.entries, MessageShape.entries, MessageRowShape.entries].flatMap(
  Object.keys,
);

/** Equal for equal contents: the order of their keys and the names in their delivery make no difference. */
export async function digestOf(contents: Contents): Promise<string> {
  const { subject, message, messageFile, messageRow, files, unpacked = [] } = contents;
  const digest = createHash("sha256");
  for await (const part of inTurns([{ subject, message, messageFile, messageRow }, ...files, ...unpacked])) {
    digest.update(JSON.stringify(part, KEYS));
  }
  return digest.digest("hex");
}

/** The contents of a manifest, without the names of its delivery. */
export function withoutNames(contents: Contents): Contents {
  return v.parse(ContentsShape, contents);
}

/** `none` for a transfer without files: no checksum proved anything. */
export function verifiedOf({ files }: Contents): Verified {
  const count = files.filter(({ verified }) => verified).length;
  if (count === 0) return "none";
  return count === files.length ? "all" : "some";
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
  const manifest: Manifest = {
    version: MANIFEST_VERSION,
    deliveryId: deliveryId(name, round),
    mailbox,
    sender,
    trackingId,
    transferId,
    received: at.discovered,
    expires,
    verified: verifiedOf(contents),
    released,
    ...contents,
    messageFile: contents.messageFile && withName(contents.messageFile, names),
    files: contents.files.map((file) => withName(file, names)),
  };
  yield* formatJson(manifest);
}

function withName<File extends { readonly name: string }>(file: File, names: DeliveredNames) {
  return names.size === 0 ? file : { ...file, deliveredAs: names.get(file.name) };
}

/** `pathOf`: from the folder of the sums. Safe names need none of the escapes that `sha256sum` knows. */
export function* formatSums(contents: Contents, pathOf = (name: string) => name): Generator<string> {
  for (const { name, sha256 } of filesIn(contents)) yield `${sha256}  ${pathOf(name)}\n`;
}

/** A manifest or sums that cannot be used. The message completes a sentence that begins with the folder. */
export class DamagedFolder extends Error {
  override name = "DamagedFolder";
}

/** The file system refused to read the file. A later attempt may succeed. */
export class RefusedRead extends DamagedFolder {}

/** Throws `DamagedFolder` if the manifest is missing, is not one of ours, or names a file outside the folder. */
export async function readManifest(folder: string, file: string = MANIFEST): Promise<Manifest> {
  const json = parseJson(await readText(folder, file), file);
  // The files may be many.
  await nextTurn();
  // A changed manifest may be wrong in a million places.
  const result = v.safeParse(ManifestShape, json, { abortEarly: true });
  if (!result.success) {
    const key = result.issues[0].path?.map((step) => String(step.key)).join(".");
    throw new DamagedFolder(`${file} is not one of ours: look at ${key ?? "its beginning"}`);
  }
  for (const { name, deliveredAs = name } of filesIn(result.output)) {
    demandPlainName(name, file);
    demandPlainName(deliveredAs, file);
  }
  return result.output;
}

/** The SHA-256 of each file by its name. `within`: how all paths in the sums begin. Throws `DamagedFolder`. */
export async function readSums(
  folder: string,
  file: string = SUMS,
  within = "",
): Promise<Map<string, string>> {
  const sums = new Map<string, string>();
  for (const [index, line] of (await readText(folder, file)).split("\n").entries()) {
    if (line === "") continue;
    const [, sum, path] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? [];
    if (sum === undefined || path === undefined) {
      throw new DamagedFolder(`line ${index + 1} of ${file} is not a sum with a name`);
    }
    const name = path.startsWith(within) ? path.slice(within.length) : path;
    demandPlainName(name, file);
    if (sums.has(name)) throw new DamagedFolder(`${file} names ${JSON.stringify(name)} twice`);
    sums.set(name, sum);
  }
  return sums;
}

const IdShape = v.pick(ManifestShape, ["deliveryId"]);

/** `undefined` if the manifest is missing, or has no id. `refused`: the file system refuses to read it. */
export async function readDeliveryId(
  folder: string,
): Promise<{ readonly id: string | undefined } | "refused"> {
  try {
    return { id: v.parse(IdShape, parseJson(await readText(folder, MANIFEST), MANIFEST)).deliveryId };
  } catch (error) {
    return error instanceof RefusedRead ? "refused" : { id: undefined };
  }
}

async function readText(folder: string, name: string): Promise<string> {
  try {
    return await withFile(join(folder, name), READ_PLAIN_FILE, async (file) => {
      const facts = await file.stat();
      if (!facts.isFile()) throw new DamagedFolder(`${name} is not a plain file`);
      if (facts.size > MAX_BYTES) throw new DamagedFolder(`${name} is larger than any of ours`);
      return file.readText();
    });
  } catch (error) {
    if (!(error instanceof Error && "code" in error)) throw error;
    if (error.code === "ELOOP") throw new DamagedFolder(`${name} is a link`);
    if (error.code === "EISDIR") throw new DamagedFolder(`${name} is a folder`);
    if (error.code === "ENOENT" || error.code === "ENOTDIR") throw new DamagedFolder(`${name} is missing`);
    throw new RefusedRead(`${name} cannot be read (${error.code})`, { cause: error });
  }
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new DamagedFolder(`${file} is not JSON`);
  }
}

/** Every file is in the folder itself: a name with a path is refused. */
function demandPlainName(name: string, where: string): void {
  if (isPlainName(name)) return;
  throw new DamagedFolder(`${where} names ${JSON.stringify(name)}, which is not a name in the folder`);
}
