/** What became of the command and the webhook of a delivery that an operator wanted tried again. */
import { setTimeout as pause } from "node:timers/promises";
import { type PeekedStep, peekSteps } from "../handoff/peek.ts";
import type { HandoffStep } from "../model/handoff.ts";
import type { Context, Outcome } from "./context.ts";
import { say } from "./printing.ts";

/** A command may take long: then nobody waits for its end. */
const WAIT_MS = 60_000;
const LOOK_EVERY_MS = 100;

const NAMES: Readonly<Record<HandoffStep, string>> = { command: "The command", webhook: "The webhook" };

/** `before`: what was left to do when it was ordered. `name`: of the transfer's folders. */
export async function tellRetried(
  context: Context,
  before: readonly PeekedStep[],
  work: string,
  name: string,
): Promise<Outcome> {
  const wanted = before.filter(({ state }) => state !== "done").map(({ step }) => step);
  let steps = await peekSteps(work, name);
  for (let waitedMs = 0; waitedMs < WAIT_MS && !context.stop.aborted; waitedMs += LOOK_EVERY_MS) {
    if (!steps.some(isUntried)) break;
    await pause(LOOK_EVERY_MS);
    steps = await peekSteps(work, name);
  }
  const failed = wanted.map((step) =>
    tell(
      context,
      step,
      steps.find((it) => it.step === step),
    ),
  );
  return failed.includes(true) ? "attention" : "fine";
}

/** Whether it failed. One that is not there any more is over: it was done, and somebody has the folder. */
function tell(context: Context, step: HandoffStep, found: PeekedStep | undefined): boolean {
  const name = NAMES[step];
  if (found === undefined || found.state === "done") {
    say(context, `${name} succeeded.`);
    return false;
  }
  if (isUntried(found)) {
    say(context, `${name} is still being tried: inlet status says what becomes of it.`);
    return false;
  }
  const next = found.state === "pending" ? " It is tried again by itself." : "";
  say(context, `${name} failed again: ${found.error ?? "nobody knows why"}.${next}`);
  return true;
}

function isUntried({ state, attempts }: PeekedStep): boolean {
  return state === "pending" && attempts === 0;
}
