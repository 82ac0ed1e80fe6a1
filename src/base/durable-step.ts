/** Announces each step after which the disk holds something new, so that a test can stop the process at every one. */
import { channel } from "node:diagnostics_channel";

const steps = channel("inlet:durable-step");

/** Announces that a step is done. */
export function durableStep(name: string): void {
  if (steps.hasSubscribers) steps.publish(name);
}
