/** Shared by tests that stop a daemon at each of its durable steps. */
import { transferPlan } from "./service.ts";

/** Daemons that run at the same time. */
export const AT_ONCE = 2;

/** A transfer with a message and small files, and one with a file of many blocks. */
export const PLANS = [
  transferPlan({ trackingId: "t1", message: "Hello", expiresInSeconds: 1000 }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 300_000 } }] }),
];

/**
 * Runs a daemon for each point, several at a time, until one ends before its point. The number of points differs a little
 * from run to run, because notes and journals are written by the clock. Returns how many points were reached.
 *
 * @param runTo resolves to whether the run reached its point.
 */
export async function walkPoints(
  runTo: (point: number) => Promise<boolean>,
  which: { points?: Iterable<number>; atOnce?: number } = {},
): Promise<number> {
  const { points = countBy(1), atOnce = AT_ONCE } = which;
  const next = points[Symbol.iterator]();
  let [reached, isOver] = [0, false];
  const work = async () => {
    while (!isOver) {
      const { value, done } = next.next();
      if (done) return;
      if (await runTo(value)) reached++;
      else isOver = true;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return reached;
}

/** `every`, twice `every`, and so on. */
export function* countBy(every: number, from = every, last = Number.POSITIVE_INFINITY): Generator<number> {
  for (let point = from; point <= last; point += every) yield point;
}
