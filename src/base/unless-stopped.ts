/** Waiting for somebody who may never answer, such as a Redis that is away: a stop ends it. */
import { Fault } from "./faults.ts";

/**
 * What `work` comes to; where it has not come to anything `patienceMs` after the stop, throws `STOPPED`. What was asked
 * for may still happen then.
 */
export async function unlessStopped<Result>(
  work: Promise<Result>,
  patienceMs: number,
  signal: AbortSignal,
): Promise<Result> {
  const { promise: given, reject } = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  const onStop = () => {
    timer = setTimeout(() => reject(new Fault("STOPPED")), patienceMs);
  };
  if (signal.aborted) onStop();
  else signal.addEventListener("abort", onStop, { once: true });
  try {
    return await Promise.race([work, given]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onStop);
  }
}
