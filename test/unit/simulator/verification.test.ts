/** Verification of addresses at the simulated service. */
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../../simulator/simulator.ts";
import { type Answer, ask, errorOf, jsonOf, simulate, tokenFor } from "./client.ts";

const ADDRESS = "orders@example.com";

async function strangerOf(simulator: Simulator): Promise<string> {
  const answer = await ask(simulator, "/api/clients", { headers: { "X-CS-ClientId": undefined } });
  return jsonOf(answer).data.clientId;
}

function post(simulator: Simulator, what: string, clientId: string, body?: unknown): Promise<Answer> {
  return ask(simulator, `/api/users/${ADDRESS}/verification/${what}`, {
    method: "POST",
    body,
    headers: { "X-CS-ClientId": clientId },
  });
}

function list(simulator: Simulator, address: string, token: string, clientId?: string): Promise<Answer> {
  return ask(simulator, `/api/users/${address}/transfers/received-transfers`, {
    headers: { "X-CS-VerificationToken": token, "X-CS-ClientId": clientId ?? simulator.clientId },
  });
}

describe("a registered client id", () => {});

describe("a new client id", () => {
  test("is refused without a code, and verified with the mailed one", async () => {
    const simulator = await simulate();
    const stranger = await strangerOf(simulator);
    expect(stranger).toMatch(/^[A-Za-z0-9]{64}$/);
    expect(errorOf(await post(simulator, "token", stranger))).toBe("403/3010");

    const mailed = await post(simulator, "code/email", stranger);
    expect(jsonOf(mailed)).toEqual({ data: {}, meta: {} });
    const [verificationCode = ""] = simulator.mailedCodes("Orders@Example.com");
    const { data } = jsonOf(await post(simulator, "token", stranger, { verificationCode }));
    expect((await list(simulator, ADDRESS, data.token, stranger)).status).toBe(200);
    expect(errorOf(await post(simulator, "token", stranger, { verificationCode }))).toBe("401/3002");
  });

  test("has five tries and 15 minutes for a code", async () => {
    const simulator = await simulate();
    const stranger = await strangerOf(simulator);
    const trying = async (verificationCode = simulator.mailedCodes(ADDRESS).at(-1)) =>
      (await post(simulator, "token", stranger, { verificationCode })).status;
    const mailNew = () => post(simulator, "code/email", stranger);

    await mailNew();
    for (let tries = 0; tries < 5; tries += 1) expect(await trying("wrong")).toBe(401);
    expect(await trying()).toBe(401);

    for (const [seconds, status] of [
      [15 * 60, 401],
      [15 * 60 - 1, 200],
    ] as const) {
      await mailNew();
      simulator.advance(seconds);
      expect(await trying()).toBe(status);
    }
  });

  test.each(["null", "[]", '"code"', "{", '{"verificationCode": 12}'])(
    "gets no token for the body %s",
    async (body) => {
      const simulator = await simulate();
      const stranger = await strangerOf(simulator);
      expect((await post(simulator, "token", stranger, body)).status).toBeGreaterThanOrEqual(400);
    },
  );
});

describe("a token", () => {
  test("is valid only for its address and client id, whatever the case of the address", async () => {
    const simulator = await simulate();
    const token = await tokenFor(simulator, ADDRESS);
    expect((await list(simulator, "ORDERS@example.COM", token)).status).toBe(200);
    expect(errorOf(await list(simulator, "other@example.com", token))).toBe("401/3002");
    expect(errorOf(await list(simulator, ADDRESS, token, await strangerOf(simulator)))).toBe("401/3002");
    expect(errorOf(await list(simulator, ADDRESS, "made-up"))).toBe("401/3002");
    expect(errorOf(await ask(simulator, `/api/users/${ADDRESS}/transfers/sent-transfers`))).toBe("401/3002");
  });
});
