/** Random numbers of the machine. */
import { machine } from "./machine.ts";

export function randomHex(bytes: number): string {
  return machine().randomBytes(bytes).toString("hex");
}

/** Between 0 and 1, for jitter. */
export function random(): number {
  return machine().random();
}
