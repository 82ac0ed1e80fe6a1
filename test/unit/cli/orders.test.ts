import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import type { Context } from "../../../src/cli/command.ts";
import { report } from "../../../src/cli/orders.ts";
import type { ActResult } from "../../../src/model/views.ts";

test("results of one transfer for two mailboxes name their mailbox", () => {
  const stderr = new PassThrough();
  const context = { stdout: new PassThrough(), stderr } as unknown as Context;
  const result = (mailbox: string, trackingId: string): ActResult => ({
    mailbox,
    trackingId,
    status: 200,
    text: `${trackingId} was discarded.`,
    state: "gone",
    result: "fine",
  });
  const results = [result("orders", "t1"), result("archive", "t1"), result("orders", "t2")];
  expect(report(context, results, {}, false)).toBe("fine");
  expect(stderr.read().toString()).toBe(
    "orders: t1 was discarded.\narchive: t1 was discarded.\nt2 was discarded.\n",
  );
});
