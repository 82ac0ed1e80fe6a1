/** Waiting to be told to stop. */
import { once } from "node:events";

/** A signal alone does not keep the process alive: a timer does. */
export async function untilStopped(stop: AbortSignal): Promise<void> {
  if (stop.aborted) return;
  const alive = setInterval(() => {}, 2 ** 31 - 1);
  try {
    await once(stop, "abort");
  } finally {
    clearInterval(alive);
  }
}
