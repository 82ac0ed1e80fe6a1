/** Single transfers looked up in the list, and transfers that vanished from it. */
import { describe, expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Secret } from "../../../src/base/secret.ts";
import { MailboxState } from "../../../src/mailbox/state.ts";
import type { Tokens } from "../../../src/mailbox/tokens.ts";
import type { TransferState } from "../../../src/model/transfer.ts";
import type { ServicePort, VerifiedAddress } from "../../../src/service/port.ts";
import { SIGNAL } from "../../support/service.ts";
import { MAILBOX, mailboxSettings } from "../../support/settings.ts";

describe("the state of a transfer", () => {
  test("costs one reading of the list for all that vanished, also of those that it does not have", async () => {
    const { ask, listings } = setUp({ a: "deleted_by_revocation", b: "active" });
    const vanished = ["a", "b", "gone"].map((trackingId) => ask({ trackingId, vanished: true }));
    expect(await Promise.all(vanished)).toEqual(["deleted_by_revocation", "active", undefined]);
    expect(await ask({ trackingId: "also gone", vanished: true })).toBeUndefined();
    expect(listings()).toBe(1);
  });

  test("is looked up anew for one that did not vanish and is not in what was read before", async () => {
    const { ask, listings, states } = setUp({ a: "deleted_by_revocation" });
    await ask({ trackingId: "a", vanished: true });
    states.set("new", "active");
    expect(await ask({ trackingId: "new" })).toBe("active");
    expect(await ask({ trackingId: "a" })).toBe("deleted_by_revocation");
    expect(listings()).toBe(2);
  });

  test("is looked up again after a failure, and by another job where the one that asked was stopped", async () => {
    const { ask, listings, failWith } = setUp({ a: "deleted_by_admin" });
    failWith(new Fault("SERVER_FAULT"));
    await expect(ask({ trackingId: "a", vanished: true })).rejects.toMatchObject({ code: "SERVER_FAULT" });
    failWith(new Fault("STOPPED"));
    const stopped = ask({ trackingId: "a", vanished: true }, AbortSignal.abort());
    const other = ask({ trackingId: "a", vanished: true });
    await expect(stopped).rejects.toMatchObject({ code: "STOPPED" });
    expect(await other).toBe("deleted_by_admin");
    expect(listings()).toBe(3);
  });
});

function setUp(listed: Readonly<Record<string, TransferState>>) {
  const states = new Map(Object.entries(listed));
  let count = 0;
  let failure: Fault | undefined;
  const service = {
    async *listReceived() {
      count++;
      const thrown = failure;
      failure = undefined;
      if (thrown !== undefined) throw thrown;
      yield [...states].map(([trackingId, state]) => ({ trackingId, state }));
    },
  } as unknown as ServicePort;
  const address = { email: MAILBOX, token: new Secret("token") };
  const tokens = {
    use: (work: (verified: VerifiedAddress) => unknown) => work(address),
  } as unknown as Tokens;
  const state = new MailboxState(mailboxSettings({ url: "http://127.0.0.1", clientId: "" }), service, tokens);
  return {
    ask: (record: { trackingId: string; vanished?: boolean }, signal: AbortSignal = SIGNAL) =>
      state.stateOf(record, signal),
    listings: () => count,
    states,
    failWith: (fault: Fault) => {
      failure = fault;
    },
  };
}
