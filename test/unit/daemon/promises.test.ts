/** I7 nothing silent: a daemon watches the promises of each of its parts. */
import { expect, test, vi } from "vitest";
import { systemClock } from "../../../src/base/clock.ts";
import type { Parts } from "../../../src/daemon/parts.ts";
import { watchPromises } from "../../../src/daemon/promises.ts";
import type { Membership } from "../../../src/inbox/members.ts";
import { Events, listenTo } from "../../../src/model/events.ts";
import { PROMISE_KINDS, type Promised, type PromiseKind } from "../../../src/model/promise.ts";
import { makeFolder } from "../../support/program.ts";

const MINUTE_MS = 60_000;

test("a part that does nothing breaks its promise, whichever part it is", async () => {
  const work = await makeFolder();
  vi.useFakeTimers({ toFake: ["Date", "performance", "setInterval", "clearInterval"] });
  await using scope = new AsyncDisposableStack();
  scope.defer(() => void vi.useRealTimers());
  const startedMs = performance.now();
  const late = (kind: PromiseKind): Promised[] => [
    { kind, subject: kind, text: "Not done.", dueMs: startedMs, graceMs: MINUTE_MS },
  ];
  const parts = {
    clock: systemClock,
    live: { now: { work, queue: { role: "all" } } },
    board: {
      hasTrouble: () => false,
      promisedPolls: () => late("poll"),
      promisedDeliveries: () => late("delivery"),
    },
    queue: { stalled: async () => ["https://service.example"] },
    orders: { open: [], dueMs: startedMs },
    handoffs: { scanDueMs: () => startedMs },
    notifier: { promised: () => late("notification") },
  } as unknown as Parts;
  const membership = { report: async () => {} } as unknown as Membership;
  const events = new Events();
  const broken = new Set<PromiseKind>();
  events.subscribe(
    listenTo({ "promises-changed": ({ began }) => began.forEach(({ kind }) => void broken.add(kind)) }),
  );
  watchPromises(parts, membership, events, scope);
  await vi.advanceTimersByTimeAsync(3 * MINUTE_MS);
  // The timers of this process run.
  expect([...broken, "timers"].toSorted()).toEqual(PROMISE_KINDS.toSorted());
});
