/** Opens the notifications with the parts of the daemon that they need. */
import type { Clock } from "../base/clock.ts";
import type { Settings } from "../config/settings.ts";
import type { Events } from "../model/events.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import type { NotifyPatience } from "../notify/channel.ts";
import { Notifier } from "../notify/open.ts";
import { describeDaemon } from "./facts.ts";

const PATIENCE: NotifyPatience = { retryMs: 30_000, blipMs: 2 * 60_000 };

interface DaemonParts {
  readonly clock: Clock;
  readonly events: Events;
  readonly stop: AbortSignal;
  /** Overrides some of the defaults. */
  readonly patience: Partial<NotifyPatience> | undefined;
}

export interface DaemonNotifier extends Pick<Notifier, "start" | "finish" | "close"> {
  /** Puts new settings in force. */
  apply(next: Settings): Promise<void>;
}

/** Subscribes to the events at once. */
export function openNotifier(
  settings: Settings,
  { clock, events, stop, patience }: DaemonParts,
): DaemonNotifier {
  const { state, work, queue } = settings;
  const { host, inbox, program, config } = describeDaemon(settings);
  let services = servicesOf(settings);
  const notifier = new Notifier(
    {
      clock,
      emit: events.emit,
      stop,
      state,
      work,
      isShared: queue !== "embedded",
      patience: { ...PATIENCE, ...patience },
      origin: { host, inbox, version: program, config },
      serviceOf: (mailbox) => services.get(mailbox),
    },
    settings,
  );
  events.subscribe(notifier.listener);
  return {
    start: () => notifier.start(),
    finish: () => notifier.finish(),
    close: () => notifier.close(),
    apply(next) {
      services = servicesOf(next);
      return notifier.apply(next);
    },
  };
}

function servicesOf({ mailboxes }: Settings): ReadonlyMap<string, string> {
  return new Map(mailboxes.map(({ name, service }) => [name, serviceIdOf(service.baseUrl)]));
}
