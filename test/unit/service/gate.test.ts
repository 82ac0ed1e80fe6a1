/** How many requests are in flight, with services of several kinds, in virtual time. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Gate } from "../../../src/service/gate.ts";
import { SIGNAL } from "../../support/service.ts";

/** When a request gets its answer, and whether it is refused, with so many in flight. */
type Service = (inFlight: number) => { readonly afterMs: number; readonly isRefused?: boolean };

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("grows to its maximum while a distant service answers quickly", async () => {
  const { gate, seconds } = await run({ requests: 1_600, maximum: 16 }, () => ({ afterMs: 50 }));
  expect(gate.limit).toBe(16);
  // 1,600 requests, 16 at once, 50 ms each: 5 s are the least.
  expect(seconds).toBeLessThan(5.6);
});

test("stays small where more requests at once are not faster", async () => {
  // The service answers 100 requests a second, however many are sent.
  const { gate, most } = await run({ requests: 2_000, maximum: 100 }, (inFlight) => ({
    afterMs: 10 * inFlight,
  }));
  expect(gate.limit).toBeLessThanOrEqual(9);
  expect(most).toBeLessThanOrEqual(24);
});

test("stays just below the number of requests that the service refuses", async () => {
  const { refused, seconds } = await run({ requests: 3_000, maximum: 16 }, (inFlight) => ({
    afterMs: 50,
    isRefused: inFlight > 8,
  }));
  expect(refused).toBeLessThan(30);
  // 8 at once need 18.75 s.
  expect(seconds).toBeLessThan(24);
});

test("shrinks while answers are slow, and grows again afterwards", async () => {
  let isSlow = false;
  const gate = new Gate(() => 16);
  const service: Service = () => ({ afterMs: isSlow ? 5_000 : 50 });
  await run({ requests: 500, gate }, service);
  expect(gate.limit).toBe(16);
  isSlow = true;
  await run({ requests: 200, gate }, service);
  expect(gate.limit).toBeLessThan(4);
  isSlow = false;
  await run({ requests: 3_000, gate }, service);
  expect(gate.limit).toBe(16);
});

test("follows a changed maximum, and lets at least one request through", async () => {
  let maximum = 16;
  const gate = new Gate(() => maximum);
  await run({ requests: 500, gate }, () => ({ afterMs: 50 }));
  maximum = 2;
  const { most } = await run({ requests: 50, gate }, () => ({ afterMs: 50, isRefused: true }));
  expect(most).toBeLessThanOrEqual(2);
  expect(gate.limit).toBe(1);
});

test("nothing enters while it is held, and an aborted request does not wait", async () => {
  const gate = new Gate(() => 16);
  gate.hold(1_000);
  const stop = new AbortController();
  const entering = gate.enter("t1", "file", stop.signal);
  let isIn = false;
  const second = gate.enter("t2", "file", SIGNAL).then((place) => {
    isIn = true;
    place.leave();
  });
  await vi.advanceTimersByTimeAsync(999);
  expect(isIn).toBe(false);
  stop.abort(new Error("stopped"));
  await expect(entering).rejects.toThrow("stopped");
  await vi.advanceTimersByTimeAsync(2);
  await second;
});

test("a transfer of many large files leaves a place to the others", async () => {
  const gate = new Gate(() => 4);
  const entered: string[] = [];
  const enter = (transfer: string) =>
    gate.enter(transfer, "file", SIGNAL).then((place) => {
      entered.push(transfer);
      return place;
    });
  const large = Array.from({ length: 10 }, () => enter("large"));
  const small = ["a", "b", "c"].map((name) => enter(name).then((place) => place.leave()));
  await Promise.all(small);
  expect(entered).toEqual(["large", "large", "large", "a", "b", "c"]);
  (await large[0])?.leave();
  await large[3];
  const [last] = [enter("d")];
  await last;
  expect(entered.slice(6)).toEqual(["large", "d"]);
});

interface Asked {
  readonly requests: number;
  readonly maximum?: number;
  readonly gate?: Gate;
}

/** Sends the requests as fast as the gate allows. Each refused request is sent again. */
async function run({ requests, maximum = 16, gate = new Gate(() => maximum) }: Asked, service: Service) {
  const beganMs = performance.now();
  let [inFlight, most, refused] = [0, 0, 0];
  const sendOne = async (number: number) => {
    const place = await gate.enter(`t${number}`, "file", SIGNAL);
    most = Math.max(most, ++inFlight);
    place.onSending();
    const { afterMs, isRefused } = service(inFlight);
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    inFlight--;
    if (isRefused) {
      refused++;
      place.onOverload();
    } else place.onAnswer();
    place.leave(1_000);
  };
  const all = Promise.all(Array.from({ length: requests }, (_, number) => sendOne(number)));
  let isOver = false;
  void all.then(() => {
    isOver = true;
  });
  while (!isOver) await vi.advanceTimersToNextTimerAsync();
  return { gate, most, refused, seconds: (performance.now() - beganMs) / 1_000 };
}
