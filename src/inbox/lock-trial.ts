/** The second process of the probe's lock trial: prints whether the first one holds the lock. Argument: the path. */
import { tryLock } from "../base/kernel-lock.ts";

const lock = await tryLock(process.argv[2] ?? "", "alone");
process.stdout.write(lock === undefined ? "held" : "free");
lock?.release();
