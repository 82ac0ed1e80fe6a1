/** How delivered folders are left for whoever takes them. */
import type { Handoff } from "../model/mailbox.ts";
import type { Draft } from "./draft.ts";
import { showValue } from "./problems.ts";
import { SCHEMA } from "./schema.ts";
import { parseMode } from "./units.ts";

const KEYS = SCHEMA.properties.handoff.properties;

/** What Inlet itself writes into a delivered folder. */
const TAKEN_NAMES = ["transfer.json", "SHA256SUMS", "message.eml"];

/** Problems go to the draft. */
export function parseHandoff(draft: Draft): Handoff {
  return {
    fileMode: parsePermissions("fileMode", draft),
    folderMode: parsePermissions("folderMode", draft),
    marker: parseMarker(draft),
  };
}

/** A plain number is refused: whether it was meant as octal digits cannot be told any more. */
function parsePermissions(key: "fileMode" | "folderMode", draft: Draft): number {
  const given = draft.raw.handoff?.[key] ?? KEYS[key].default;
  const mode = typeof given === "string" ? parseMode(given) : undefined;
  if (mode !== undefined) return mode;
  draft.problems.add(
    ["handoff", key],
    `${showValue(given)} could be meant as octal or not: write it as "0640" or 0o640`,
  );
  return 0;
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
