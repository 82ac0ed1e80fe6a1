/**
 * Memory that stays where it is. The kernel of a virtual machine may tell its host what is free, and the host takes it
 * away; whoever writes there next waits until it is back. Which program that is, and for how much, would be chance.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

/** What the kernel tells is made of so many pages at least, as a power of two. */
const SMALLEST_TOLD = "/sys/module/page_reporting/parameters/page_reporting_order";
/** No free piece is as large as the first; the second is the most that some kernels accept. */
const TOO_LARGE = ["11", "10"];

const LEFT_ALONE_MIB = 1024;
const MOST_MIB = 32 * 1024;
const STEP_MIB = 256;
const TAKE = `
  const taken = [];
  for (let left = Number(process.argv[1]); left > 0; left -= ${STEP_MIB})
    taken.push(Buffer.allocUnsafeSlow(${STEP_MIB} * 1024 * 1024).fill(1));
`;

/** Until it is disposed of, if this is such a machine. What the host has taken before is brought back at once. */
export function keepMemory(tell: (text: string) => void): Disposable {
  const before = readIfThere(SMALLEST_TOLD)?.trim();
  if (before === undefined || before === TOO_LARGE[0]) return { [Symbol.dispose]() {} };
  const isKept = TOO_LARGE.some((order) => wasSet(order));
  if (isKept) {
    tell("… takes all free memory once, and keeps the host from taking it away meanwhile");
    const freeMib = Number(/^MemFree: +(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
    const mib = Math.min(freeMib - LEFT_ALONE_MIB, MOST_MIB);
    const { status } = spawnSync(process.execPath, ["-e", TAKE, String(mib)]);
    if (status !== 0) tell("… that much was not to be had: the first runs may take longer");
  } else {
    tell(
      `… the host may take free memory away, and times differ by that: ${SMALLEST_TOLD} cannot be changed`,
    );
  }
  return {
    [Symbol.dispose]() {
      if (isKept) wasSet(before);
    },
  };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function wasSet(order: string): boolean {
  try {
    writeFileSync(SMALLEST_TOLD, order);
    return true;
  } catch {
    return false;
  }
}
