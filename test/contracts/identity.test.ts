import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { Secret } from "../../src/base/secret.ts";
import { openPair, openTestService, SIGNAL, verify } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

describe("who we are to the service", () => {
  test("an address is verified by the registered client id, until its token expires", async () => {
    const { service, simulator } = await openPair({ tokenSeconds: 60 });
    const { token, validUntil } = await service.obtainToken(MAILBOX, undefined, SIGNAL);
    expect(validUntil?.getTime()).toBeGreaterThan(Date.now());
    expect(await service.verification(MAILBOX, token, SIGNAL)).toMatchObject({ verified: true });
    expect((await service.verification(MAILBOX, undefined, SIGNAL)).methods).toContain("clientid");
    simulator.advance(61);
    expect(await service.verification(MAILBOX, token, SIGNAL)).toMatchObject({ verified: false });
    await expect(service.pollReceived({ email: MAILBOX, token }, {}, SIGNAL)).rejects.toMatchObject({
      code: "TOKEN_REFUSED",
    });
  });

  test("an address is verified by a mailed code, where the client id is not registered", async () => {
    const { simulator } = await openPair();
    const fresh = await openTestService(simulator).requestClientId(SIGNAL);
    expect(fresh.reveal()).toMatch(/^[A-Za-z0-9]{50,4000}$/);
    const service = openTestService(simulator, { clientId: fresh });
    await expect(service.obtainToken(MAILBOX, undefined, SIGNAL)).rejects.toMatchObject({
      code: "POLICY_REFUSED",
    });
    await service.mailVerificationCode(MAILBOX, SIGNAL);
    const [code] = simulator.mailedCodes(MAILBOX);
    const wrong = new Secret(`${code}x`);
    await expect(service.obtainToken(MAILBOX, wrong, SIGNAL)).rejects.toMatchObject({
      code: "TOKEN_REFUSED",
    });
    const { token } = await service.obtainToken(MAILBOX, new Secret(code ?? ""), SIGNAL);
    expect((await service.pollReceived({ email: MAILBOX, token }, {}, SIGNAL)).entries).toHaveLength(1);
  });

  test("addresses may hold any character", async () => {
    const { service } = await openPair();
    for (const email of ["a+b/c@example.com", "büro@example.com", "a%40b@example.com", "a b@example.com"]) {
      const address = await verify(service, email);
      expect((await service.pollReceived(address, {}, SIGNAL)).entries).toEqual([]);
    }
  });

  test("the service tells its versions, where it is young enough", async () => {
    expect(await (await openPair()).service.apiVersions(SIGNAL)).toEqual([{ major: 1, minor: 15 }]);
    expect(await (await openPair({ apiVersion: "1.12" })).service.apiVersions(SIGNAL)).toBeUndefined();
  });
});

describe("passwords", () => {
  test("are made by the service and fulfil its rules", async () => {
    const { service } = await openPair();
    const password = await service.generatePassword(SIGNAL);
    expect(await service.checkPassword(password, SIGNAL)).toEqual({ valid: true, broken: [] });
  });

  test("that break rules are told which", async () => {
    const { service } = await openPair({ passwordRules: { minimumLengthRequired: 8, digitsRequired: true } });
    const { valid, broken } = await service.checkPassword(new Secret("short"), SIGNAL);
    expect(valid).toBe(false);
    expect(broken.map((rule) => rule.name).toSorted()).toEqual(["digitsRequired", "minimumLengthRequired"]);
    const rules = await service.passwordRules(SIGNAL);
    expect(rules.find((rule) => rule.name === "minimumLengthRequired")?.details).toEqual({ length: 8 });
  });
});

describe("language packs", () => {
  test("are listed, also by major version, shown and downloaded", async () => {
    const { service } = await openPair();
    const packs = await service.languagePacks(undefined, SIGNAL);
    expect(packs.map((pack) => pack.id)).toContain("en-US_2");
    const threes = await service.languagePacks(3, SIGNAL);
    expect(threes.length).toBeLessThan(packs.length);
    expect(threes.every((pack) => pack.id.endsWith("_3"))).toBe(true);
    const pack = await service.languagePack("en-US_2", SIGNAL);
    expect(pack).toMatchObject({ id: "en-US_2", locale: "en-US" });
    expect(pack.version).toMatch(/^2\.\d+$/);
    await expect(service.languagePack("xx-XX_9", SIGNAL)).rejects.toMatchObject({ code: "NOT_FOUND" });
  });

  test("have files that are asked for without their language", async () => {
    const { service } = await openPair({
      languagePacks: [
        {
          locale: "de-DE",
          displayName: "Deutsch",
          version: "2.1",
          files: { "messages_de.properties": "hallo=Hallo" },
        },
      ],
    });
    const { body } = await service.openLanguageFile("de-DE_2", "messages.properties", SIGNAL);
    expect(await text(body)).toBe("hallo=Hallo");
    for (const path of ["messages_de.properties", "../messages.properties", "nothing"]) {
      await expect(service.openLanguageFile("de-DE_2", path, SIGNAL)).rejects.toThrow();
    }
  });
});
