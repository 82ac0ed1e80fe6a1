/** Time as an argument, so that tests never sleep. */
import { machine } from "./machine.ts";

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => machine().now() };
