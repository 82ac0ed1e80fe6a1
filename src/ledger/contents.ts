/** The files of a transfer for people: from the quarantine, from a stage, or from the delivered folder. */
import { join } from "node:path";
import {
  type Contents,
  deliveryId,
  digestOf,
  filesIn,
  type Manifest,
  readManifest,
} from "../model/manifest.ts";
import { isDelivered } from "../model/record.ts";
import type { Story } from "../model/views.ts";
import type { EndRecord } from "./format.ts";
import { type LedgerPaths, nameOf, type StageId } from "./paths.ts";
import type { Rounds } from "./rounds.ts";

/** Files that are listed of one transfer. */
const MAX_LISTED = 1_000;
/** A consumer may have replaced the manifest by a file of any size. */
const MAX_MANIFEST_BYTES = 32 * 1024 * 1024;

export type ListedFiles = Pick<Story, "contents" | "moreContents">;

/** Where contents are looked for. */
export interface Places {
  readonly paths: LedgerPaths;
  readonly rounds: Pick<Rounds, "quarantine" | "placing">;
  /** The common inbox. */
  readonly inbox: string;
}

/**
 * The contents of a transfer's last round; `undefined` if they are not known, or no longer there. `staged`: the stages of
 * the transfer.
 */
export async function findContents(
  { paths, rounds: { quarantine, placing }, ...common }: Places,
  record: EndRecord,
  staged: readonly StageId[],
): Promise<Contents | undefined> {
  const { state, round, complete, folder, inbox = common.inbox } = record;
  const name = nameOf(record);
  if (state === "quarantined") {
    return (await quarantine.readReason(quarantine.folderOf(name, round)))?.contents;
  }
  const stages = staged.flatMap((id) => [paths.staged(id), paths.placement(id)]);
  if (complete !== undefined) return findManifest(stages, (manifest) => digestOf(manifest) === complete);
  if (!isDelivered(record) && state !== "delivering") return undefined;
  const placed = [placing.folderOf(record), folder && join(inbox, folder)].filter((it) => it !== undefined);
  const id = deliveryId(name, round);
  return findManifest([...placed, ...stages], (manifest) => manifest.deliveryId === id);
}

/** The first manifest in these folders that `isWanted`. */
async function findManifest(
  folders: readonly string[],
  isWanted: (manifest: Manifest) => boolean,
): Promise<Contents | undefined> {
  for (const folder of folders) {
    // Consumers may have taken or changed it: the files are not known from there.
    const manifest = await readManifest(folder, undefined, MAX_MANIFEST_BYTES).catch(() => undefined);
    if (manifest !== undefined && isWanted(manifest)) return manifest;
  }
  return undefined;
}

export function listFiles(contents: Contents | undefined): ListedFiles {
  if (contents === undefined) return { contents: null, moreContents: 0 };
  const all = filesIn(contents);
  const files = new Map(contents.files.map((file) => [file.name, file]));
  const listed = all.slice(0, MAX_LISTED).map(({ name, size, sha256 }) => {
    const { originalName = name, checksum = null, algorithm = null, verified } = files.get(name) ?? {};
    return { name, originalName, size, sha256, checksum, algorithm, verified: verdictOf(verified, checksum) };
  });
  return { contents: listed, moreContents: all.length - listed.length };
}

/** Null: the service has no checksum for the file. */
function verdictOf(isVerified: boolean | undefined, checksum: string | null): boolean | null {
  return isVerified === true || checksum !== null ? isVerified === true : null;
}
