/** How much at once, and how much at all. */
import type { Limits } from "../model/mailbox.ts";
import type { Draft } from "./draft.ts";
import { showValue } from "./problems.ts";
import { SCHEMA } from "./schema.ts";
import { parseBandwidth } from "./times.ts";
import { parseSize } from "./units.ts";

const KEYS = SCHEMA.properties.limits.properties;

/** Problems go to the draft. `zone`: the time zone. */
export function parseLimits(zone: string, draft: Draft): Limits {
  const { transfers, filesPerTransfer, maxFiles } = draft.raw.limits ?? {};
  return {
    transfers: transfers ?? KEYS.transfers.default,
    filesPerTransfer: filesPerTransfer ?? KEYS.filesPerTransfer.default,
    minFreeBytes: parseBytes("minFreeSpace", 0, draft),
    maxTransferBytes: parseBytes("maxTransferSize", 1, draft),
    maxFiles: maxFiles ?? KEYS.maxFiles.default,
    bandwidth: parseBandwidth(zone, draft),
  };
}

function parseBytes(key: "minFreeSpace" | "maxTransferSize", least: number, draft: Draft): number {
  const given = draft.raw.limits?.[key] ?? KEYS[key].default;
  const bytes = parseSize(String(given));
  if (bytes !== undefined && bytes >= least) return bytes;
  draft.problems.add(
    ["limits", key],
    `${showValue(given)} is ${bytes === undefined ? "more than can be counted" : "too little for any transfer"}`,
  );
  return 0;
}
