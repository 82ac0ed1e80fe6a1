/** I3 no burnt transfers: an outage costs a few attempts, not one for every transfer. */
import { describe, expect, test } from "vitest";
import { type AnsweredBy, Fault } from "../../../src/base/faults.ts";
import { Breaker } from "../../../src/passwords/breaker.ts";
import { SIGNAL } from "../../support/service.ts";

const MINUTE_MS = 60_000;

describe("after a password whose verdict is open", () => {
  test("none is sent until the service has answered a request without one", async () => {
    const { send, service } = open();
    await send("none");
    service.isUp = false;
    expect(await send()).toBe("PASSWORDS_HELD");
    expect(service.sent).toBe(1);
    service.isUp = true;
    expect(await send()).toBe("accepted");
    expect(await send()).toBe("accepted");
  });

  test("one transfer tries at a time, and the first verdict ends it", async () => {
    const { send, service } = open();
    await send("intermediary");
    const outcomes = await Promise.all([send("service"), send(), send()]);
    expect(outcomes).toEqual(["PASSWORD_REFUSED", "PASSWORDS_HELD", "PASSWORDS_HELD"]);
    expect(service.sent).toBe(2);
    expect(await Promise.all([send(), send()])).toEqual(["accepted", "accepted"]);
  });

  test("further ones are tried less and less often", async () => {
    const { send, service } = open();
    for (let minute = 0; minute < 24 * 60; minute++) {
      await send("none");
      service.nowMs += MINUTE_MS;
    }
    expect(service.sent).toBeLessThan(32);
    service.nowMs += 60 * MINUTE_MS;
    expect(await send()).toBe("accepted");
  });

  test("those that were under way at the same time count as one failure", async () => {
    const { send } = open();
    await Promise.all([send("none"), send("none"), send("none")]);
    expect(await send()).toBe("accepted");
  });

  test("one that never left says nothing", async () => {
    const { send } = open();
    await send("none");
    expect(await send("unsent")).toBe("SERVICE_UNREACHABLE");
    expect(await send()).toBe("accepted");
  });

  test("answers to another client of the same service do not count", async () => {
    const { send, service } = open();
    await send("none");
    service.answers++;
    service.isUp = false;
    expect(await send(undefined, "a", {})).toBe("PASSWORDS_HELD");
    expect(await send()).toBe("accepted");
  });

  test("other services are not held back", async () => {
    const { send } = open();
    await send("none");
    expect(await Promise.all([send(undefined, "b"), send(undefined, "b")])).toEqual(["accepted", "accepted"]);
  });
});

describe("after another request that failed", () => {
  test("no password is sent until the service has answered, and then all of them are", async () => {
    const { send, service, doubt } = open();
    service.isUp = false;
    doubt();
    expect(await Promise.all([send(), send()])).toEqual(["PASSWORDS_HELD", "PASSWORDS_HELD"]);
    service.isUp = true;
    expect(await Promise.all([send(), send()])).toEqual(["accepted", "accepted"]);
    expect(service.sent).toBe(2);
  });

  test("the service is not asked where it has answered since", async () => {
    const { send, service, doubt } = open();
    doubt();
    service.answers++;
    expect(await send()).toBe("accepted");
    expect(service.asked).toBe(0);
  });
});

function open() {
  const service = { isUp: true, nowMs: 0, sent: 0, asked: 0, answers: 0 };
  const breaker = new Breaker({ now: () => service.nowMs });
  const targetOf = (serviceId: string, client: object = service) => ({
    serviceId,
    client,
    ownAnswers: () => service.answers,
    probe: async () => {
      service.asked++;
      if (service.isUp) service.answers++;
    },
  });
  /** `answeredBy`: who answers; missing if the password is accepted. Returns what the caller gets. */
  const send = async (answeredBy?: AnsweredBy, serviceId = "a", client?: object): Promise<string> => {
    const target = targetOf(serviceId, client);
    try {
      return await breaker.pass(
        target,
        async () => {
          service.sent++;
          await Promise.resolve();
          if (answeredBy === undefined) return "accepted";
          const code =
            answeredBy === "unsent"
              ? "SERVICE_UNREACHABLE"
              : answeredBy === "service"
                ? "PASSWORD_REFUSED"
                : "CONNECTION_LOST";
          throw new Fault(code, { answeredBy });
        },
        SIGNAL,
      );
    } catch (error) {
      return (error as Fault).code;
    }
  };
  return { send, service, doubt: () => breaker.doubt(targetOf("a")) };
}
