/** What a poll remembers for the next one. */
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Outage } from "../../../src/base/outage.ts";
import { Secret } from "../../../src/base/secret.ts";
import { pollMailbox } from "../../../src/mailbox/poll.ts";
import { MailboxState } from "../../../src/mailbox/state.ts";
import type { Tokens } from "../../../src/mailbox/tokens.ts";
import type { PollTools } from "../../../src/mailbox/tools.ts";
import type { ListedTransfer } from "../../../src/model/transfer.ts";
import type { ServicePort, VerifiedAddress } from "../../../src/service/port.ts";
import { makeRecord } from "../../support/record.ts";
import { SIGNAL } from "../../support/service.ts";
import { MAILBOX, mailboxSettings } from "../../support/settings.ts";

test("what is settled is looked for once, as long as it is listed", async () => {
  const { poll, looked, counted } = setUp();
  await poll(["a", "b"]);
  await poll(["a", "b"]);
  expect(looked).toEqual(["a", "b"]);
  await poll(["b"]);
  await poll(["a", "b"]);
  expect(looked).toEqual(["a", "b", "a"]);
  expect(counted).toEqual([2, 2, 1, 2]);
});

test("what an operator sends back to the start during a poll is looked for at the next one", async () => {
  const { poll, looked, state } = setUp();
  await poll(["a", "b"]);
  await poll(["a", "b"], () => state.settled.delete("a"));
  await poll(["a", "b"]);
  expect(looked).toEqual(["a", "b", "a"]);
});

test("a poll that breaks off forgets nothing", async () => {
  const { poll, looked } = setUp();
  await poll(["a", "b"]);
  await poll(["a"], () => {
    throw new Fault("SERVER_FAULT");
  });
  await poll(["a", "b"]);
  expect(looked).toEqual(["a", "b"]);
});

/** A mailbox in which all that is listed was delivered before. */
function setUp() {
  const clock = { now: () => 0 };
  const looked: string[] = [];
  const counted: number[] = [];
  let listed: readonly string[] = [];
  let atTheEnd = (): unknown => undefined;
  const service = {
    async *listReceived(...[, , , , isKnown]: Parameters<ServicePort["listReceived"]>) {
      const others = listed.filter((trackingId) => !isKnown?.(trackingId));
      if (others.length > 0) yield others.map(entryOf);
      atTheEnd();
    },
  } as unknown as ServicePort;
  const address = { email: MAILBOX, token: new Secret("token") };
  const tokens = {
    use: (work: (verified: VerifiedAddress) => unknown) => work(address),
  } as unknown as Tokens;
  const tools = {
    atOnce: 1,
    deadline: { stallMs: 60_000, totalMs: 60_000 },
    clock,
    diskFull: new Outage(clock, { began: () => {}, ended: () => {} }),
    ledger: {
      async find({ trackingId }: { readonly trackingId: string }) {
        looked.push(trackingId);
        return makeRecord({ trackingId, state: "delivered" });
      },
    },
    watch: {
      polled: (_: string, count: number) => counted.push(count),
      pollFailed: () => {},
      recovered: () => {},
    },
  } as unknown as PollTools;
  const state = new MailboxState(mailboxSettings({ url: "http://127.0.0.1", clientId: "" }), service, tokens);
  const poll = (ids: readonly string[], end = () => undefined as unknown) => {
    listed = ids;
    atTheEnd = end;
    return pollMailbox(tools, state, SIGNAL);
  };
  return { poll, looked, counted, state };
}

function entryOf(trackingId: string): ListedTransfer {
  return {
    trackingId,
    state: "unknown",
    sender: undefined,
    recipients: [],
    to: [],
    cc: [],
    expires: undefined,
    passwordMode: undefined,
  };
}
