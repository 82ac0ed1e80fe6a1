/** The files of a transfer for people: from the quarantine, from a stage, or from the delivered folder. */
import { join } from "node:path";
import { ForeignFile } from "../base/foreign-files.ts";
import {
  type Contents,
  deliveryId,
  digestOf,
  type Manifest,
  type ManifestBound,
  MESSAGE,
  manifestBound,
  readManifest,
} from "../model/manifest.ts";
import { isDelivered } from "../model/record.ts";
import type { Story } from "../model/views.ts";
import type { EndRecord } from "./format.ts";
import { nameOf, type StageId } from "./paths.ts";
import type { Rounds } from "./rounds.ts";

const MAX_LISTED = 1_000;

export type ListedFiles = Pick<Story, "contents" | "contentsProblem" | "moreContents">;

/** The files of a transfer's last round. `staged`: its stages. `root`: the common inbox. */
export async function listFiles(
  { paths, quarantine, placing }: Rounds,
  root: string,
  record: EndRecord,
  staged: readonly StageId[],
): Promise<ListedFiles> {
  const { state, round, complete, folder, inbox = root } = record;
  const name = nameOf(record);
  if (state === "quarantined") {
    return format((await quarantine.readReason(quarantine.folderOf(name, round)))?.contents);
  }
  const stages = staged.flatMap((id) => [paths.staged(id), paths.placement(id)]);
  if (complete !== undefined)
    return find(stages.map(ofOurs), async (manifest) => (await digestOf(manifest)) === complete);
  if (!isDelivered(record) && state !== "delivering") return format(undefined);
  // Our own folders first.
  const ours = [placing.folderOf(record), ...stages].filter((path) => path !== undefined).map(ofOurs);
  const placed = folder === undefined ? [] : [{ folder: join(inbox, folder), bound: manifestBound(record) }];
  const id = deliveryId(name, round);
  return find([...ours, ...placed], async (manifest) => manifest.deliveryId === id);
}

interface Place {
  readonly folder: string;
  readonly bound: ManifestBound;
}

function ofOurs(folder: string): Place {
  return { folder, bound: manifestBound() };
}

async function find(
  places: readonly Place[],
  isWanted: (manifest: Manifest) => Promise<boolean>,
): Promise<ListedFiles> {
  let problem: string | undefined;
  for (const { folder, bound } of places) {
    // Consumers may have taken or changed it: the files are not known from there.
    const manifest = await readManifest(folder, bound).catch((error: unknown) => {
      if (error instanceof ForeignFile) problem = error.message;
      return undefined;
    });
    if (manifest !== undefined && (await isWanted(manifest))) return format(manifest);
  }
  return format(undefined, problem);
}

function format(contents: Contents | undefined, contentsProblem: string | null = null): ListedFiles {
  if (contents === undefined) return { contents: null, contentsProblem, moreContents: 0 };
  const { files, messageFile } = contents;
  const { name = MESSAGE, size = 0, sha256 = "" } = messageFile ?? {};
  const message = { name, originalName: name, size, sha256, verified: false };
  const all = messageFile === undefined ? files : [...files, message];
  return {
    contents: all.slice(0, MAX_LISTED),
    contentsProblem,
    moreContents: Math.max(0, all.length - MAX_LISTED),
  };
}
