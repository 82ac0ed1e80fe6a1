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
