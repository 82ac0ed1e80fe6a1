/** Which password may be sent: wrong ones destroy transfers. */
import { scrypt } from "node:crypto";
import { promisify } from "node:util";
import type { Secret } from "../base/secret.ts";
import type { SpentAttempts } from "../model/attempts.ts";
import type { Candidate } from "./candidates.ts";

/** `known`: it was refused before. `exhausted`: no attempt is left. `reserved`: the last one is a person's. */
export type Permission = "yes" | "known" | "exhausted" | "reserved";

/** `spent`: without the attempt in question. */
export async function mayTry(
  { spent, fingerprints, allowed }: SpentAttempts,
  { password, origin }: Candidate,
  trackingId: string,
  budget: number,
): Promise<Permission> {
  const isKnown = fingerprints.length > 0 && fingerprints.includes(await fingerprintOf(password, trackingId));
  if (isKnown) return "known";
  if (spent >= allowed) return "exhausted";
  const forRules = Math.max(1, budget - 1);
  return origin === "rule" && fingerprints.length >= forRules ? "reserved" : "yes";
}

/** Slow on purpose: a file must not help to find a password by trying. */
export async function fingerprintOf(password: Secret, trackingId: string): Promise<string> {
  const derive = promisify(scrypt) as (text: string, salt: string, bytes: number) => Promise<Buffer>;
  return (await derive(password.reveal(), `inlet ${trackingId}`, 16)).toString("hex");
}
