/** How long Inlet remembers what it did. */
import type { Draft } from "./draft.ts";
import { showValue } from "./problems.ts";
import { SCHEMA } from "./schema.ts";
import type { KeepSettings } from "./settings.ts";
import { parseLongDuration } from "./units.ts";

const KEYS = SCHEMA.properties.keep.properties;

/** Problems go to the draft. */
export function parseKeep(draft: Draft): KeepSettings {
  return { ledgerMs: parseTime("ledger", draft), historyMs: parseTime("history", draft) };
}

function parseTime(key: keyof typeof KEYS, draft: Draft): number | undefined {
  const given = draft.raw.keep?.[key] ?? KEYS[key].default;
  if (given === "forever") return undefined;
  const timeMs = parseLongDuration(given);
  if (timeMs === undefined) draft.problems.add(["keep", key], `${showValue(given)} is longer than 3650d`);
  return timeMs;
}
