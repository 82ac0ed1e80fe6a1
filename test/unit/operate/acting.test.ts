/** I3 no burnt transfers: one password for many transfers is sent for the others only if it has opened the first. */
import { expect, test } from "vitest";
import type { State } from "../../../src/model/record.ts";
import type { ActResult } from "../../../src/model/views.ts";
import { isOpenedBy } from "../../../src/operate/acting.ts";

type Row = readonly [
  state: State,
  reason: string | undefined,
  result: ActResult["result"],
  isOpened: boolean,
];

test.each<Row>([
  ["delivered", undefined, "fine", true],
  ["quarantined", "SIZE_MISMATCH", "attention", true],
  ["waiting", "disk", "attention", true],
  ["waiting", "locked", "attention", false],
  ["waiting", "password", "attention", false],
  ["waiting", "mode", "attention", false],
  ["waiting", "retry", "pending", false],
  ["waiting", "disk", "refused", false],
])(
  "the first transfer is %s (%s), with the result %s: is it opened? %s",
  (state, reason, result, isOpened) => {
    const facts = { mailbox: "m", trackingId: "t1", status: 200, text: "" };
    const refused = { ...facts, state: "waiting", reason: "password", result: "attention" } as const;
    const own = { ...facts, state, reason, result };
    expect(isOpenedBy([own])).toBe(isOpened);
    // One mailbox that received it is enough.
    expect(isOpenedBy([refused, own])).toBe(isOpened);
  },
);
