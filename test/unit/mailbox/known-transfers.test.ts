/** What a process remembers of a mailbox's transfers. */
import { describe, expect, test } from "vitest";
import { KnownTransfers } from "../../../src/mailbox/known-transfers.ts";
import { mailboxSettings } from "../../support/settings.ts";

const SETTINGS = mailboxSettings({ url: "http://127.0.0.1", clientId: "" });

describe("known transfers", () => {
  test("an order for a settled transfer keeps what the listing said of it", () => {
    const known = new KnownTransfers();
    known.startListing();
    known.settle("a");
    known.noteOpen("a", 5);
    expect([known.isListed("a"), known.open.get("a")?.expiresMs]).toEqual([true, 5]);
    known.startListing();
    expect(known.isListed("a")).toBe(false);
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
