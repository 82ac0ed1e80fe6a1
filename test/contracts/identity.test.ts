import { describe, expect, test } from "vitest";
import { expectFault, openPair, SIGNAL, verify } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

describe("the client's identity", () => {
  test("an address is verified by the registered client id, until its token expires", async () => {
    const { service, simulator } = await openPair({ tokenSeconds: 60 });
    const { token, validUntil } = await service.obtainToken(MAILBOX, undefined, SIGNAL);
    expect(validUntil?.getTime()).toBeGreaterThan(Date.now());
    expect(await service.verification(MAILBOX, token, SIGNAL)).toMatchObject({ verified: true });
    expect((await service.verification(MAILBOX, undefined, SIGNAL)).methods).toContain("clientid");
    simulator.advance(61);
    expect(await service.verification(MAILBOX, token, SIGNAL)).toMatchObject({ verified: false });
    await expectFault(service.pollReceived({ email: MAILBOX, token }, {}, SIGNAL), "TOKEN_REFUSED");
  });

  test("addresses may contain any character", async () => {
    const { service } = await openPair();
    for (const email of ["a+b/c@example.com", "büro@example.com", "a%40b@example.com", "a b@example.com"]) {
      const address = await verify(service, email);
      expect((await service.pollReceived(address, {}, SIGNAL)).entries).toEqual([]);
    }
  });
});
