/**
 * A receipt as text: lines of JSON, with the version of its form. The last line counts; those before it are what it said
 * earlier.
 */
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import { isFinal, RECEIPT_VERSION, type Receipt, TRANSITIONS } from "../model/receipt.ts";

const Text = v.optional(v.string());

const Shape = v.object({
  version: v.literal(RECEIPT_VERSION),
  mailbox: v.string(),
  trackingId: v.string(),
  transferId: v.string(),
  sender: v.string(),
  state: v.picklist(Object.keys(TRANSITIONS) as (keyof typeof TRANSITIONS)[]),
  reason: Text,
  message: Text,
  noAttemptsLeft: v.optional(v.boolean()),
  until: Text,
  expires: Text,
  passwordInLink: v.boolean(),
  folder: Text,
  verified: v.optional(v.picklist(["all", "none"])),
  acknowledgement: Text,
  released: v.optional(v.boolean(), false),
  acknowledged: v.optional(v.boolean()),
  fence: v.number(),
  attempts: v.number(),
  refusedPasswords: v.number(),
  unansweredPasswords: v.number(),
  refusedFingerprints: v.array(v.string()),
  at: v.record(v.string(), v.string()),
});

/** One line, to begin a file with or to be appended. */
export function formatReceipt(receipt: Receipt): string {
  return `${JSON.stringify(receipt)}\n`;
}

/** Throws `RECEIPT_UNREADABLE` where the text is damaged or of another version. */
export function parseReceipt(text: string, path: string): Receipt {
  const [last = ""] = linesFromEnd(text);
  return parseLine(last, path);
}

/** The same for one that is open: a last word counts only where final receipts are, and there it is not yet. */
export function parseOpenReceipt(text: string, path: string): Receipt {
  for (const line of linesFromEnd(text)) {
    const receipt = parseLine(line, path);
    if (!isFinal(receipt)) return receipt;
  }
  return parseLine("", path);
}

function parseLine(line: string, path: string): Receipt {
  const result = v.safeParse(Shape, parseJson(line));
  if (result.success) return { ...EMPTY, ...result.output } as Receipt;
  const [issue] = result.issues;
  const place = issue?.path?.map((step) => String(step.key)).join(".") ?? "the file";
  throw new Fault("RECEIPT_UNREADABLE", { detail: `${path}: ${place} should be ${issue?.expected}` });
}

/** What JSON leaves out because there is nothing to say. */
const EMPTY = {
  reason: undefined,
  message: undefined,
  until: undefined,
  expires: undefined,
  folder: undefined,
};

/**
 * A power cut can leave the beginning of a line, or zeros in place of some of it: such a line was never on the disk, and
 * nobody went on because of it. Any other line that cannot be read is damaged.
 */
function* linesFromEnd(text: string): Generator<string, void, undefined> {
  for (let end = text.lastIndexOf("\n"); end > 0; ) {
    const before = text.lastIndexOf("\n", end - 1);
    const line = text.slice(before + 1, end);
    if (!line.includes("\0")) yield line;
    end = before;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
