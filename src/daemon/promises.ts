/** What this daemon has promised, from each of its parts; a watcher compares it with what has happened. */
import type { Emit } from "../model/events.ts";
import { type Promised, type PromiseKind, WITHIN_MS } from "../model/promise.ts";
import type { GeneralTrouble } from "../observe/board.ts";
import { type PromiseSource, Watcher } from "../observe/watcher.ts";
import type { Fleet } from "./fleet.ts";
import type { Parts } from "./parts.ts";

/** Watches until the scope ends. `fleet`: missing with the embedded engine. */
export function watchPromises(
  parts: Parts,
  fleet: Fleet | undefined,
  emit: Emit,
  scope: AsyncDisposableStack,
): void {
  const { board, queue, handoffs, orders, notifier, clock } = parts;
  const startedMs = clock.now();
  const stalledMs = new Map<string, number>();
  /** `explaining`: troubles that say why none of its promises is kept. */
  const source = (
    kind: PromiseKind,
    explaining: readonly GeneralTrouble[],
    read: PromiseSource["read"],
  ): PromiseSource => ({ kind, isExplained: () => board.hasTrouble(...explaining), read });
  const watcher = new Watcher(clock, emit, [
    source("poll", ["queue", "disk"], () => board.promisedPolls((mailbox) => fleet?.polledMs(mailbox))),
    source("download", ["queue", "disk"], async () =>
      downloadsOf(await queue.stalled(), stalledMs, clock.now()),
    ),
    source("delivery", ["disk"], () => board.promisedDeliveries()),
    source("order", ["disk"], () => ordersOf(orders, startedMs)),
    source("handoff", ["disk", "handoffs"], () => handoffsOf(handoffs.scanDueMs())),
    source("notification", [], () => notifier.promised()),
    ...(fleet === undefined ? [] : [source("fleet", ["disk"], () => fleet.promised())]),
  ]);
  watcher.start();
  scope.adopt(watcher, (it) => it.close());
}

/** No job that is due waits for longer than a minute while places are free. `sinceMs`: remembered from call to call. */
function downloadsOf(
  stalled: readonly string[],
  sinceMs: Map<string, number>,
  nowMs: number,
): readonly Promised[] {
  for (const service of sinceMs.keys()) if (!stalled.includes(service)) sinceMs.delete(service);
  return stalled.map((service) => {
    const since = sinceMs.get(service) ?? nowMs;
    sinceMs.set(service, since);
    const text = "Transfers wait to be downloaded, though there is a free place.";
    const subject = `downloads from ${service}`;
    return { kind: "download", subject, text, dueMs: since + WITHIN_MS, graceMs: WITHIN_MS };
  });
}

/** Each order is carried out within a minute, and orders are looked for regularly. */
function ordersOf({ open, dueMs }: Parts["orders"], startedMs: number): readonly Promised[] {
  const look = { text: "Orders are not read.", dueMs: dueMs + WITHIN_MS };
  const given = open.map(({ order: { action, mailbox, trackingId, at } }) => ({
    subject: `order ${action} ${trackingId ?? mailbox}`,
    mailbox,
    text: `It was given at ${at}, and has not been carried out.`,
    dueMs: Math.max(Date.parse(at), startedMs) + WITHIN_MS,
  }));
  return [{ subject: "orders", ...look }, ...given].map((each) => ({
    kind: "order",
    graceMs: WITHIN_MS,
    ...each,
  }));
}

/** The outbox is scanned when it was due. */
function handoffsOf(scanDueMs: number | undefined): readonly Promised[] {
  if (scanDueMs === undefined) return [];
  const text = "Deliveries are not looked at: hand-offs and pick-ups may be missed.";
  return [{ kind: "handoff", subject: "hand-offs", text, dueMs: scanDueMs + WITHIN_MS, graceMs: WITHIN_MS }];
}
