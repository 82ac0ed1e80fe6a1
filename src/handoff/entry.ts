/** The outbox entry of one delivery: the state of its steps and of its folder. */
import * as v from "valibot";
import type { FailedStep, HandoffStep } from "../model/handoff.ts";
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
  /** The last output of the command in that attempt. */
  output: Text,
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

/** What follows a delivery: the steps that its end record names, and their settings now. */
export interface Following {
  readonly steps: readonly HandoffStep[];
  readonly handoff: Handoff;
}

const UNTRIED: StepState = { state: "pending", attempts: 0 };

/** A step that the entry does not know was not tried. */
export function stepOf(entry: Entry, step: HandoffStep): StepState {
  return entry[step] ?? UNTRIED;
}

/** Whether losing the entry would lose more than the notice of a pick-up. */
export function needsDurability(
  { expectWithinMs, keep }: Handoff,
  { acknowledgement, placement, steps = [] }: TransferRecord,
): boolean {
  const kept = [keep?.pickedUpMs, keep?.notPickedUpMs];
  const reasons = [...steps, expectWithinMs, ...kept, acknowledgement, placement];
  return reasons.some((reason) => reason !== undefined);
}

/** The entry of a new delivery. */
export function newEntry(steps: readonly HandoffStep[]): Entry {
  return steps.length === 0 ? EMPTY_ENTRY : { ...EMPTY_ENTRY, ...untried(steps) };
}

/** These steps as they are before their first attempt. */
export function untried(steps: readonly HandoffStep[]): Partial<Record<HandoffStep, StepState>> {
  return Object.fromEntries(steps.map((step) => [step, UNTRIED]));
}

export function kindOf(entry: Entry, following: Following): Kind {
  if (openSteps(entry, following).length > 0) return "json";
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

/** Steps that are pending or given up, and still configured. Those of a rule that is gone are open until a person acts. */
export function openSteps(entry: Entry, { steps, handoff }: Following): HandoffStep[] {
  const isWanted = (step: HandoffStep) => handoff[step] !== undefined || handoff.isGone === true;
  return steps.filter((step) => isWanted(step) && stepOf(entry, step).state !== "done");
}

export function dueSteps(entry: Entry, following: Following, nowMs: number): HandoffStep[] {
  if (following.handoff.isGone) return [];
  return openSteps(entry, following).filter((step) => {
    const { state, nextAt } = stepOf(entry, step);
    const leftMs = nextAt === undefined ? 0 : Date.parse(nextAt) - nowMs;
    // A longer wait was recorded while the clock was wrong.
    return state === "pending" && (leftMs <= 0 || leftMs > LONGEST_WAIT_MS);
  });
}

/** Open steps whose last attempt failed, whether they are retried or given up, and those whose rule is gone. */
export function failedSteps(entry: Entry, following: Following): FailedStep[] {
  const { isGone } = following.handoff;
  return openSteps(entry, following).flatMap((step) => {
    const { error, output, state } = stepOf(entry, step);
    const message = isGone ? RULE_GONE : error;
    return message === undefined
      ? []
      : [{ step, message, output, willRetry: state === "pending" && !isGone }];
  });
}

const RULE_GONE =
  "The route that decided about it is no longer configured, so its hand-off does not run. Configure the route again, with the same name and conditions.";
