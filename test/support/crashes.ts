/** What tests share that stop a daemon at each of its durable steps. */
import { transferPlan } from "./service.ts";

/** How many daemons run at the same time. */
export const AT_ONCE = 2;

/** A message and small files, and a file of many blocks. */
export const PLANS = [
  transferPlan({ trackingId: "t1", message: "Hello", expiresInSeconds: 1000 }),
  transferPlan({ trackingId: "t2", files: [{ name: "large.bin", generate: { bytes: 300_000 } }] }),
];
