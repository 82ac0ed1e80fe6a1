/** The two clocks of a machine, which a test moves: time passes on both, and the wall clock can be set. */
import { type Machine, onMachine, systemMachine } from "../../src/base/machine.ts";

export class Clocks {
  wallMs: number;
  #monotonicMs = 5_000;
  readonly clock = { now: () => this.wallMs };
  #machine = this.#newMachine();

  constructor(wallMs: number) {
    this.wallMs = wallMs;
  }

  pass(ms: number): void {
    this.wallMs += ms;
    this.#monotonicMs += ms;
  }

  /** Another process, which remembers nothing. */
  restart(): void {
    this.#machine = this.#newMachine();
  }

  run<Result>(work: () => Result): Result {
    return onMachine(this.#machine, work);
  }

  #newMachine(): Machine {
    return { ...systemMachine, now: () => this.wallMs, monotonicMs: () => this.#monotonicMs };
  }
}
