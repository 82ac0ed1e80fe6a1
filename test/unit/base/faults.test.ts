import { expect, test } from "vitest";
import { describeFault, Fault } from "../../../src/base/faults.ts";

test("a fault asks to wait only where an answer asked for it", () => {
  const describe = (answeredBy: "service" | "intermediary" | "none" | "unsent") =>
    describeFault(new Fault("TRANSFER_LOCKED", { answeredBy, retryAfterMs: 90_000 }));
  for (const answeredBy of ["service", "intermediary"] as const) {
    expect(describe(answeredBy)).toContain("It asks to wait 90 s.");
  }
  // A lock that another mailbox has found is remembered here: no request was sent.
  for (const answeredBy of ["unsent", "none"] as const) {
    expect(describe(answeredBy)).not.toContain("It asks to wait");
  }
});
