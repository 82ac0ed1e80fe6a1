/** The hand-off of one delivery, as it stands in its file. */
import { createHash } from "node:crypto";
import * as v from "valibot";
import type { Delivered, FailedStep, HandoffStep } from "../model/handoff.ts";
import { STEPS } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import type { Receipt } from "../model/receipt.ts";

const ENTRY_VERSION = 1;

const Text = v.optional(v.string());

const Step = v.object({
  /** `failed`: it was given up. */
  state: v.picklist(["pending", "done", "failed"]),
  attempts: v.number(),
  /** The first attempt. */
  since: Text,
  /** Not before then. */
  nextAt: Text,
  /** What the last attempt failed for. */
  error: Text,
});

const Shape = v.object({
  version: v.literal(ENTRY_VERSION),
  /** The same for every attempt to hand over this delivery, whoever makes it. */
  id: v.string(),
  mailbox: v.string(),
  trackingId: v.string(),
  transferId: v.string(),
  sender: v.string(),
  folder: v.string(),
  verified: v.optional(v.picklist(["all", "none"])),
  /** Tells this delivery from others of the same transfer. */
  deliveringAt: v.string(),
  deliveredAt: v.string(),
  /** The name that was kept free for it among the files of the sender. */
  acknowledgement: Text,
  command: v.optional(Step),
  webhook: v.optional(Step),
  /** That nobody collects it. */
  reported: v.optional(v.boolean(), false),
  collectedAt: Text,
  /** The folder is not the delivered one any more, and is not ours to remove. */
  isForeign: v.optional(v.boolean(), false),
  /** When it was first found to be there for as long as it is to be kept: by the clock, and since the machine began. */
  foundOld: v.optional(v.object({ atMs: v.number(), uptimeMs: v.number() })),
  /** Its folder is being removed by us, though nobody collected it: where it is gone, it was us. */
  isRemoving: v.optional(v.boolean(), false),
});

export type Entry = Readonly<v.InferOutput<typeof Shape>>;
export type StepState = Readonly<v.InferOutput<typeof Step>>;

export function makeEntry(receipt: Receipt, handoff: Handoff, nowMs: number): Entry {
  const { mailbox, trackingId, transferId, sender, folder = "", verified, acknowledgement, at } = receipt;
  const step: StepState = { state: "pending", attempts: 0 };
  return {
    version: ENTRY_VERSION,
    id: idOf(receipt),
    mailbox,
    trackingId,
    transferId,
    sender,
    folder,
    verified,
    deliveringAt: at.delivering ?? "",
    deliveredAt: new Date(nowMs).toISOString(),
    acknowledgement,
    ...(handoff.command === undefined ? {} : { command: step }),
    ...(handoff.webhook === undefined ? {} : { webhook: step }),
    reported: false,
    isForeign: false,
    isRemoving: false,
  };
}

export function formatEntry(entry: Entry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** `undefined` where the text is damaged or of another version. */
export function parseEntry(text: string): Entry | undefined {
  try {
    const result = v.safeParse(Shape, JSON.parse(text));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
}

/** Follows from the receipt, so that whoever resumes a delivery comes to the same. */
export function idOf({ mailbox, trackingId, folder, at }: Receipt): string {
  const delivery = JSON.stringify([mailbox, trackingId, folder, at.delivering]);
  return createHash("sha256").update(delivery).digest("hex").slice(0, 32);
}

/** Whether a receipt says already that it was delivered: there is only one way on from `delivering`. */
export function isDelivered(entry: Entry, { state, at }: Receipt): boolean {
  return state !== "delivering" || at.delivering !== entry.deliveringAt;
}

/** Whether it is still this delivery that the receipt speaks of. */
export function isCurrent(entry: Entry, receipt: Receipt): boolean {
  return (receipt.state === "delivered" || receipt.state === "collected") && isLatest(entry, receipt);
}

/** The same, also where the receipt does not say yet that it was delivered. */
function isLatest(entry: Entry, { at }: Receipt): boolean {
  return at.delivering === entry.deliveringAt;
}

/**
 * Which of two deliveries of one transfer counts: the one that the receipt names, though it may not say yet that it was
 * delivered. Only where it names neither do times decide: they may be those of two machines.
 */
export function isOutlived(entry: Entry, by: Entry, receipt: Receipt | undefined): boolean {
  const [isOurs, isTheirs] = [entry, by].map((it) => receipt !== undefined && isLatest(it, receipt));
  return isOurs === isTheirs ? by.deliveringAt > entry.deliveringAt : isTheirs === true;
}

/** Steps that are neither done nor left out of the configuration since. */
export function openSteps(entry: Entry, handoff: Handoff): HandoffStep[] {
  return STEPS.filter((step) => handoff[step] !== undefined && isOpen(entry[step]));
}

export function dueSteps(entry: Entry, handoff: Handoff, nowMs: number): HandoffStep[] {
  return openSteps(entry, handoff).filter((step) => {
    const { state = "done", nextAt } = entry[step] ?? {};
    return state === "pending" && (nextAt === undefined || Date.parse(nextAt) <= nowMs);
  });
}

export function failedSteps(entry: Entry, handoff: Handoff): FailedStep[] {
  return openSteps(entry, handoff).flatMap((step) => {
    const { error: message, state } = entry[step] ?? {};
    return message === undefined ? [] : [{ step, message, willRetry: state === "pending" }];
  });
}

export function deliveredOf({ mailbox, trackingId, sender, folder, deliveredAt }: Entry): Delivered {
  return { mailbox, trackingId, sender, folder, deliveredAt };
}

function isOpen(step: StepState | undefined): boolean {
  return step !== undefined && step.state !== "done";
}
