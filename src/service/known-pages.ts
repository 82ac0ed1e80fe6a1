/**
 * Pages of a list on which there was nothing but what is known. Most polls find every page as it was: where the same text
 * comes again, it need not be taken apart.
 */
import { hash } from "node:crypto";
import type { ListedTransfer } from "../model/transfer.ts";
import type { JsonText } from "./bodies.ts";
import type { Page } from "./port.ts";
import { decodeListed } from "./wire.ts";

/** Those of one poll. What it does not meet again is forgotten. */
export class KnownPages {
  readonly #isKnown: (trackingId: string) => boolean;
  readonly #before: ReadonlyMap<string, readonly string[]>;
  readonly #now = new Map<string, readonly string[]>();

  constructor(isKnown: (trackingId: string) => boolean, before: KnownPages | undefined) {
    this.#isKnown = isKnown;
    this.#before = before === undefined ? new Map() : before.#now;
  }

  /** Asks for each entry whether it is known, also on a page that was here before: that may have changed. */
  read(answer: JsonText, what: string): Page<ListedTransfer> {
    const digest = hash("sha256", answer.text, "base64");
    const known = this.#before.get(digest);
    const page = known?.every((trackingId) => this.#isKnown(trackingId))
      ? { entries: [], known, rejected: [] }
      : decodeListed(answer.parse(), what, this.#isKnown);
    if (page.entries.length + page.rejected.length === 0) this.#now.set(digest, page.known);
    return page;
  }
}
