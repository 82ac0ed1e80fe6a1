/** The groups `limits` and `keep`: concurrency, sizes, bandwidth, and how long records are kept. */
import { coversWeek, makeTimetable } from "../base/timetable.ts";
import type { BandwidthRule, Limits } from "../model/mailbox.ts";
import type { Draft, KeyPath } from "./draft.ts";
import { readKeys } from "./layers.ts";
import { group, key, READ, type SchemaNode, type Written } from "./schema-nodes.ts";
import { readWindow, WINDOW } from "./times.ts";
import { bytesFrom, LONG_DURATION, RATE, SIZE } from "./units.ts";

const BANDWIDTH = {
  type: ["string", "array"],
  title: "none, a rate such as 10MiB/s, or a list of rates and when they apply",
  pattern: RATE.pattern,
  items: {
    type: "object",
    title: "a rate and when it applies",
    properties: {
      at: { ...WINDOW, description: "When the rate applies. Default: always." },
      rate: { ...RATE, description: "The limit for all downloads together, at least 1KiB/s, or `none`." },
    },
    required: ["rate"],
    additionalProperties: false,
  },
  minItems: 1,
  default: "none",
  description:
    "The bandwidth limit for all downloads of the process together, at least 1KiB/s. Either one rate, or a list of rates with times. Of a list, the first entry that covers the current time applies.",
} as const satisfies SchemaNode;

export const LIMITS = group(
  {
    requests: key(
      { type: "integer", minimum: 1, maximum: 1000, default: 16 },
      "The most requests for transfers that a process sends to one service at once. Inlet begins with 6, sends more while that is faster, and fewer while the service refuses requests or answers slowly.",
    ),
    transfers: key(
      { type: "integer", minimum: 1, maximum: 1000, default: 16 },
      "How many transfers a process downloads at once. With several services, it downloads one more for each service after the first.",
    ),
    filesPerTransfer: key(
      { type: "integer", minimum: 1, maximum: 100, default: 16 },
      "How many files of one transfer to download at once.",
    ),
    minFreeSpace: key(
      { ...SIZE, default: "1GiB" },
      "The space that must stay free on the inbox's disk. If a transfer would leave less, the transfer waits.",
    ),
    maxTransferSize: key(
      { ...SIZE, minimum: 1, default: "1TiB", [READ]: bytesFrom(1, "too small for any transfer") },
      "The largest transfer to download. A larger transfer is quarantined, and not downloaded.",
    ),
    maxFiles: key(
      { type: "integer", minimum: 1, maximum: 10_000_000, default: 100_000 },
      "The most files in one transfer. A transfer with more files is quarantined, and not downloaded.",
    ),
    bandwidth: { ...BANDWIDTH, [READ]: readBandwidth },
  },
  "Limits of concurrency, size, disk space and bandwidth.",
);

export const KEEP = group(
  {
    ledger: key(
      { ...LONG_DURATION, default: "90d" },
      "How long the records of a transfer are kept after it expires at the service. While the service lists the transfer, they are always kept.",
    ),
    history: key(
      { ...LONG_DURATION, default: "730d" },
      "How far `inlet history` goes back. Inlet removes the journal of a month when the whole month is older than this.",
    ),
    passwords: key(
      { ...LONG_DURATION, default: "30d" },
      "How long Inlet keeps a password that a person supplied and the service accepted, because `inlet retry`, `release` and `redeliver` need it again. If the transfer expires earlier, Inlet removes the password then.",
    ),
  },
  "How long Inlet keeps its records, and passwords that a person supplied.",
);

/** Problems go to the draft. */
export async function readLimits(raw: Written<typeof LIMITS> = {}, draft: Draft): Promise<Limits> {
  const { minFreeSpace, maxTransferSize, ...limits } = await readKeys(
    LIMITS.properties,
    [{ raw, path: ["limits"] }],
    draft,
  );
  return { ...limits, minFreeBytes: minFreeSpace ?? 0, maxTransferBytes: maxTransferSize ?? 0 };
}

function readBandwidth(given: Written<typeof BANDWIDTH>, path: KeyPath, draft: Draft): BandwidthRule[] {
  const readRate = RATE[READ];
  if (typeof given === "string") return [{ at: undefined, bytesPerSecond: readRate(given, path, draft) }];
  const rules: BandwidthRule[] = [];
  for (const [index, entry] of given.entries()) {
    const last = rules.at(-1);
    if (last !== undefined && (last.at === undefined || coversWeek(last.at))) {
      draft.problems.add([...path, index], "never applies, because the entry before it always does");
    }
    if (entry?.rate === undefined) continue;
    const spans = entry.at === undefined ? undefined : readWindow(entry.at, [...path, index, "at"], draft);
    const at = spans === undefined ? undefined : makeTimetable(draft.zone(), spans);
    rules.push({ at, bytesPerSecond: readRate(entry.rate, [...path, index, "rate"], draft) });
  }
  return rules;
}

/** How long records and accepted passwords are kept; `undefined`: forever. */
export interface KeepSettings {
  /** For the records of a transfer, after it expires. */
  readonly ledgerMs: number | undefined;
  readonly historyMs: number | undefined;
  /** For supplied passwords that the service accepted. Never longer than the transfer. */
  readonly passwordsMs: number | undefined;
}

/** Problems go to the draft. */
export async function readKeep(raw: Written<typeof KEEP> = {}, draft: Draft): Promise<KeepSettings> {
  const { ledger, history, passwords } = await readKeys(KEEP.properties, [{ raw, path: ["keep"] }], draft);
  return { ledgerMs: ledger, historyMs: history, passwordsMs: passwords };
}
