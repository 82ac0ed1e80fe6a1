/** The outbox entry of one delivery: the state of its steps and of its folder. */
import * as v from "valibot";
import { type FailedStep, type HandoffStep, STEPS } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import { LONGEST_WAIT_MS, type TransferRecord } from "../model/record.ts";

const ENTRY_VERSION = 1;

const Text = v.optional(v.string());
const Flag = v.optional(v.boolean(), false);

const Step = v.object({
  /** `failed`: given up. */
  state: v.picklist(["pending", "done", "failed"]),
  attempts: v.number(),
  /** Time of the first failed attempt. */
  since: Text,
  /** The next attempt is due then. */
  nextAt: Text,
  /** Why the last attempt failed. */
  error: Text,
});

const Shape = v.object({
  version: v.literal(ENTRY_VERSION),
  /** Where the delivery is, if its end record names another folder. */
  folder: Text,
  command: v.optional(Step),
  webhook: v.optional(Step),
  /** The folder was reported as overdue. */
  reported: Flag,
  pickedUpAt: Text,
  how: v.optional(v.picklist(["taken", "acknowledged"])),
  /** The folder is not ours to remove: it was changed, or we removed it before. */
  isForeign: Flag,
  /** When the folder was first found to be kept long enough. */
  foundOld: v.optional(v.object({ atMs: v.number(), uptimeMs: v.number() })),
  /** We are removing a folder that was not picked up. If it is missing later, we removed it: no consumer took it. */
  isRemoving: Flag,
  removedAt: Text,
});

export type Entry = Readonly<v.InferOutput<typeof Shape>>;
export type StepState = Readonly<v.InferOutput<typeof Step>>;

/** Without steps, before any event. An empty file means this. */
export const EMPTY_ENTRY: Entry = {
  version: ENTRY_VERSION,
  reported: false,
  isForeign: false,
  isRemoving: false,
};

/**
 * How an entry's file name ends, so that entries can be counted by name. `json`: it has an open step, or is
 * overdue. `wait`: it only waits to be picked up. `kept`: it was picked up, and its folder is to be removed later.
 */
export const KINDS = ["kept", "wait", "json"] as const;
export type Kind = (typeof KINDS)[number];

/** Whether losing the entry would lose more than the notice of a pick-up. */
export function needsDurability(
  handoff: Handoff,
  { acknowledgement, placement }: Pick<TransferRecord, "acknowledgement" | "placement">,
): boolean {
  const { command, webhook, expectWithinMs, keep } = handoff;
  const kept = [keep?.pickedUpMs, keep?.notPickedUpMs];
  const reasons = [command, webhook, expectWithinMs, ...kept, acknowledgement, placement];
  return reasons.some((reason) => reason !== undefined);
}

/** The entry of a new delivery. */
export function newEntry(handoff: Handoff): Entry {
  const steps = STEPS.filter((step) => handoff[step] !== undefined);
  return steps.length === 0 ? EMPTY_ENTRY : { ...EMPTY_ENTRY, ...untried(steps) };
}

/** These steps as they are before their first attempt. */
export function untried(steps: readonly HandoffStep[]): Partial<Record<HandoffStep, StepState>> {
  return Object.fromEntries(steps.map((step) => [step, { state: "pending", attempts: 0 } as const]));
}

export function kindOf(entry: Entry, handoff: Handoff): Kind {
  if (openSteps(entry, handoff).length > 0) return "json";
  if (entry.pickedUpAt !== undefined) return "kept";
  return entry.reported ? "json" : "wait";
}

export function formatEntry(entry: Entry): string {
  return `${JSON.stringify(entry)}\n`;
}

/** `undefined` if the text is damaged or of another version. */
export function parseEntry(text: string): Entry | undefined {
  try {
    const result = v.safeParse(Shape, JSON.parse(text));
    return result.success ? result.output : undefined;
  } catch {
    return undefined;
  }
}

/** Steps that are still configured, and pending or given up. */
export function openSteps(entry: Entry, handoff: Handoff): HandoffStep[] {
  return STEPS.filter((step) => handoff[step] !== undefined && (entry[step]?.state ?? "done") !== "done");
}

export function dueSteps(entry: Entry, handoff: Handoff, nowMs: number): HandoffStep[] {
  return openSteps(entry, handoff).filter((step) => {
    const { state, nextAt } = entry[step] ?? {};
    const leftMs = nextAt === undefined ? 0 : Date.parse(nextAt) - nowMs;
    // A longer wait was recorded while the clock was wrong.
    return state === "pending" && (leftMs <= 0 || leftMs > LONGEST_WAIT_MS);
  });
}

/** Open steps whose last attempt failed, whether they are retried or given up. */
export function failedSteps(entry: Entry, handoff: Handoff): FailedStep[] {
  return openSteps(entry, handoff).flatMap((step) => {
    const { error: message, state } = entry[step] ?? {};
    return message === undefined ? [] : [{ step, message, willRetry: state === "pending" }];
  });
}
