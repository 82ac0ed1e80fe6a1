/** The fields that a poll requests: the wanted ones, or fewer if the service refuses them. */

import { asFault, type Fault } from "../base/faults.ts";
import { monotonicMs } from "../base/timers.ts";

const BASE = "trackingId,status(sender(email),recipients,state)";

/** A service may refuse to select fields that it does not document. */
export const WANTED_FIELDS =
  `${BASE},transfer(expirationDate,confidentialMessageFileId,` +
  "securityMode(name,config(passwordMode)),notificationMessage(subject))";

/** All of these are documented. Without the mode, a password could go to a transfer that takes none. */
const DOCUMENTED = [`${BASE},transfer(expirationDate,securityMode)`, `${BASE},transfer(expirationDate)`];

/** In this order, until one is answered. The second entry is for a failure that may come from a proxy. */
const SELECTIONS: readonly string[] = [WANTED_FIELDS, WANTED_FIELDS, ...DOCUMENTED];

/** A service that refused the wanted fields is asked for them again after this time. */
const RETRY_WANTED_MS = 60 * 60_000;

/** How a service, or a firewall in front of it, may refuse fields that its API does not document. */
const FIELD_REFUSALS: ReadonlySet<string> = new Set([
  "BAD_REQUEST",
  "NOT_FOUND",
  "NO_SUCH_ENDPOINT",
  "NOT_SUPPORTED",
  "ACCESS_REFUSED",
  "POLICY_REFUSED",
]);

/** Refusals that have nothing to do with fields. */
const OTHER_REFUSALS: ReadonlySet<string> = new Set(["STOPPED", "TOKEN_REFUSED", "RATE_LIMITED"]);

export class ListFields {
  /** The service has answered a request for the wanted fields. */
  #knowsWanted = false;
  /** Fewer fields, for which the service has answered after it had refused more; since when, by `monotonicMs()`. */
  #accepted: { readonly fields: string; readonly sinceMs: number } | undefined;

  /**
   * Reads the list with the wanted fields, or with fewer if that fails. Without the wanted fields a confidential message can
   * be missed. So they are requested once more if the failure may come from a proxy, and not from the service itself.
   */
  async read<Result>(read: (fields: string) => Promise<Result>): Promise<Result> {
    const { fields: accepted, sinceMs = 0 } = this.#accepted ?? {};
    if (accepted !== undefined && monotonicMs() - sinceMs <= RETRY_WANTED_MS) return read(accepted);
    this.#accepted = undefined;
    let failure: Fault | undefined;
    for (const fields of SELECTIONS) {
      const isRefused = failure?.answeredBy === "service";
      if (isRefused && fields === WANTED_FIELDS) continue;
      try {
        const result = await read(fields);
        if (fields === WANTED_FIELDS) this.#knowsWanted = true;
        else if (isRefused) this.#accepted = { fields, sinceMs: monotonicMs() };
        return result;
      } catch (error) {
        const fault = asFault(error);
        if (!this.#mayBeRefusal(fault)) throw failure ?? error;
        failure = fault;
      }
    }
    throw failure;
  }

  /** A service that never gave the wanted fields may answer a request for them with any error. */
  #mayBeRefusal({ code, answeredBy }: Fault): boolean {
    if (OTHER_REFUSALS.has(code)) return false;
    if (FIELD_REFUSALS.has(code)) return true;
    return !this.#knowsWanted && answeredBy !== undefined && answeredBy !== "unsent";
  }
}
