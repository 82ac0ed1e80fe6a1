/** Counts how often a loop lets other work run, without regard to the speed of the machine. */
import { onMachine, systemMachine } from "../../src/base/machine.ts";

/** Runs `work` on a machine whose clock moves a millisecond whenever it is read. */
export async function countTurns(work: () => Promise<unknown>): Promise<number> {
  let [nowMs, turns] = [0, 0];
  const machine = {
    ...systemMachine,
    monotonicMs: () => ++nowMs,
    nextTurn: () => {
      turns++;
      return systemMachine.nextTurn();
    },
  };
  await onMachine(machine, work);
  return turns;
}
