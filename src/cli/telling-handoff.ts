/** What the log tells of what follows deliveries: one line per change, and one for a receiver that fails for many. */
import type { HandoffWatch } from "../handoff/port.ts";
import type { Delivered, HandoffStep } from "../model/handoff.ts";
import type { Log } from "../observe/log.ts";

export function tellHandoff(log: Log): Omit<HandoffWatch, "recordDamaged"> {
  /** Steps that have failed since they last succeeded. */
  const failing = new Set<HandoffStep>();
  return {
    handedOver(delivered, step) {
      failing.delete(step);
      log.info({ ...factsOf(delivered), step }, "handed over");
    },
    handoffFailed(delivered, step, fault, { attempts, willRetry, output }) {
      const facts = { ...factsOf(delivered), step, fault, attempts, ...(output === "" ? {} : { output }) };
      if (!willRetry) log.error(facts, "the hand-off failed, and was given up: inlet retry tries it again");
      else log[failing.has(step) ? "debug" : "warn"](facts, "the hand-off failed, and is tried again");
      failing.add(step);
    },
    pickedUp: (delivered, how) => log.info({ ...factsOf(delivered), how }, "picked up"),
    overdue: (delivered, sinceMs) =>
      log.warn({ ...factsOf(delivered), forSeconds: Math.round(sinceMs / 1000) }, "not picked up in time"),
    removed: (delivered, after) =>
      log[after === "picked-up" ? "info" : "warn"](
        { ...factsOf(delivered), after },
        "its folder was removed from the inbox",
      ),
    leftInPlace: (delivered) =>
      log.warn(factsOf(delivered), "its folder is not as it was delivered, and is not removed"),
    handoffsSeen: () => {},
    handoffsStuck: (fault) =>
      log.error({ fault }, "hand-offs cannot be read or written, and are tried again"),
    handoffsGoOn: (stuckForMs) =>
      log.info({ stuckForSeconds: Math.round(stuckForMs / 1000) }, "hand-offs go on again"),
  };
}

function factsOf({ mailbox, trackingId, sender, folder }: Delivered) {
  return { mailbox, trackingId, sender, folder };
}
