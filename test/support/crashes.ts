/** What tests share that stop a daemon at each of its durable steps. */
import { join } from "node:path";
import { ROOT } from "./root.ts";
import { transferPlan } from "./service.ts";

/** How many daemons run at the same time. */
export const AT_ONCE = 2;

/** Hundreds of processes load the same files: a cache of what was compiled makes each start faster. */
export const CACHED_START = { NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/compiled") };

/** A message and small files, and a file of many blocks. */
export const PLANS = [
  transferPlan({ trackingId: "t1", message: "Hello", expiresInSeconds: 1000 }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 300_000 } }] }),
];
