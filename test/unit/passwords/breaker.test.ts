/** I3 no burnt transfers: an outage costs a few attempts, not one for every transfer. */
import { beforeEach, expect, test } from "vitest";
import { type AnsweredBy, Fault } from "../../../src/base/faults.ts";
import { Breaker } from "../../../src/passwords/breaker.ts";
import { SIGNAL } from "../../support/service.ts";

const MINUTE_MS = 60_000;

let { send, service, clientOf, doubt } = open();
beforeEach(() => {
  ({ send, service, clientOf, doubt } = open());
});

test("after a password whose verdict is open none is sent until the service has answered a request without one", async () => {
  await send("none");
  service.isUp = false;
  expect(await send()).toBe("PASSWORDS_HELD");
  expect(service.sent).toBe(1);
  service.isUp = true;
  expect(await send()).toBe("accepted");
  expect(await send()).toBe("accepted");
});

test("after a password whose verdict is open one transfer tries at a time, and the first verdict ends it", async () => {
  await send("intermediary");
  const outcomes = await Promise.all([send("service"), send(), send()]);
  expect(outcomes).toEqual(["PASSWORD_REFUSED", "PASSWORDS_HELD", "PASSWORDS_HELD"]);
  expect(service.sent).toBe(2);
  expect(await Promise.all([send(), send()])).toEqual(["accepted", "accepted"]);
});

test("after a password whose verdict is open further ones are tried less and less often", async () => {
  for (let minute = 0; minute < 24 * 60; minute++) {
    await send("none");
    service.nowMs += MINUTE_MS;
  }
  expect(service.sent).toBeLessThan(32);
  service.nowMs += 60 * MINUTE_MS;
  expect(await send()).toBe("accepted");
});

test("after a password whose verdict is open those that were under way at the same time count as one failure, and one that never left says nothing", async () => {
  await Promise.all([send("none"), send("none"), send("none")]);
  expect(await send("unsent")).toBe("SERVICE_UNREACHABLE");
  expect(await send()).toBe("accepted");
});

test("after a password whose verdict is open answers to another client of the same service do not count, and other services are not held back", async () => {
  await send("none");
  const other = clientOf("b");
  const elsewhere = await Promise.all([send(undefined, other), send(undefined, other)]);
  expect(elsewhere).toEqual(["accepted", "accepted"]);
  service.answers++;
  service.isUp = false;
  expect(await send(undefined, clientOf("a"))).toBe("PASSWORDS_HELD");
  expect(await send()).toBe("accepted");
});

test("after another request that failed, no password is sent until the service has answered, and then all of them are", async () => {
  service.isUp = false;
  doubt();
  expect(await Promise.all([send(), send()])).toEqual(["PASSWORDS_HELD", "PASSWORDS_HELD"]);
  service.isUp = true;
  expect(await Promise.all([send(), send()])).toEqual(["accepted", "accepted"]);
  expect(service.sent).toBe(2);
});

test("after another request that failed, the service is not asked where it has answered since", async () => {
  doubt();
  service.answers++;
  expect(await send()).toBe("accepted");
  expect(service.asked).toBe(0);
});

function open() {
  const service = { isUp: true, nowMs: 0, sent: 0, asked: 0, answers: 0 };
  const breaker = new Breaker({ now: () => service.nowMs });
  const clientOf = (id: string) => ({ id, ownAnswers: () => service.answers });
  const usual = clientOf("a");
  const probe = async () => {
    service.asked++;
    if (service.isUp) service.answers++;
  };
  /** `answeredBy`: who answers; missing if the password is accepted. Returns what the caller gets. */
  const send = async (answeredBy?: AnsweredBy, client = usual): Promise<string> => {
    const request = async () => {
      service.sent++;
      await Promise.resolve();
      if (answeredBy === undefined) return "accepted";
      throw new Fault(CODES[answeredBy], { answeredBy });
    };
    const sent = breaker.pass({ service: client, probe }, request, SIGNAL);
    return sent.catch((error: Fault) => error.code);
  };
  return { send, service, clientOf, doubt: () => breaker.doubt(usual) };
}

const CODES = {
  unsent: "SERVICE_UNREACHABLE",
  service: "PASSWORD_REFUSED",
  intermediary: "CONNECTION_LOST",
  none: "CONNECTION_LOST",
} as const;
