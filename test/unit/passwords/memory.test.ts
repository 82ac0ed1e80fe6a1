import { expect, test } from "vitest";
import { LockedTransfers } from "../../../src/passwords/memory.ts";
import type { PasswordRequest } from "../../../src/passwords/request.ts";

const MOST = 10_000;

test("I8 bounded: of very many locked transfers, the oldest are forgotten", () => {
  const locks = new LockedTransfers();
  for (let at = 0; at <= MOST; at++) locks.add(requestOf("a", `t${at}`), 0);
  expect(() => locks.check(requestOf("b", "t0"), 1)).not.toThrow();
  for (const last of [1, MOST]) {
    expect(() => locks.check(requestOf("b", `t${last}`), 1)).toThrow(/locked/);
  }
});

test("a lock that is found again counts as new", () => {
  const locks = new LockedTransfers();
  for (let at = 0; at < MOST; at++) locks.add(requestOf("a", `t${at}`), 0);
  locks.add(requestOf("a", "t0"), 0);
  locks.add(requestOf("a", "another"), 0);
  expect(() => locks.check(requestOf("b", "t0"), 1)).toThrow(/locked/);
  expect(() => locks.check(requestOf("b", "t1"), 1)).not.toThrow();
});

function requestOf(mailbox: string, trackingId: string): PasswordRequest {
  const service = { id: "https://a.example" };
  return { service, mailbox: { name: mailbox }, record: { trackingId } } as PasswordRequest;
}
