/**
 * Where the parts of a delivery go, and in which order: for deliveries that are more than one folder with its manifest
 * inside. A placement is stored in the work folder before the round ends, and stays until the delivery is picked up.
 */

import type { BigIntStats } from "node:fs";
import * as v from "valibot";
import { isPlainName, splitPath } from "../base/inbox-door.ts";
import { parseAs } from "../base/json.ts";

const PLACEMENT_VERSION = 1;

const PartShape = v.object({
  /** `folder`: the staged folder itself. `file`: a file in it. `beside`: a file in the folder beside it. */
  from: v.picklist(["folder", "file", "beside"]),
  /** Its staged name; empty for the staged folder itself. */
  name: v.string(),
  /** Its delivered name, in the folder that all parts go to. */
  as: v.string(),
  /** Identifies the part after it was moved, as `identityOf` gives it. */
  identity: v.string(),
  /** Of its file, or of all files in its folder. */
  sum: v.optional(v.string()),
});

const PlacementShape = v.object({
  version: v.literal(PLACEMENT_VERSION),
  deliver: v.picklist(["folder", "files"]),
  /** The folder that all parts go to, from the inbox's root. Empty: the inbox itself. */
  parent: v.string(),
  /** In this order. The parts of a phase are visible and synced before the next phase begins. */
  phases: v.array(v.array(PartShape)),
  /** The phase with the content: the delivery is picked up when its parts are gone. */
  content: v.number(),
  /** The manifest's name beside the content, as in `as`. */
  manifest: v.optional(v.string()),
  /** The manifest is in the delivered folder. */
  isManifestInside: v.optional(v.boolean()),
});

/** A file system gives the inode of a removed file to the next new one, so the times count too. */
export function identityOf(facts: BigIntStats): string {
  const { ino, birthtimeNs, mtimeNs, size } = facts;
  // A consumer may add files to a folder.
  return (facts.isDirectory() ? [ino, birthtimeNs] : [ino, birthtimeNs, mtimeNs, size]).join(":");
}

export type Part = Readonly<v.InferOutput<typeof PartShape>>;
export type Placement = Readonly<v.InferOutput<typeof PlacementShape>>;

/** `content`: what consumers take. `before` and `after`: phases that are placed earlier and later; empty ones are left out. */
export function makePlacement(
  facts: Pick<Placement, "deliver" | "parent" | "manifest" | "isManifestInside">,
  phases: Readonly<Record<"before" | "after", readonly (readonly Part[])[]>> & {
    readonly content: readonly Part[];
  },
): Placement {
  const before = phases.before.filter((parts) => parts.length > 0);
  const after = phases.after.filter((parts) => parts.length > 0);
  const all = [...before, phases.content, ...after].map((parts) => [...parts]);
  return { version: PLACEMENT_VERSION, ...facts, phases: all, content: before.length };
}

/** The placement of one folder with its manifest inside. `folder`: from the inbox's root. */
export function placementOfFolder(folder: string): Placement {
  const { parent, name: as } = splitPath(folder);
  const content = [{ from: "folder", name: "", as, identity: "" } as const];
  return makePlacement(
    { deliver: "folder", parent, isManifestInside: true },
    { before: [], content, after: [] },
  );
}

/** The parts that consumers take: the delivered folder, or all delivered files. */
export function contentOf({ phases, content }: Placement): readonly Part[] {
  return phases[content] ?? [];
}

export function partsOf({ phases }: Placement): readonly Part[] {
  return phases.flat();
}

/** The path of a part, or of another name in the same folder, from the inbox's root. */
export function pathOf({ parent }: Placement, name: string): string {
  return parent === "" ? name : `${parent}/${name}`;
}

/** `undefined` if the text is damaged, of another version, or names a path outside of its folders. */
export function parsePlacement(text: string): Placement | undefined {
  const placement = parseAs(PlacementShape, text);
  if (placement === undefined) return undefined;
  const { parent, manifest, phases, content } = placement;
  const isSafe =
    (parent === "" || parent.split("/").every(isPlainName)) &&
    (manifest === undefined || isPlainName(manifest)) &&
    phases[content] !== undefined &&
    partsOf(placement).every(
      ({ from, as, name }) => isPlainName(as) && (from === "folder" ? name === "" : isPlainName(name)),
    );
  return isSafe ? placement : undefined;
}
