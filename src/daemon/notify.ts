/** Opens the notifications with the parts of the daemon that they need. */

import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { findEnd, readTail } from "../base/tail.ts";
import { linkableAddress } from "../config/http.ts";
import { hasEnded } from "../inbox/members.ts";
import { JOURNAL_FILE } from "../ledger/journal.ts";
import { parseJson } from "../ledger/lines.ts";
import { LedgerPaths } from "../ledger/paths.ts";
import type { Ledger } from "../ledger/port.ts";
import { type Events, listenTo } from "../model/events.ts";
import type { JournalReader, NotifyPatience } from "../notify/channel.ts";
import { Notifier } from "../notify/open.ts";
import { describeDaemon } from "../operate/facts.ts";
import type { LiveSettings } from "./live-settings.ts";

const PATIENCE: NotifyPatience = { retryMs: 30_000, blipMs: 2 * 60_000 };

interface DaemonParts {
  readonly clock: Clock;
  readonly events: Events;
  readonly stop: AbortSignal;
  /** Identifies this process. */
  readonly process: string;
  /** Overrides some of the defaults. */
  readonly patience: Partial<NotifyPatience> | undefined;
}

/** Subscribes to the events at once. */
export function openNotifier(
  live: LiveSettings,
  { clock, events, stop, process, patience }: DaemonParts,
): Notifier {
  const { work, queue, http } = live.now;
  const { host, inbox, program, config } = describeDaemon(live.now);
  const { journal, temporary } = new LedgerPaths(work);
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
        zone: live.now.timezone,
        hasSeveralMailboxes: live.now.mailboxes.length > 1,
      }),
      serviceOf: (mailbox) => live.serviceOf(mailbox),
    },
    live.now,
  );
  events.subscribe(notifier.listener);
  events.subscribe(
    listenTo({
      "console-opened": (event) => {
        address = event.address;
      },
    }),
  );
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
