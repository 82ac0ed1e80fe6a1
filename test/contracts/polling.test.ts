import { describe, expect, test } from "vitest";
import type { TransferPlan } from "../../simulator/scenario.ts";
import { Secret } from "../../src/base/secret.ts";
import { findRecipient } from "../../src/model/transfer.ts";
import { allPages } from "../../src/service/polling.ts";
import type { ServicePort, VerifiedAddress } from "../../src/service/port.ts";
import { expectFault, KNOWN_FIELDS, openPair, SIGNAL, transferPlan, verify } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

describe("polling received transfers", () => {
  test("returns every known field if all are selected", async () => {
    const { service, transfer } = await openPair({
      transfers: [
        transferPlan({ to: ["other@example.com", MAILBOX], cc: ["cc@example.com"], passwordMode: "NONE" }),
      ],
    });
    const page = await service.pollReceived(await verify(service), { fields: KNOWN_FIELDS }, SIGNAL);
    expect(page.rejected).toEqual([]);
    expect(page.entries).toHaveLength(1);
    const [entry] = page.entries;
    expect(entry).toMatchObject({
      trackingId: transfer.trackingId,
      state: "active",
      sender: "anna@supplier.example",
      addressees: { to: ["other@example.com", MAILBOX], cc: ["cc@example.com"] },
      passwordMode: "NONE",
    });
    expect(entry?.expires?.getTime()).toBeGreaterThan(Date.now());
    const own = findRecipient(entry?.recipients ?? [], MAILBOX.toUpperCase());
    expect(own?.transferId).toBe(transfer.recipients.find(({ mailbox }) => mailbox === MAILBOX)?.transferId);
    expect(own?.downloadUrl?.reveal()).toContain("password=");
    expect(findRecipient(entry?.recipients ?? [], "other@example.com")?.downloadUrl).toBeUndefined();
  });

  test("reads a list with smaller pages if pages are too large, each transfer once, and keeps the page size", async () => {
    const to = [MAILBOX, ...Array.from({ length: 1_000 }, (_, at) => `branch-${at}@example.com`)];
    const { service, simulator } = await openPair({
      transfers: [
        ...Array.from({ length: 100 }, (_, at) => transferPlan({ trackingId: `small-${at}` })),
        ...Array.from({ length: 40 }, (_, at) => transferPlan({ trackingId: `wide-${at}`, to })),
      ],
    });
    const address = await verify(service);
    const list = async () => {
      const pages = service.listReceived(address, { active: true, fields: KNOWN_FIELDS }, fail, SIGNAL);
      return (await Array.fromAsync(pages)).flat().map(({ trackingId }) => trackingId);
    };
    const ids = await list();
    expect(ids).toHaveLength(140);
    expect(new Set(ids).size).toBe(140);
    const before = simulator.totals().received;
    expect(await list()).toHaveLength(140);
    // Pages of ten transfers, and the empty page at the end.
    expect(simulator.totals().received - before).toBe(15);
  });

  test("returns the service's default selection, or the selected fields and nothing else; refuses an invalid query", async () => {
    const { service } = await openPair();
    const address = await verify(service);
    const [usual] = (await service.pollReceived(address, {}, SIGNAL)).entries;
    expect(usual).toMatchObject({
      sender: "anna@supplier.example",
      addressees: { to: [MAILBOX], cc: [] },
      state: "active",
    });
    expect([usual?.expires, usual?.passwordMode]).toEqual([undefined, undefined]);
    const fields = "trackingId,transfer(expirationDate)";
    const [selected] = (await service.pollReceived(address, { fields }, SIGNAL)).entries;
    expect(selected).toMatchObject({ state: "unknown", sender: undefined, recipients: [], addressees: {} });
    expect(selected?.expires).toBeInstanceOf(Date);
    await expectFault(service.pollReceived(address, { page: 0 }, SIGNAL), "BAD_REQUEST");
  });

  test("separates active transfers from inactive ones, in every state", async () => {
    const { service, simulator } = await openPair({
      transfers: [
        transferPlan(),
        transferPlan({ trackingId: "expired", expiresInSeconds: -60 }),
        transferPlan({ trackingId: "revoked", revokedAfterSeconds: 0 }),
        transferPlan({ trackingId: "processing", processingSeconds: 3600 }),
        transferPlan({ trackingId: "failed", failed: true }),
        transferPlan({ trackingId: "removed" }),
        transferPlan({ trackingId: "forgotten", expiresInSeconds: -60 * 86_400 }),
      ],
    });
    simulator.remove("removed");
    const address = await verify(service);
    const active = await service.pollReceived(address, { active: true, pageSize: 100 }, SIGNAL);
    const inactive = await service.pollReceived(address, { active: false, pageSize: 100 }, SIGNAL);
    const both = await service.pollReceived(address, { pageSize: 100 }, SIGNAL);
    expect(active.entries.map((entry) => entry.state)).toEqual(["active"]);
    expect(Object.fromEntries(inactive.entries.map((entry) => [entry.trackingId, entry.state]))).toEqual({
      expired: "deleted_by_expiration",
      revoked: "deleted_by_revocation",
      processing: "processing",
      failed: "failed",
      removed: "deleted_by_admin",
    });
    expect(both.entries).toHaveLength(6);
  });

  test("needs a token of the same address", async () => {
    const { service } = await openPair();
    const wrong = { email: MAILBOX, token: new Secret("no-such-token") };
    await expectFault(service.pollReceived(wrong, {}, SIGNAL), "TOKEN_REFUSED", "wait");
    const { token } = await verify(service, "other@example.com");
    await expectFault(service.pollReceived({ email: MAILBOX, token }, {}, SIGNAL), "TOKEN_REFUSED");
  });

  test("needs version 1.12, with a clear fault for an older one; other operations need an older one", async () => {
    const { service, access } = await openPair({ apiVersion: "1.10" });
    expect(await service.files(access, SIGNAL)).not.toEqual([]);
    expect((await service.information(access, SIGNAL)).totalBytes).toBeGreaterThan(0);
    expect(await service.passwordRules(SIGNAL)).not.toEqual([]);
    expect(await service.languagePacks(undefined, SIGNAL)).not.toEqual([]);
    const { service: old } = await openPair({ apiVersion: "1.11" });
    await expectFault(old.pollReceived(await verify(old), {}, SIGNAL), "API_VERSION", "fatal");
  });

  test("rejects only the broken entry, with its position", async () => {
    const { service } = await openPair({
      transfers: [transferPlan(), transferPlan({ trackingId: "fine" })],
      faults: [{ on: "received", does: { kind: "alter", path: "data.1.trackingId" } }],
    });
    const page = await service.pollReceived(await verify(service), {}, SIGNAL);
    expect(page.entries.map((entry) => entry.trackingId)).toEqual(["fine"]);
    expect(page.rejected.map(({ fault }) => fault.message)).toEqual([
      expect.stringContaining(`the received transfers of ${MAILBOX}, entry 2: trackingId should be`),
    ]);
  });
});

describe("all pages of received transfers", () => {
  test.each([
    [undefined, 1],
    [undefined, 7],
    [undefined, 25],
    [3, 100],
  ])(
    "are complete if the service sends at most %j entries, and %i are requested",
    async (maxPageSize, pageSize) => {
      const capped = maxPageSize === undefined ? {} : { maxPageSize };
      const { service } = await openPair({ transfers: many(25), ...capped });
      expect(await idsOf(service, pageSize)).toHaveLength(25);
    },
  );

  test("are complete although pages repeat entries, and while new transfers shift the pages", async () => {
    const { service, simulator } = await openPair({ transfers: many(25) });
    simulator.addFault({ on: "received", times: "always", does: { kind: "repeat", entries: 2 } });
    expect(await idsOf(service, 5)).toHaveLength(25);
    simulator.clearFaults();
    simulator.addFault({ on: "received", times: "always", does: { kind: "shift", by: 2 } });
    const found = await idsOf(service, 5);
    expect(found.filter((id) => id.startsWith("t"))).toHaveLength(25);
    expect(new Set(found).size).toBe(found.length);
  });
});

describe("polling sent transfers", () => {
  test("lists recipients, without links or passwords", async () => {
    const { service, transfer } = await openPair();
    const address = await verify(service, "anna@supplier.example");
    const { entries } = await service.pollSent(address, { fields: KNOWN_FIELDS }, SIGNAL);
    expect(entries).toHaveLength(1);
    expect(entries[0]).toMatchObject({ trackingId: transfer.trackingId, addressees: { to: [MAILBOX] } });
    expect((await service.pollSent(await verify(service), {}, SIGNAL)).entries).toEqual([]);
  });

  test("also works with the deprecated operation, until version 2.0", async () => {
    const { service, transfer } = await openPair({ transfers: [transferPlan(), ...many(12)] });
    const address = await verify(service, "anna@supplier.example");
    const first = await service.pollSentLegacy(address, {}, SIGNAL);
    expect(first.entries).toHaveLength(10);
    const fetchPage = (page: number) => service.pollSentLegacy(address, { page, pageSize: 4 }, SIGNAL);
    const entries = (await Array.fromAsync(allPages(fetchPage, fail))).flat();
    for (const entry of entries) {
      expect(entry).toMatchObject({ state: "active", recipients: [{ mail: MAILBOX }] });
    }
    expect(entries).toHaveLength(13);
    expect(entries.map(({ trackingId }) => trackingId)).toContain(transfer.trackingId);
  });
});

function many(count: number): TransferPlan[] {
  return Array.from({ length: count }, (_, at) => transferPlan({ trackingId: `t${at}`, files: [] }));
}

async function idsOf(service: ServicePort, pageSize: number): Promise<string[]> {
  const address: VerifiedAddress = await verify(service);
  const fetchPage = (page: number) => service.pollReceived(address, { page, pageSize, active: true }, SIGNAL);
  const entries = await Array.fromAsync(allPages(fetchPage, fail, pageSize));
  return entries.flat().map((entry) => entry.trackingId);
}

function fail({ fault }: { readonly fault: Error }): never {
  throw fault;
}
