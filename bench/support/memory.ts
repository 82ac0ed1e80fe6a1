/**
 * Keeps the memory of a virtual machine. Its kernel may report free pages to the host, which takes them away; the next
 * program that writes there waits until they are back. Chance would decide which program pays.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";

/** The smallest number of pages that the kernel reports, as a power of two. */
const REPORTING_ORDER = "/sys/module/page_reporting/parameters/page_reporting_order";
/** No free block is as large as the first; the second is the maximum on some kernels. */
const TOO_LARGE = ["11", "10"];

const SPARED_MIB = 1024;
const MAX_MIB = 32 * 1024;
const STEP_MIB = 256;
const TAKE = `
  const taken = [];
  for (let left = Number(process.argv[1]); left > 0; left -= ${STEP_MIB})
    taken.push(Buffer.allocUnsafeSlow(${STEP_MIB} * 1024 * 1024).fill(1));
`;

/** Stops the reports until it is disposed, and first touches all free memory to get it back from the host. */
export function keepMemory(log: (text: string) => void): Disposable {
  const before = readIfPresent(REPORTING_ORDER)?.trim();
  if (before === undefined || before === TOO_LARGE[0]) return { [Symbol.dispose]() {} };
  const isKept = TOO_LARGE.some((order) => trySetOrder(order));
  if (isKept) {
    log("… touching all free memory, and keeping the host from taking it away");
    const freeMib = Number(/^MemFree: +(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
    const mib = Math.min(freeMib - SPARED_MIB, MAX_MIB);
    const { status } = spawnSync(process.execPath, ["-e", TAKE, String(mib)]);
    if (status !== 0) log("… not enough memory: the first runs may take longer");
  } else {
    log(`… times may vary, because the host may take free memory away: cannot write ${REPORTING_ORDER}`);
  }
  return {
    [Symbol.dispose]() {
      if (isKept) trySetOrder(before);
    },
  };
}

function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

function trySetOrder(order: string): boolean {
  try {
    writeFileSync(REPORTING_ORDER, order);
    return true;
  } catch {
    return false;
  }
}
