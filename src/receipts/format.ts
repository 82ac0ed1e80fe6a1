/** A receipt as text: JSON that people can read, with the version of its form. */
import * as v from "valibot";
import { Fault } from "../base/faults.ts";
import { RECEIPT_VERSION, type Receipt, TRANSITIONS } from "../model/receipt.ts";

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

export function formatReceipt(receipt: Receipt): string {
  return `${JSON.stringify(receipt, null, 2)}\n`;
}

/** Throws `RECEIPT_UNREADABLE` where the text is damaged or of another version. */
export function parseReceipt(text: string, path: string): Receipt {
  const result = v.safeParse(Shape, parseJson(text));
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

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
