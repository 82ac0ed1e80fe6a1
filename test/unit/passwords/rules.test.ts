import { describe, expect, test } from "vitest";
import { fits } from "../../../src/passwords/candidates.ts";
import { plainSecret } from "../../support/settings.ts";

const password = plainSecret("secret");

function fitsSender(pattern: string, sender: string): boolean {
  return fits({ sender: pattern, trackingId: undefined, password }, { trackingId: "t1", sender });
}

describe("a password rule for a sender", () => {
  test.each([
    "anna@supplier.example",
    " ANNA@Supplier.Example. ",
    "anna@supplier。example",
    "ａnna＠supplier.exam\u200bple",
  ])("is used for %j", (sender) => {
    expect(fitsSender("*@supplier.example", sender)).toBe(true);
    expect(fitsSender(sender, "anna@supplier.example")).toBe(true);
  });

  test.each(["anna@supplier.example.org", "anna@supplier-example", "anna\ud800@supplier.example"])(
    "is not used for %j",
    (sender) => {
      expect(fitsSender("*@supplier.example", sender)).toBe(false);
    },
  );

  test("is not used for a sender that is not valid text, even if it is for all senders", () => {
    expect(fitsSender("*", "anna@supplier.example")).toBe(true);
    expect(fitsSender("*", "\ud800")).toBe(false);
  });

  test("also needs the tracking-id that it names", () => {
    const rule = { sender: "*@a.example", trackingId: "t1", password };
    expect(fits(rule, { trackingId: "t1", sender: "x@a.example" })).toBe(true);
    expect(fits(rule, { trackingId: "t2", sender: "x@a.example" })).toBe(false);
    expect(fits({ ...rule, sender: undefined }, { trackingId: "t1", sender: "\ud800" })).toBe(true);
  });
});
