/** The system's disk, with something around each of its steps. */
import { type Disk, systemDisk } from "../../src/base/disk.ts";

/** `around` gets the name of the step, and runs it. */
export function diskAround(around: (name: string, run: () => unknown) => unknown): Disk {
  const steps = Object.entries<(...args: never[]) => unknown>(systemDisk).map(([name, step]) => {
    const wrapped = async (...args: never[]) => around(name, () => step(...args));
    return [name, wrapped];
  });
  return Object.fromEntries(steps);
}
