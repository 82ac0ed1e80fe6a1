/**
 * The attempt guard: what may be sent, and what it costs. Wrong passwords destroy transfers, so every attempt is
 * written down as spent before it is made, and only an answer takes that back.
 */
import { scrypt } from "node:crypto";
import { promisify } from "node:util";
import type { Secret } from "../base/secret.ts";
import type { Receipt } from "../model/receipt.ts";
import type { Candidate } from "./candidates.ts";

/** What the guard needs to know of a receipt. */
type Counts = Pick<
  Receipt,
  "trackingId" | "refusedPasswords" | "unansweredPasswords" | "refusedFingerprints"
>;

/** What was spent on a transfer in all: a service counts wrong passwords over all its recipients. */
export interface Spent extends Counts {
  /** Other mailboxes had a part in it. */
  readonly isShared: boolean;
}

/** `known`: it was refused before. `exhausted`: no attempt is left. `reserved`: the last one is a person's. */
export type Permission = "yes" | "known" | "exhausted" | "reserved";

export async function mayTry(spent: Spent, candidate: Candidate, budget: number): Promise<Permission> {
  if (await wasRefused(spent, candidate.password)) return "known";
  if (spent.refusedPasswords >= budget) return "exhausted";
  const forRules = Math.max(1, budget - 1);
  return candidate.origin === "rule" && spent.refusedFingerprints.length >= forRules ? "reserved" : "yes";
}

/** `fellows`: the receipts of other mailboxes that received the same transfer. */
export function sumOf(own: Counts, fellows: readonly Counts[]): Spent {
  const all = [own, ...fellows];
  const sum = (count: (receipt: Counts) => number) => all.reduce((total, it) => total + count(it), 0);
  return {
    trackingId: own.trackingId,
    refusedPasswords: sum((it) => it.refusedPasswords),
    unansweredPasswords: sum((it) => it.unansweredPasswords),
    refusedFingerprints: all.flatMap((it) => it.refusedFingerprints),
    isShared: fellows.some((it) => it.refusedPasswords > 0),
  };
}

/** Before it is sent. */
export function spend<R extends Counts>(receipt: R): R {
  return counted(receipt, receipt.unansweredPasswords + 1, receipt.refusedFingerprints);
}

/** An answer came, and it was not about the password. */
export function giveBack<R extends Counts>(receipt: R): R {
  return counted(receipt, receipt.unansweredPasswords - 1, receipt.refusedFingerprints);
}

/** It was the right one; so were the attempts with it that had no answer. */
export function accept<R extends Counts>(receipt: R): R {
  return counted(receipt, 0, receipt.refusedFingerprints);
}

export async function refuse<R extends Counts>(receipt: R, password: Secret): Promise<R> {
  const fingerprint = await fingerprintOf(password, receipt.trackingId);
  return counted(receipt, receipt.unansweredPasswords - 1, [...receipt.refusedFingerprints, fingerprint]);
}

async function wasRefused(spent: Spent, password: Secret): Promise<boolean> {
  if (spent.refusedFingerprints.length === 0) return false;
  return spent.refusedFingerprints.includes(await fingerprintOf(password, spent.trackingId));
}

/** Slow on purpose: a receipt must not help to find a password by trying. */
async function fingerprintOf(password: Secret, trackingId: string): Promise<string> {
  const derive = promisify(scrypt) as (text: string, salt: string, bytes: number) => Promise<Buffer>;
  return (await derive(password.reveal(), `inlet ${trackingId}`, 16)).toString("hex");
}

function counted<R extends Counts>(receipt: R, unanswered: number, fingerprints: readonly string[]): R {
  const unansweredPasswords = Math.max(unanswered, 0);
  return {
    ...receipt,
    unansweredPasswords,
    refusedFingerprints: fingerprints,
    refusedPasswords: unansweredPasswords + fingerprints.length,
  };
}
