/** Does one thing for each of many, so many at once. Every one is begun, whatever becomes of the others. */
export async function runInParallel<Thing>(
  atOnce: number,
  things: readonly Thing[],
  work: (thing: Thing) => Promise<void>,
): Promise<void> {
  const waiting = [...things].reverse();
  const take = async () => {
    for (let thing = waiting.pop(); thing !== undefined; thing = waiting.pop()) await work(thing);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, things.length) }, take));
}

/**
 * The same, but the first failure ends it: nothing more is begun, what runs is told to stop, and when all of it has
 * ended, that failure is thrown.
 */
export async function runUntilFailure<Thing>(
  atOnce: number,
  things: readonly Thing[],
  work: (thing: Thing, signal: AbortSignal) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  let failure: { readonly error: unknown } | undefined;
  await runInParallel(atOnce, things, async (thing) => {
    if (failure !== undefined) return;
    try {
      await work(thing, either);
    } catch (error) {
      failure ??= { error };
      failed.abort();
    }
  });
  if (failure !== undefined) throw failure.error;
}

/** When it returns or throws, none of them is under way any more. Of several failures it throws the first in the list. */
export async function allDone(works: readonly Promise<void>[]): Promise<void> {
  await Promise.allSettled(works);
  await Promise.all(works);
}
