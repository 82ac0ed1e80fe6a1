import { expect, test } from "vitest";
import { outcomeOf } from "../../../src/cli/status.ts";
import type { Status, Trouble } from "../../../src/model/status.ts";

const totals = { attention: 0 } as Status["totals"];

test.each([
  [[], "fine"],
  [[["notify", "MAIL_LOGIN_REFUSED"]], "attention"],
  [[["disk", "DISK_FULL"]], "attention"],
  [[["mailbox orders", "ARRIVAL_MISSED"]], "attention"],
  [[["mailbox orders", "VERIFICATION_ENDS"]], "attention"],
  [[["queue", "QUEUE_UNREACHABLE"]], "unreachable"],
  [[["service https://transfer.example.com", "SERVICE_UNREACHABLE"]], "unreachable"],
  [
    [
      ["notify", "MAIL_LOGIN_REFUSED"],
      ["queue", "QUEUE_UNREACHABLE"],
    ],
    "unreachable",
  ],
] as const)("problems %j: %s", (found, outcome) => {
  const troubles = found.map(
    ([what, code]) => ({ what, code, since: "", message: "", advice: "" }) satisfies Trouble,
  );
  expect(outcomeOf({ live: true, troubles, totals })).toBe(outcome);
  expect(outcomeOf({ live: false, troubles, totals })).toBe("unreachable");
});
