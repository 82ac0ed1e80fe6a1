/** What tests share that stop a daemon at each of its durable steps. */
import { transferPlan } from "./service.ts";

/** How many daemons run at the same time. */
export const AT_ONCE = 2;

/** A message and small files, and a file of many blocks. */
export const PLANS = [
  transferPlan({ trackingId: "t1", message: "Hello", expiresInSeconds: 1000 }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 300_000 } }] }),
];

/**
 * Lives a life for each point, several at a time, until one ends before it comes to its point. How many points there are
 * differs a little from life to life, as notes and journals are written by the clock. Returns how many were reached.
 *
 * @param liveAt says whether that life came to its point.
 */
export async function walkPoints(
  liveAt: (point: number) => Promise<boolean>,
  which: { every?: number; from?: number; last?: number | undefined; atOnce?: number } = {},
): Promise<number> {
  const { every = 1, from = every, last = Number.POSITIVE_INFINITY, atOnce = AT_ONCE } = which;
  let [next, reached, isOver] = [from, 0, false];
  const work = async () => {
    while (!isOver && next <= last) {
      const point = next;
      next += every;
      if (await liveAt(point)) reached++;
      else isOver = true;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return reached;
}
