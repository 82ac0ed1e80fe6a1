/** Which supplied passwords are removed because nothing waits for them. */

import { expect, test } from "vitest";
import { forgetUnusedPasswords } from "../../../src/daemon/housekeeping.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { mailboxIdOf } from "../../../src/model/transfer.ts";

const MAILBOXES = new Map([
  [mailboxIdOf("a"), {}],
  [mailboxIdOf("b"), {}],
]);

test.each([
  { of: "a transfer that waits", open: ["a"], ended: [], meant: undefined, isRemoved: false },
  {
    of: "one that only another mailbox waits for",
    open: ["b"],
    ended: ["a"],
    meant: undefined,
    isRemoved: false,
  },
  {
    of: "one that a mailbox of another process waits for",
    open: ["c"],
    ended: ["a"],
    meant: undefined,
    isRemoved: false,
  },
  {
    of: "one that was meant for a mailbox that is done with it",
    open: ["b"],
    ended: ["a"],
    meant: "a",
    isRemoved: true,
  },
  { of: "one that has ended", open: [], ended: ["b"], meant: undefined, isRemoved: true },
  {
    of: "one that has ended, and that an order may open again",
    open: [],
    ended: ["a"],
    isOrdered: true,
    meant: undefined,
    isRemoved: false,
  },
  { of: "one that is still to come", open: [], ended: [], meant: undefined, isRemoved: false },
  {
    of: "one that has ended, where a record is damaged",
    open: [],
    ended: ["a"],
    isDamaged: true,
    meant: undefined,
    isRemoved: false,
  },
])(
  "a password of $of: removed $isRemoved",
  async ({ open, ended, meant, isRemoved, isDamaged = false, isOrdered = false }) => {
    const answers: boolean[] = [];
    const record = (mailbox: string) => ({ mailbox, trackingId: "t" }) as TransferRecord;
    await forgetUnusedPasswords(
      {
        forgetDropped: async (isSettled) => {
          answers.push(await isSettled({ trackingId: "t", mailbox: meant, path: "/p" }));
        },
      },
      {
        async *open(onDamaged) {
          if (isDamaged) onDamaged("/r", "damaged");
          yield* open.map(record);
        },
        find: async ({ mailbox }) => ([...open, ...ended].includes(mailbox) ? record(mailbox) : undefined),
      },
      MAILBOXES,
      async () => isOrdered,
    );
    expect(answers).toEqual([isRemoved]);
  },
);
