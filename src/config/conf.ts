/** Loads `conf` without its side effect on signals. */
import { constants } from "node:os";

type SignalName = keyof typeof constants.signals;

/**
 * A package below `conf` catches every signal and sends it to the process a second time, which would make each stop
 * look like an impatient one. It does so to clean up after writes, and we never write: what it installed is removed.
 */
export async function loadConf(): Promise<typeof import("conf").default> {
  const signals = Object.keys(constants.signals) as SignalName[];
  const before = new Map(signals.map((signal) => [signal, process.listeners(signal)]));
  const { default: Conf } = await import("conf");
  for (const signal of signals) {
    for (const listener of process.listeners(signal)) {
      if (before.get(signal)?.includes(listener) !== true) process.removeListener(signal, listener);
    }
  }
  return Conf;
}
