/** Watches a running daemon: its status, its metrics, and work that hangs. */
import type { Clock } from "../base/clock.ts";
import { readVersion } from "../base/version.ts";
import type { Settings } from "../config/settings.ts";
import type { Vitals } from "../host/systemd.ts";
import { type Events, listenTo } from "../model/events.ts";
import { isPolled } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import type { Metrics } from "../observe/metrics.ts";
import { Pulse } from "../observe/pulse.ts";
import { describeDaemon, keptIn } from "../operate/facts.ts";

export type Monitor = Awaited<ReturnType<typeof createMonitor>>;

/** Subscribes to the events at once. Without a console, which would serve them, there are no metrics. */
export async function createMonitor(settings: Settings, hasConsole: boolean, clock: Clock, events: Events) {
  const board = new Board(describeDaemon(settings), settings.mailboxes, clock, keptIn(settings.work));
  const pulse = new Pulse();
  let isStarted = false;
  const metrics = hasConsole ? await loadMetrics(settings, board, clock) : undefined;
  if (metrics !== undefined) events.subscribe(metrics.listener);
  events.subscribe(pulse.listener);
  const ready = () => {
    isStarted = true;
  };
  events.subscribe(listenTo({ ready }));
  // Last: its subscribers ask whether the daemon is ready.
  events.subscribe(board.listener);
  const vitals: Vitals = {
    status: () => board.read(),
    isReady: () => isStarted && isPolled(board.read()),
    stuck: () => pulse.stuck(),
    onChange: (subscriber) => board.onChange(subscriber),
  };
  return { board, pulse, metrics, vitals };
}

async function loadMetrics({ mailboxes }: Settings, board: Board, clock: Clock): Promise<Metrics> {
  const { Metrics } = await import("../observe/metrics.ts");
  return new Metrics(mailboxes, readVersion(), () => board.read(), clock);
}
