/** The client id, and the token that proves a mailbox's address: their form, and when a person has to renew a token. */

import * as v from "valibot";
import { DAY_MS } from "../base/timetable.ts";

export const CLIENT_ID_PATTERN = "^[A-Za-z0-9]{50,4000}$";

/** In the state folder. */
export const CLIENT_ID_FILE = "client-id";

/** A token in the state folder. Its times are in milliseconds since the epoch. */
export const KeptTokenShape = v.object({
  token: v.string(),
  obtained: v.number(),
  /** Missing if the service did not send it. */
  validUntil: v.exactOptional(v.number()),
  /** A person obtained it with a mailed code. */
  byCode: v.exactOptional(v.literal(true)),
});

export type KeptToken = v.InferOutput<typeof KeptTokenShape>;

export interface TokenFacts {
  readonly obtainedMs: number;
  readonly validUntilMs: number;
  /** A person obtained it with a mailed code, and Inlet cannot renew it. */
  readonly isByCode: boolean;
}

/** The token ends soon, and only a person can renew it. */
export interface Renewal {
  /** When the first reminder was due. */
  readonly sinceMs: number;
  readonly validUntilMs: number;
  /** The second reminder is due. A token that lives up to four days has only one. */
  readonly isLastDay: boolean;
}

/** The first reminder comes when this share of the token's life, or this time, is left, whichever is shorter. */
const SHARE = 0.25;
const LONGEST_MS = 7 * DAY_MS;

/** `undefined` if it is too early, Inlet renews the token itself, or the token has ended. After its end, polls fail. */
export function findRenewal(token: TokenFacts | undefined, nowMs: number): Renewal | undefined {
  if (token === undefined || !token.isByCode) return undefined;
  const { obtainedMs, validUntilMs } = token;
  const noticeMs = Math.min((validUntilMs - obtainedMs) * SHARE, LONGEST_MS);
  const [sinceMs, lastMs] = [validUntilMs - noticeMs, validUntilMs - DAY_MS];
  if (nowMs < sinceMs || nowMs >= validUntilMs) return undefined;
  return { sinceMs, validUntilMs, isLastDay: sinceMs < lastMs && nowMs >= lastMs };
}

export function describeRenewal({ validUntilMs }: Renewal): string {
  const until = new Date(validUntilMs).toISOString();
  return `The verification of this address ends at ${until}, and only a person can renew it, with a code that the service mails. Then the mailbox can no longer be polled.`;
}
