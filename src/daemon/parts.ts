/** The open parts of a daemon. Opens the engine, the hand-offs and the notifications with the parts that they need. */
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { DeadlineLimits } from "../base/deadline.ts";
import type { Fault } from "../base/faults.ts";
import { machine } from "../base/machine.ts";
import { Outage } from "../base/outage.ts";
import { linkableAddress } from "../config/http.ts";
import { handoffOf } from "../config/settings.ts";
import { type OpenHandoffs, openHandoffs } from "../handoff/handoffs.ts";
import type { HandoffPatience, HandoffTools } from "../handoff/port.ts";
import { hasEnded } from "../inbox/members.ts";
import type { Inbox } from "../inbox/port.ts";
import { JOURNAL_FILE } from "../ledger/journal.ts";
import { parseText } from "../ledger/lines.ts";
import { ledgerPaths } from "../ledger/paths.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Expected } from "../mailbox/expected.ts";
import { type Emit, type Events, listenTo } from "../model/events.ts";
import type { NotifyPatience } from "../notify/channel.ts";
import { Notifier } from "../notify/notifier.ts";
import type { Board } from "../observe/board.ts";
import { describeDaemon } from "../operate/facts.ts";
import type { Passwords } from "../passwords/port.ts";
import { openQueue } from "../queue/engine.ts";
import type { JobQueue } from "../queue/port.ts";
import type { LiveSettings } from "./live-settings.ts";
import type { Mailboxes } from "./mailboxes.ts";
import type { OrderRunner } from "./orders.ts";

export interface Parts {
  readonly live: LiveSettings;
  readonly clock: Clock;
  readonly emit: Emit;
  readonly board: Board;
  readonly diskTrouble: Outage;
  readonly inbox: Inbox;
  readonly ledger: Ledger;
  readonly passwords: Passwords;
  readonly mailboxes: Mailboxes;
  readonly expected: Expected;
  readonly handoffs: OpenHandoffs;
  readonly queue: JobQueue;
  readonly orders: OrderRunner;
  readonly notifier: Notifier;
  /** Throws if a folder is lost that everything needs. */
  demandFolders(): Promise<void>;
}

/** How long to wait, where it differs from the defaults. */
export interface DaemonPatience {
  readonly handoff?: Partial<HandoffPatience>;
  readonly notify?: Partial<NotifyPatience>;
  readonly poll?: DeadlineLimits | undefined;
  /** Between two looks at the folders. */
  readonly lookMs?: number;
}

/** What opening the parts needs besides the settings. */
interface OpenOptions {
  readonly clock: Clock;
  readonly events: Events;
  readonly stop: AbortSignal;
}

export function openEngine(
  live: LiveSettings,
  options: OpenOptions & { readonly mode: "run" | "once"; readonly openQueue?: typeof openQueue },
  scope: AsyncDisposableStack,
): Promise<JobQueue> {
  const { mode, stop, clock, events } = options;
  const lost = (fault: Fault) => events.emit({ type: "queue-lost", fault });
  const outage = new Outage(clock, {
    began: lost,
    changed: lost,
    ended: (lastedMs) => events.emit({ type: "queue-back", lostForMs: lastedMs }),
  });
  scope.adopt(outage, (it) => it.end());
  return (options.openQueue ?? openQueue)(live.now.queue, {
    slots: () => live.now.limits.transfers,
    mode,
    services: live.services,
    restsFile: join(live.now.state, "rests.json"),
    mayFreeSlots: () => live.now.mailboxes.some(({ check }) => check !== undefined),
    outage,
    onRest: (service, rest) => events.emit({ type: "service-rests", service, rest }),
    onEvicting: (policy) => events.emit({ type: "queue-evicts", policy }),
    signal: stop,
  });
}

export const HANDOFF_PATIENCE: HandoffPatience = {
  retryMs: 60_000,
  giveUpMs: 3 * 24 * 3_600_000,
  scanMs: 10_000,
  killMs: 5_000,
};

/** `patience`: overrides some of the defaults. */
export function openDaemonHandoffs(
  live: LiveSettings,
  parts: Pick<HandoffTools, "ledger" | "inbox" | "clock" | "emit" | "stop" | "isClockRight">,
  patience: Partial<HandoffPatience> = {},
): Promise<OpenHandoffs> {
  const { work, queue } = live.now;
  const paths = ledgerPaths(work);
  return openHandoffs({
    ...parts,
    work,
    handoffOf: (delivery) => handoffOf(live.now, delivery),
    console: () => live.now.http?.publicUrl,
    isAlone: queue === "embedded",
    finishedPath: (name, round) => paths.handoff(name, round),
    uptimeMs: () => machine().uptimeMs(),
    patience: { ...HANDOFF_PATIENCE, ...patience },
  });
}

const NOTIFY_PATIENCE: NotifyPatience = { retryMs: 30_000, blipMs: 2 * 60_000 };

/** Subscribes to the events at once. `process`: identifies this process. `patience`: overrides some of the defaults. */
export function openNotifier(
  live: LiveSettings,
  { clock, events, stop }: OpenOptions,
  process: string,
  patience: Partial<NotifyPatience> | undefined,
): Notifier {
  const { work, queue, http } = live.now;
  const { host, inbox, program, config } = describeDaemon(live.now);
  const { journal, temporary } = ledgerPaths(work);
  let address: string | undefined;
  const notifier = new Notifier(
    {
      clock,
      emit: events.emit,
      stop,
      folder: join(work, "notify"),
      temporary,
      isShared: queue !== "embedded",
      process,
      patience: { ...NOTIFY_PATIENCE, ...patience },
      journal: {
        folder: journal,
        pattern: JOURNAL_FILE,
        parse: (line) => parseText(line).value,
        orderOf: (line) => ("at" in line ? String(line.at) : ""),
      },
      hasEnded: (id) => hasEnded(work, id),
      origin: () => ({
        host,
        inbox,
        version: program,
        config,
        console: linkableAddress(http, address),
        zone: live.now.timezone,
        hasSeveralMailboxes: live.now.mailboxes.length > 1,
      }),
      serviceOf: (mailbox) => live.serviceOf(mailbox),
    },
    live.now,
  );
  const onOpened = (opened: { readonly address: string }) => {
    address = opened.address;
  };
  events.subscribe(notifier.listener);
  events.subscribe(listenTo({ "console-opened": onOpened }));
  return notifier;
}

/** From now on changes of notices are added to the journal. Returns the function that ends this. */
export function journalNotices(notifier: Notifier, { notices }: Pick<Ledger, "notices">): () => void {
  notices.onBatch = notifier.journalWritten;
  notifier.record = (change) => notices.addNotice(change);
  return () => {
    notifier.record = undefined;
  };
}
