/** How delivered folders are left for whoever takes them. */
import type { Handoff } from "../model/mailbox.ts";
import type { Draft } from "./draft.ts";
import { showValue } from "./problems.ts";
import { SCHEMA } from "./schema.ts";
import { parseMode } from "./units.ts";

const KEYS = SCHEMA.properties.handoff.properties;

const OWNER_ALL = 0o700;

/** What Inlet itself writes into a delivered folder. */
const TAKEN_NAMES = ["transfer.json", "SHA256SUMS", "message.eml"];

/** Problems go to the draft. */
export function parseHandoff(draft: Draft): Handoff {
  return {
    fileMode: parsePermissions("fileMode", draft) ?? 0,
    folderMode: parseFolderMode(draft),
    marker: parseMarker(draft),
  };
}

/** A plain number is refused: whether it was meant as octal digits cannot be told any more. */
function parsePermissions(key: "fileMode" | "folderMode", draft: Draft): number | undefined {
  const given = draft.raw.handoff?.[key] ?? KEYS[key].default;
  const mode = typeof given === "string" ? parseMode(given) : undefined;
  if (mode !== undefined) return mode;
  draft.problems.add(
    ["handoff", key],
    `${showValue(given)} could be meant as octal or not: write it as "0640" or 0o640`,
  );
  return undefined;
}

/** A folder that its owner may not write cannot be moved to its place. */
function parseFolderMode(draft: Draft): number {
  const mode = parsePermissions("folderMode", draft);
  if (mode !== undefined && (mode & OWNER_ALL) !== OWNER_ALL) {
    const shown = showValue(draft.raw.handoff?.folderMode);
    draft.problems.add(
      ["handoff", "folderMode"],
      `${shown} must let the owner read, write and enter: begin it with 07`,
    );
  }
  return mode ?? 0;
}

function parseMarker(draft: Draft): string | undefined {
  const marker = draft.raw.handoff?.marker ?? KEYS.marker.default;
  const taken = TAKEN_NAMES.find((name) => name.toLowerCase() === marker.toLowerCase());
  if (taken !== undefined) {
    draft.problems.add(
      ["handoff", "marker"],
      `${showValue(marker)} cannot be used: Inlet writes ${taken} itself`,
    );
  }
  return marker === "none" ? undefined : marker;
}
