/** Opens the engine that runs the jobs of a daemon. */
import type { Clock } from "../base/clock.ts";
import { Outage } from "../base/outage.ts";
import type { Scope } from "../base/scope.ts";
import type { Events } from "../model/events.ts";
import { openQueue } from "../queue/open.ts";
import type { JobQueue } from "../queue/port.ts";
import type { LiveSettings } from "./live-settings.ts";

interface EngineOptions {
  readonly mode: "run" | "once";
  readonly stop: AbortSignal;
  readonly clock: Clock;
  readonly events: Events;
  readonly openQueue?: typeof openQueue;
}

export function openEngine(live: LiveSettings, options: EngineOptions, scope: Scope): Promise<JobQueue> {
  const { mode, stop, clock, events } = options;
  const { queue } = live.now;
  const outage = new Outage(clock, {
    began: (fault) => events.emit({ type: "queue-lost", fault }),
    changed: (fault) => events.emit({ type: "queue-lost", fault }),
    ended: (lastedMs) => events.emit({ type: "queue-back", lostForMs: lastedMs }),
  });
  scope.use(outage, (it) => it.end());
  return (options.openQueue ?? openQueue)(queue, {
    slots: () => live.now.limits.transfers,
    mode,
    services: live.services,
    mayFreeSlots: () => live.now.mailboxes.some(({ check }) => check !== undefined),
    outage,
    onValueRemoved: (key) => events.emit({ type: "queue-value-removed", key }),
    onEvicting: (policy) => events.emit({ type: "queue-evicts", policy }),
    signal: stop,
  });
}
