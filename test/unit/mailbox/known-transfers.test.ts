/** What a process remembers of a mailbox's transfers. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Secret } from "../../../src/base/secret.ts";
import { KnownTransfers } from "../../../src/mailbox/known-transfers.ts";
import { mailboxSettings } from "../../support/settings.ts";

const IDS = ["a", "b", "c"] as const;
const SETTINGS = mailboxSettings({ url: "http://127.0.0.1", clientId: "" });

describe("known transfers", () => {
  test("a transfer is open, settled or unknown, and never two of them", () => {
    const verb = fc.constantFrom(
      "noteOpen",
      "settle",
      "forget",
      "noteListed",
      "startListing",
      "finishListing",
    );
    const step = fc.record({ verb, id: fc.constantFrom(...IDS) });
    const holds = fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const known = new KnownTransfers();
      const model = new Model();
      for (const { verb, id } of steps) {
        known[verb](id, 1);
        model[verb](id);
        const open = [...known.open()].map(({ trackingId }) => trackingId);
        expect(open.toSorted()).toEqual([...model.open].toSorted());
        expect([known.openCount, known.settledCount]).toEqual([model.open.size, model.settled.size]);
        for (const each of IDS) {
          expect(known.isOpen(each)).toBe(model.open.has(each));
          expect(known.isSettled(each)).toBe(model.settled.has(each));
          if (model.hasStarted) expect(known.isListed(each)).toBe(model.listed.has(each));
        }
      }
    });
    fc.assert(holds, { numRuns: 500 });
  });

  test("an order for a settled transfer keeps what the listing said of it", () => {
    const known = new KnownTransfers();
    known.startListing();
    known.settle("a");
    known.noteOpen("a", 5);
    expect([known.isListed("a"), known.expiryOf("a")]).toEqual([true, 5]);
    known.startListing();
    expect(known.isListed("a")).toBe(false);
  });

  test("the list is known once it was read to its end", () => {
    const known = new KnownTransfers();
    known.startListing();
    expect(known.hasListing).toBe(false);
    known.finishListing();
    known.startListing();
    expect(known.hasListing).toBe(true);
  });

  test("links are kept for open transfers, where they carry a password", () => {
    const known = new KnownTransfers();
    const link = new Secret("https://x/download?id=1&password=p");
    known.noteOpen("open", 0);
    for (const id of ["open", "unknown"]) known.keepLink(id, link);
    expect([known.linkOf("open"), known.linkOf("unknown")]).toEqual([link, undefined]);
    known.noteOpen("open", 1);
    expect(known.linkOf("open")).toBe(link);
    known.keepLink("open", new Secret("https://x/download?id=1"));
    expect(known.linkOf("open")).toBeUndefined();
  });

  test("a warning is due once for each open transfer", () => {
    const known = new KnownTransfers();
    known.noteOpen("a", 0);
    expect([known.warnOnce("a"), known.warnOnce("a"), known.warnOnce("b")]).toEqual([true, false, false]);
    known.settle("a");
    known.noteOpen("a", 0);
    expect(known.warnOnce("a")).toBe(true);
  });

  test("a password is looked for once, and again for another supply or other settings", () => {
    const known = new KnownTransfers();
    known.noteOpen("a", 0);
    const attempts = [undefined, undefined, "x", "x", undefined, "x"];
    expect(attempts.map((supplied) => known.claimPasswordSearch("a", SETTINGS, supplied))).toEqual([
      true,
      false,
      true,
      false,
      false,
      true,
    ]);
    expect(known.claimPasswordSearch("a", { ...SETTINGS }, "x")).toBe(true);
  });
});

/** The same in three sets. */
class Model {
  readonly open = new Set<string>();
  readonly settled = new Set<string>();
  readonly listed = new Set<string>();
  hasStarted = false;

  noteOpen(id: string): void {
    this.settled.delete(id);
    this.open.add(id);
  }

  settle(id: string): void {
    this.open.delete(id);
    this.settled.add(id);
    this.listed.add(id);
  }

  forget(id: string): void {
    if (this.open.delete(id)) this.listed.delete(id);
  }

  noteListed(id: string): void {
    if (this.open.has(id) || this.settled.has(id)) this.listed.add(id);
  }

  startListing(): void {
    this.hasStarted = true;
    this.listed.clear();
  }

  finishListing(): void {
    for (const id of this.settled) if (!this.listed.has(id)) this.settled.delete(id);
  }
}
