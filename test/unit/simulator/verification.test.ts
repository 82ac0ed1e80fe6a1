/** Verification of addresses at the simulated service. */
import { describe, expect, test } from "vitest";
import type { Simulator } from "../../../simulator/simulator.ts";
import { type Answer, ask, jsonOf, simulate } from "./client.ts";

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

describe("a new client id", () => {
  test("has five tries and 15 minutes for a code", async () => {
    const simulator = await simulate();
    const stranger = await strangerOf(simulator);
    const trying = async (verificationCode = simulator.mailedCodes(ADDRESS).at(-1)) =>
      (await post(simulator, "token", stranger, { verificationCode })).status;
    const mailNew = () => post(simulator, "code/email", stranger);

    await mailNew();
    for (let tries = 0; tries < 5; tries += 1) expect(await trying("wrong")).toBe(403);
    expect(await trying()).toBe(403);

    for (const [seconds, status] of [
      [15 * 60, 403],
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

test.each([true, false])(
  "gives so many tokens in so many seconds, and no more (told for how long: %s)",
  async (retryAfter) => {
    const simulator = await simulate({ tokenLimit: { tokens: 2, seconds: 10, retryAfter } });
    const asking = () => post(simulator, "token", simulator.clientId);
    expect((await asking()).status).toBe(200);
    simulator.advance(4);
    expect((await asking()).status).toBe(200);
    const refused = await asking();
    expect([refused.status, refused.headers["retry-after"]]).toEqual([429, retryAfter ? "6" : undefined]);
    simulator.advance(6);
    expect((await asking()).status).toBe(200);
    expect((await asking()).status).toBe(429);
  },
);
