/** The groups `limits` and `keep`: concurrency, sizes, bandwidth, and how long records are kept. */
import { coversWeek, makeTimetable } from "../base/timetable.ts";
import type { BandwidthRule, Limits } from "../model/mailbox.ts";
import type { Spot } from "./draft.ts";
import { entry, group, key, READ, type Read, type ReadItems, type SchemaNode } from "./schema-nodes.ts";
import { WINDOW } from "./times.ts";
import { bytesFrom, LONG_DURATION, RATE, SIZE } from "./units.ts";

const BANDWIDTH = key(
  {
    type: ["string", "array"],
    title: "none, a rate such as 10MiB/s, or a list of rates and when they apply",
    pattern: RATE.pattern,
    items: entry("a rate and when it applies", ["rate"], {
      at: { ...WINDOW, description: "When the rate applies. Default: always." },
      rate: { ...RATE, description: "The limit for all downloads together, at least 1KiB/s, or `none`." },
    }),
    minItems: 1,
    default: "none",
  },
  "The limit for all downloads of the process together, at least 1KiB/s: one rate, or a list of rates with times. The first entry that covers the current time applies.",
);

const LIMITS_FORM = group(
  {
    requests: key(
      { type: "integer", minimum: 1, maximum: 1000, default: 16 },
      "The most requests for transfers that a process sends to one service at once. Inlet begins with 6, and adapts the number to the service.",
    ),
    transfers: key(
      { type: "integer", minimum: 1, maximum: 1000, default: 16 },
      "How many transfers a process downloads at once, and one more for each service after the first.",
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
      { ...SIZE, minimum: 1, default: "1TiB", [READ]: bytesFrom(1, "is too small for any transfer") },
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

const KEEP_FORM = group(
  {
    ledger: key(
      { ...LONG_DURATION, default: "90d" },
      "How long the records of a transfer are kept after it expires. While the service lists it, they are always kept.",
    ),
    history: key(
      { ...LONG_DURATION, default: "730d" },
      "How far `inlet history` goes back. Older months are removed.",
    ),
    passwords: key(
      { ...LONG_DURATION, default: "30d" },
      "How long Inlet keeps a supplied password that the service accepted, for `inlet retry`, `release` and `redeliver`; at most until the transfer expires.",
    ),
  },
  "How long Inlet keeps its records, and passwords that a person supplied.",
);

export const LIMITS = { ...LIMITS_FORM, [READ]: readLimits } as const satisfies SchemaNode;
export const KEEP = { ...KEEP_FORM, [READ]: readKeep } as const satisfies SchemaNode;

function readLimits({ minFreeSpace, maxTransferSize, ...limits }: Read<typeof LIMITS_FORM>): Limits {
  return { ...limits, minFreeBytes: minFreeSpace ?? 0, maxTransferBytes: maxTransferSize ?? 0 };
}

function readBandwidth(given: string | ReadItems<typeof BANDWIDTH.items>, at: Spot): BandwidthRule[] {
  if (typeof given === "string") return [{ at: undefined, bytesPerSecond: RATE[READ](given, at) }];
  const rules: BandwidthRule[] = [];
  for (const [number, entry] of given.entries()) {
    const last = rules.at(-1);
    if (last !== undefined && (last.at === undefined || coversWeek(last.at))) {
      at.refuse("never applies, because the entry before it always does", number);
    }
    if (entry === undefined) continue;
    const hours = entry.at && makeTimetable(at.draft.zone(), entry.at);
    rules.push({ at: hours, bytesPerSecond: entry.rate });
  }
  return rules;
}

/** How long records and accepted passwords are kept; `undefined`: forever. */
function readKeep({ ledger, history, passwords }: Read<typeof KEEP_FORM>) {
  return { ledgerMs: ledger, historyMs: history, passwordsMs: passwords };
}
