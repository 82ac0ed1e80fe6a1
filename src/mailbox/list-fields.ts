/** The fields that a poll requests: the wanted ones, or fewer if the service itself refuses them. */
import { asFault } from "../base/faults.ts";
import { monotonicMs } from "../base/timers.ts";

const BASE = "trackingId,status(sender(email),recipients,state)";
const NAMED_MODE = "securityMode(name,config(passwordMode))";

export const WANTED_FIELDS =
  `${BASE},transfer(expirationDate,confidentialMessageFileId,` +
  `${NAMED_MODE},notificationMessage(subject))`;

/** Each lacks one more group: a service may refuse fields that it does not document. Without the mode, no rule's password is sent. */
const SELECTIONS: readonly string[] = [
  WANTED_FIELDS,
  `${BASE},transfer(expirationDate,confidentialMessageFileId,${NAMED_MODE})`,
  `${BASE},transfer(expirationDate,securityMode)`,
  `${BASE},transfer(securityMode)`,
  `${BASE},transfer(expirationDate)`,
];

/** A service that refused the wanted fields is asked for them again after this time. */
const RETRY_WANTED_MS = 60 * 60_000;

export class ListFields {
  /** The selection that the last poll was answered, after refusals of all before it; since when, by `monotonicMs()`. */
  #accepted = { at: 0, sinceMs: 0, isConfirmed: false };

  /**
   * Reads the list with the wanted fields, or with fewer if the service says that it does not understand the request. Any
   * other failure says nothing about the fields. Two polls in a row have to find the same, before later ones begin with less.
   */
  async read<Result>(read: (fields: string) => Promise<Result>): Promise<Result> {
    const { at: last, sinceMs, isConfirmed } = this.#accepted;
    const isKnown = isConfirmed && monotonicMs() - sinceMs <= RETRY_WANTED_MS;
    for (let at = isKnown ? last : 0; ; at++) {
      try {
        const result = await read(SELECTIONS[at] ?? BASE);
        if (!isKnown || at !== last)
          this.#accepted = { at, sinceMs: monotonicMs(), isConfirmed: at > 0 && at === last };
        return result;
      } catch (error) {
        const { code, answeredBy } = asFault(error);
        const isRefusal = code === "BAD_REQUEST" && answeredBy === "service";
        if (!isRefusal || at + 1 >= SELECTIONS.length) throw error;
      }
    }
  }
}
