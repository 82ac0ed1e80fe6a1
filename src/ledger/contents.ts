/** The files of a transfer for people: from the quarantine, from a stage, or from the delivered folder. */
import { join } from "node:path";
import {
  type Contents,
  deliveryId,
  digestOf,
  type Manifest,
  MESSAGE,
  readManifest,
} from "../model/manifest.ts";
import { isDelivered } from "../model/record.ts";
import type { Story } from "../model/views.ts";
import type { EndRecord } from "./format.ts";
import { nameOf, type StageId } from "./paths.ts";
import type { Rounds } from "./rounds.ts";

const MAX_LISTED = 1_000;

export type ListedFiles = Pick<Story, "contents" | "moreContents">;

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
    return format(await find(stages, async (manifest) => (await digestOf(manifest)) === complete));
  if (!isDelivered(record) && state !== "delivering") return format(undefined);
  const placed = [placing.folderOf(record), folder && join(inbox, folder)].filter((it) => it !== undefined);
  const id = deliveryId(name, round);
  return format(await find([...placed, ...stages], async (manifest) => manifest.deliveryId === id));
}

async function find(
  folders: readonly string[],
  isWanted: (manifest: Manifest) => Promise<boolean>,
): Promise<Contents | undefined> {
  for (const folder of folders) {
    // Consumers may have taken or changed it: the files are not known from there.
    const manifest = await readManifest(folder).catch(() => undefined);
    if (manifest !== undefined && (await isWanted(manifest))) return manifest;
  }
  return undefined;
}

function format(contents: Contents | undefined): ListedFiles {
  if (contents === undefined) return { contents: null, moreContents: 0 };
  const { files, messageFile } = contents;
  const { name = MESSAGE, size = 0, sha256 = "" } = messageFile ?? {};
  const message = { name, originalName: name, size, sha256, verified: false };
  const all = messageFile === undefined ? files : [...files, message];
  return { contents: all.slice(0, MAX_LISTED), moreContents: Math.max(0, all.length - MAX_LISTED) };
}
