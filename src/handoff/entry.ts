/** What the outbox entry of a delivery says about the steps that follow it. */
import { LONGEST_MS, waitLeft } from "../base/waits.ts";
import type { FailedStep, HandoffStep } from "../model/handoff.ts";
import type { Handoff } from "../model/mailbox.ts";
import { EMPTY_ENTRY, type Entry, type Kind, type StepState } from "../model/outbox.ts";
import type { TransferRecord } from "../model/record.ts";

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
export function newEntry(steps: readonly HandoffStep[], isClockRight = true): Entry {
  if (steps.length === 0 && isClockRight) return EMPTY_ENTRY;
  return { ...EMPTY_ENTRY, ...untried(steps), ...keptFrom(isClockRight) };
}

/** From when the folder is kept, by a clock that is right or wrong. */
export function keptFrom(isClockRight: boolean): Pick<Entry, "keptFrom"> {
  return { keptFrom: isClockRight ? undefined : "" };
}

/** These steps as they are before their first attempt. */
export function untried(steps: readonly HandoffStep[]): Partial<Record<HandoffStep, StepState>> {
  return Object.fromEntries(steps.map((step) => [step, UNTRIED]));
}

/** The suffix of the entry's file, as `KINDS` defines it. */
export function kindOf(entry: Entry, following: Following): Kind {
  if (openSteps(entry, following).length > 0) return "json";
  if (entry.pickedUpAt !== undefined) return "kept";
  return entry.reported || entry.problem !== undefined ? "json" : "wait";
}

/** Steps that are pending or given up, and still configured. Those whose owner is gone are open until a person acts. */
export function openSteps(entry: Entry, { steps, handoff }: Following): HandoffStep[] {
  const isWanted = (step: HandoffStep) => handoff[step] !== undefined || handoff.gone?.[step] !== undefined;
  return steps.filter((step) => isWanted(step) && stepOf(entry, step).state !== "done");
}

/** The steps that are due, or were `agoMs` ago. `key`: of the entry. */
export function dueSteps(
  key: string,
  entry: Entry,
  following: Following,
  nowMs: number,
  agoMs = 0,
): HandoffStep[] {
  const { gone = {} } = following.handoff;
  return openSteps(entry, following).filter((step) => {
    const { state, nextAt } = stepOf(entry, step);
    const leftMs = nextAt === undefined ? -agoMs : stepLeft(key, step, nextAt, nowMs);
    // A wait of a clock that was ahead, which each run of `once` would find uncut.
    const isTooLong = leftMs === LONGEST_MS.attempt;
    return state === "pending" && gone[step] === undefined && (leftMs <= -agoMs || isTooLong);
  });
}

/** What is left of the wait for the next attempt. */
export function stepLeft(key: string, step: HandoffStep, nextAt: string, nowMs: number): number {
  return waitLeft(`${key} ${step}`, nextAt, LONGEST_MS.attempt, nowMs);
}

/** Open steps whose last attempt failed, whether they are retried or given up, and those whose owner is gone. */
export function failedSteps(entry: Entry, following: Following): FailedStep[] {
  const { gone = {} } = following.handoff;
  return openSteps(entry, following).flatMap((step) => {
    const { error, output, state } = stepOf(entry, step);
    const owner = gone[step];
    const message = owner === undefined ? error : owner === "mailbox" ? MAILBOX_GONE : ROUTE_GONE;
    return message === undefined
      ? []
      : [{ step, message, output, willRetry: state === "pending" && owner === undefined }];
  });
}

const ROUTE_GONE =
  "The route that decided about it is no longer configured, so its hand-off does not run. Configure the route again, with the same name and conditions";
const MAILBOX_GONE =
  "Its mailbox no longer has this hand-off of its own, so it does not run. Configure it again, for the same address";
