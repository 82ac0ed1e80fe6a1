/** The fields that a poll requests: the wanted ones, or only the needed ones if the service refuses the others. */

import { asFault, type Fault } from "../base/faults.ts";
import { monotonicMs } from "../base/timers.ts";
import type { PollQuery } from "../service/port.ts";

export type Fields = NonNullable<PollQuery["fields"]>;

/** All of them are documented. */
const NEEDED_FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true, state: true },
  transfer: { expirationDate: true },
} as const satisfies Fields;

/** A service may refuse to select fields that it does not know. */
export const WANTED_FIELDS = {
  ...NEEDED_FIELDS,
  transfer: {
    ...NEEDED_FIELDS.transfer,
    confidentialMessageFileId: true,
    securityMode: { config: { passwordMode: true } },
    notificationMessage: { subject: true },
  },
} as const satisfies Fields;

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
  /** The service has given the wanted fields. */
  #hasGivenWanted = false;
  /** When the service itself refused the wanted fields, by `monotonicMs()`. */
  #refusedMs: number | undefined;

  /**
   * Reads the list with the wanted fields, or with the needed ones if that fails. Without the wanted fields a confidential
   * message can be missed. So they are requested once more if the failure may come from a proxy, and not from the service
   * itself.
   */
  async read<Result>(read: (fields: Fields) => Promise<Result>): Promise<Result> {
    if (this.#refusedMs !== undefined && monotonicMs() - this.#refusedMs <= RETRY_WANTED_MS) {
      return read(NEEDED_FIELDS);
    }
    this.#refusedMs = undefined;
    const readWanted = async () => {
      const result = await read(WANTED_FIELDS);
      this.#hasGivenWanted = true;
      return result;
    };
    try {
      return await readWanted().catch((error: unknown) => {
        const fault = asFault(error);
        if (fault.answeredBy === "service" || !this.#mayBeRefusal(fault)) throw error;
        return readWanted();
      });
    } catch (error) {
      const fault = asFault(error);
      if (!this.#mayBeRefusal(fault)) throw error;
      const result = await read(NEEDED_FIELDS).catch(() => {
        throw error;
      });
      if (fault.answeredBy === "service") this.#refusedMs = monotonicMs();
      return result;
    }
  }

  /** A service that never gave the wanted fields may answer a request for them with any error. */
  #mayBeRefusal({ code, answeredBy }: Fault): boolean {
    if (OTHER_REFUSALS.has(code)) return false;
    if (FIELD_REFUSALS.has(code)) return true;
    return !this.#hasGivenWanted && answeredBy !== undefined && answeredBy !== "unsent";
  }
}
