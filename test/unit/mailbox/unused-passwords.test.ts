/** Which supplied passwords are removed because nothing waits for them. */

import { expect, test } from "vitest";
import { forgetUnusedPasswords } from "../../../src/daemon/housekeeping.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { mailboxIdOf } from "../../../src/model/transfer.ts";

const MAILBOXES = new Map([
  [mailboxIdOf("a"), {}],
  [mailboxIdOf("b"), {}],
]);

interface Case {
  readonly open?: readonly string[];
  readonly ended?: readonly string[];
  readonly meant?: string;
  readonly isDamaged?: boolean;
  readonly isOrdered?: boolean;
}

test.each<[string, Case, boolean]>([
  ["a transfer that waits", { open: ["a"] }, false],
  ["one that only another mailbox waits for", { open: ["b"], ended: ["a"] }, false],
  ["one that a mailbox of another process waits for", { open: ["c"], ended: ["a"] }, false],
  ["one meant for a mailbox that is done with it", { open: ["b"], ended: ["a"], meant: "a" }, true],
  ["one that has ended", { ended: ["b"] }, true],
  ["one that has ended, and that an order may open again", { ended: ["a"], isOrdered: true }, false],
  ["one that is still to come", {}, false],
  ["one that has ended, where a record is damaged", { ended: ["a"], isDamaged: true }, false],
])(
  "a password of %s: removed %j %s",
  async (_of, { open = [], ended = [], meant, isDamaged = false, isOrdered = false }, isRemoved) => {
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
      async () => new Set(isOrdered ? ["t"] : []),
    );
    expect(answers).toEqual([isRemoved]);
  },
);
