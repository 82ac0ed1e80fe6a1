/** The fields that a poll requests: the wanted ones, or fewer if the service itself refuses them. */
import { asFault } from "../base/faults.ts";
import { monotonicMs } from "../base/timers.ts";

const BASE = "trackingId,status(sender(email),recipients,state)";

/**
 * What a service may refuse, in the order in which it is left out. `named`: more of the mode. Without the mode, no rule's
 * password is sent, so it is the last.
 */
const OPTIONAL = {
  subject: "notificationMessage(subject)",
  message: "confidentialMessageFileId",
  named: "securityMode(name,config(passwordMode))",
  recipients: "recipients(to,cc)",
  expiry: "expirationDate",
  mode: "securityMode",
};
type Part = keyof typeof OPTIONAL;
const PARTS = Object.keys(OPTIONAL) as Part[];

/** What a service refused is requested again after this time, one part at each poll. */
const RETRY_MS = 60 * 60_000;

export const WANTED_FIELDS = fieldsOf(PARTS);

export class ListFields {
  /** Refused, as far as is known. */
  #left: readonly Part[] = [];
  /** Parts that were refused by themselves. */
  #tried: readonly Part[] = [];
  #sinceMs = 0;
  /** The last two polls had to leave out the same. */
  #isConfirmed = false;

  /**
   * Reads the list with the wanted fields, or with fewer if the service says that it does not understand the request. Any
   * other failure says nothing about the fields. Two polls in a row have to find the same, before later ones begin with less.
   * These request what else was left out once more, part by part: only one of them may have been refused.
   */
  async read<Result>(read: (fields: string) => Promise<Result>): Promise<Result> {
    if (monotonicMs() - this.#sinceMs > RETRY_MS) {
      this.#tried = [];
      this.#sinceMs = monotonicMs();
    }
    const again = this.#isConfirmed ? this.#left.find((part) => !this.#tried.includes(part)) : undefined;
    const known = this.#isConfirmed ? this.#left : [];
    let left: readonly Part[] = known.filter((part) => part !== again);
    for (let isFirst = true; ; isFirst = false) {
      try {
        const result = await read(fieldsOf(PARTS.filter((part) => !left.includes(part))));
        this.#accept(left);
        return result;
      } catch (error) {
        const { code, answeredBy } = asFault(error);
        const next = PARTS.find((part) => !left.includes(part));
        if (code !== "BAD_REQUEST" || answeredBy !== "service" || next === undefined) throw error;
        const isBack = isFirst && again !== undefined;
        if (isBack) this.#tried = [...this.#tried, again];
        left = isBack ? known : [...left, next];
      }
    }
  }

  #accept(left: readonly Part[]): void {
    const isSame = left.length === this.#left.length && left.every((part) => this.#left.includes(part));
    const isLess = this.#isConfirmed && left.every((part) => this.#left.includes(part));
    // With the last part, the request was refused.
    if (!this.#isConfirmed && isSame) this.#tried = left.slice(-1);
    this.#isConfirmed = left.length > 0 && (isSame || isLess);
    this.#left = left;
  }
}

function fieldsOf(parts: readonly Part[]): string {
  const wanted = parts.filter((part) => part !== "mode" || !parts.includes("named"));
  if (wanted.length === 0) return BASE;
  return `${BASE},transfer(${wanted.map((part) => OPTIONAL[part]).join(",")})`;
}
