/** Opens the notifications with the parts of the daemon that they need. */

import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { findEnd, readTail } from "../base/tail.ts";
import { linkableAddress } from "../config/http.ts";
import type { Settings } from "../config/settings.ts";
import { hasEnded, memberId } from "../inbox/members.ts";
import { JOURNAL_FILE } from "../ledger/journal.ts";
import { parseJson } from "../ledger/lines.ts";
import { LedgerPaths } from "../ledger/paths.ts";
import type { Ledger } from "../ledger/port.ts";
import { type Events, listenTo } from "../model/events.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import type { JournalReader, NotifyPatience } from "../notify/channel.ts";
import { Notifier } from "../notify/open.ts";
import { describeDaemon } from "../operate/facts.ts";

const PATIENCE: NotifyPatience = { retryMs: 30_000, blipMs: 2 * 60_000 };

interface DaemonParts {
  readonly clock: Clock;
  readonly events: Events;
  readonly stop: AbortSignal;
  /** Overrides some of the defaults. */
  readonly patience: Partial<NotifyPatience> | undefined;
}

export interface DaemonNotifier
  extends Pick<Notifier, "start" | "review" | "promised" | "finish" | "release" | "close"> {
  /** Identifies this process. */
  readonly process: string;
  /** From now on changes of notices are added to the journal. Returns the function that ends this. */
  attach(ledger: Pick<Ledger, "notices">): () => void;
  /** Puts new settings in force. */
  apply(next: Settings): Promise<void>;
}

/** Subscribes to the events at once. */
export function openNotifier(
  settings: Settings,
  { clock, events, stop, patience }: DaemonParts,
): DaemonNotifier {
  const { work, queue, http } = settings;
  const { host, inbox, program, config } = describeDaemon(settings);
  const process = memberId();
  const { journal, temporary } = new LedgerPaths(work);
  let services = servicesOf(settings);
  let zone = settings.timezone;
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
      patience: { ...PATIENCE, ...patience },
      journal: readerOf(journal),
      hasEnded: (id) => hasEnded(work, id),
      origin: () => ({
        host,
        inbox,
        version: program,
        config,
        console: linkableAddress(http, address),
        zone,
        hasSeveralMailboxes: services.size > 1,
      }),
      serviceOf: (mailbox) => services.get(mailboxIdOf(mailbox)),
    },
    settings,
  );
  events.subscribe(notifier.listener);
  events.subscribe(
    listenTo({
      "console-opened": (event) => {
        address = event.address;
      },
    }),
  );
  return {
    process,
    start: () => notifier.start(),
    review: (records) => notifier.review(records),
    promised: () => notifier.promised(),
    finish: () => notifier.finish(),
    release: () => notifier.release(),
    close: () => notifier.close(),
    attach({ notices }) {
      notices.onBatch = notifier.journalWritten;
      notifier.record = (change) => notices.addNotice(change);
      return () => {
        notifier.record = undefined;
      };
    },
    apply(next) {
      services = servicesOf(next);
      zone = next.timezone;
      return notifier.apply(next);
    },
  };
}

function readerOf(folder: string): JournalReader {
  const tailed = {
    folder,
    pattern: JOURNAL_FILE,
    parse: (line: string) => parseJson(line).value,
    orderOf: (line: object) => ("at" in line ? String(line.at) : ""),
  };
  return {
    read: (positions, onLine) => readTail(tailed, positions, onLine),
    end: () => findEnd(tailed),
  };
}

function servicesOf({ mailboxes }: Settings): ReadonlyMap<MailboxId, string> {
  return new Map(mailboxes.map(({ name, service }) => [mailboxIdOf(name), serviceIdOf(service.baseUrl)]));
}
