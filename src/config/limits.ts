/** The groups `limits` and `keep`: concurrency, sizes, bandwidth, and how long records are kept. */
import { coversWeek, makeTimetable } from "../base/timetable.ts";
import type { BandwidthRule, Limits } from "../model/mailbox.ts";
import { type Draft, type KeyPath, showValue } from "./draft.ts";
import { group, type SchemaNode, type Written } from "./schema-nodes.ts";
import type { KeepSettings } from "./settings.ts";
import { readWindow, WINDOW } from "./times.ts";
import { LONG_DURATION, parseRate, parseSize, RATE, readLongDuration, SIZE } from "./units.ts";

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
    transfers: {
      type: "integer",
      minimum: 1,
      maximum: 1000,
      default: 4,
      description:
        "How many transfers a process downloads at once. With several services, it downloads one more for each service after the first.",
    },
    filesPerTransfer: {
      type: "integer",
      minimum: 1,
      maximum: 100,
      default: 4,
      description: "How many files of one transfer to download at once.",
    },
    minFreeSpace: {
      ...SIZE,
      default: "1GiB",
      description:
        "The space that must stay free on the inbox's disk. If a transfer would leave less, the transfer waits.",
    },
    maxTransferSize: {
      ...SIZE,
      minimum: 1,
      default: "1TiB",
      description: "The largest transfer to download. A larger transfer is quarantined, and not downloaded.",
    },
    maxFiles: {
      type: "integer",
      minimum: 1,
      maximum: 10_000_000,
      default: 100_000,
      description:
        "The most files in one transfer. A transfer with more files is quarantined, and not downloaded.",
    },
    bandwidth: BANDWIDTH,
  },
  "Limits of concurrency, size, disk space and bandwidth.",
);

export const KEEP = group(
  {
    ledger: {
      ...LONG_DURATION,
      default: "90d",
      description:
        "How long the records of a transfer are kept after it expires at the service. While the service lists the transfer, they are always kept.",
    },
    history: {
      ...LONG_DURATION,
      default: "730d",
      description:
        "How far `inlet history` goes back. Inlet removes the journal of a month when the whole month is older than this.",
    },
  },
  "How long Inlet keeps its records.",
);

const MIN_BYTES_PER_SECOND = 1024;

/** Problems go to the draft. */
export function readLimits(raw: Written<typeof LIMITS> = {}, zone: string, draft: Draft): Limits {
  const keys = LIMITS.properties;
  const { transfers, filesPerTransfer, minFreeSpace, maxTransferSize, maxFiles, bandwidth } = raw;
  return {
    transfers: transfers ?? keys.transfers.default,
    filesPerTransfer: filesPerTransfer ?? keys.filesPerTransfer.default,
    minFreeBytes: readBytes(minFreeSpace ?? keys.minFreeSpace.default, 0, ["limits", "minFreeSpace"], draft),
    maxTransferBytes: readBytes(
      maxTransferSize ?? keys.maxTransferSize.default,
      1,
      ["limits", "maxTransferSize"],
      draft,
    ),
    maxFiles: maxFiles ?? keys.maxFiles.default,
    bandwidth: readBandwidth(bandwidth ?? keys.bandwidth.default, zone, draft),
  };
}

function readBytes(given: string | number, min: number, path: KeyPath, { problems }: Draft): number {
  const bytes = parseSize(String(given));
  if (bytes !== undefined && bytes >= min) return bytes;
  const wrong = bytes === undefined ? "too large" : "too small for any transfer";
  problems.add(path, `${showValue(given)} is ${wrong}`);
  return 0;
}

function readBandwidth(given: Written<typeof BANDWIDTH>, zone: string, draft: Draft): BandwidthRule[] {
  const path = ["limits", "bandwidth"];
  if (typeof given === "string") return [{ at: undefined, bytesPerSecond: readRate(given, path, draft) }];
  const rules: BandwidthRule[] = [];
  for (const [index, entry] of given.entries()) {
    const last = rules.at(-1);
    if (last !== undefined && (last.at === undefined || coversWeek(last.at))) {
      draft.problems.add([...path, index], "never applies, because the entry before it always does");
    }
    if (entry?.rate === undefined) continue;
    const spans = entry.at === undefined ? undefined : readWindow(entry.at, [...path, index, "at"], draft);
    const at = spans === undefined ? undefined : makeTimetable(zone, spans);
    rules.push({ at, bytesPerSecond: readRate(entry.rate, [...path, index, "rate"], draft) });
  }
  return rules;
}

/** `undefined` for `none`. */
function readRate(text: string, path: KeyPath, { problems }: Draft): number | undefined {
  if (text === "none") return undefined;
  const bytesPerSecond = parseRate(text);
  if (bytesPerSecond !== undefined && bytesPerSecond >= MIN_BYTES_PER_SECOND) return bytesPerSecond;
  const wrong = bytesPerSecond === undefined ? "too large" : "less than 1KiB/s";
  problems.add(path, `${showValue(text)} is ${wrong}`);
  return undefined;
}

/** Problems go to the draft. */
export function readKeep(raw: Written<typeof KEEP> = {}, draft: Draft): KeepSettings {
  const { ledger, history } = KEEP.properties;
  return {
    ledgerMs: readLongDuration(raw.ledger ?? ledger.default, ["keep", "ledger"], draft),
    historyMs: readLongDuration(raw.history ?? history.default, ["keep", "history"], draft),
  };
}
