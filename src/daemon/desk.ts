/** What operators see of a running daemon: the board that hears everything, and the page that shows it. */
import { hostname } from "node:os";
import type { Clock } from "../base/clock.ts";
import type { Scope } from "../base/scope.ts";
import { readVersion } from "../base/version.ts";
import type { Settings } from "../config/settings.ts";
import type { Inbox } from "../inbox/port.ts";
import type { MailboxState } from "../mailbox/state.ts";
import type { Receipt } from "../model/receipt.ts";
import type { Delivery } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { JobQueue } from "../queue/port.ts";
import { type HistoryEntry, type HistoryQuery, readHistory } from "../receipts/history.ts";
import { openActions } from "./desk-actions.ts";
import type { DaemonWatch } from "./watching.ts";

/** How often the depth of the queue is noted, and what others have done is learnt. */
const LOOK_EVERY_MS = 30_000;

const MOST_PAST = 50;

export interface Desk {
  /** Hears what the daemon does. */
  readonly watch: Partial<DaemonWatch>;
  /** A poll is over, and took so long. */
  polled(state: MailboxState, isGood: boolean, seconds: number): void;
  /** From now on the page knows what is unfinished, and how much waits. */
  attach(queue: JobQueue, listUnfinished: () => Promise<readonly Receipt[]>): Promise<void>;
  /** These are the mailboxes from now on. */
  mailboxesChanged(mailboxes: Settings["mailboxes"]): void;
  /** From now on orders that are given through the page are carried out at once, and not only soon. */
  obeyWith(obey: () => Promise<void>): void;
}

/** Its code is loaded only where there is a page. */
export async function openDesk(
  settings: Settings,
  inbox: Inbox,
  scope: Scope,
  clock: Clock,
  watch: DaemonWatch,
  stop: AbortSignal,
): Promise<Desk | undefined> {
  if (settings.http === undefined) return undefined;
  const [{ createHttp }, { startListening }, { Metrics }] = await Promise.all([
    import("../observe/http.ts"),
    import("../observe/listen.ts"),
    import("../observe/metrics.ts"),
  ]);
  const board = new Board(factsOf(settings), settings.mailboxes, clock);
  let queue: JobQueue | undefined;
  let obey = () => Promise.resolve();
  const metrics = new Metrics(
    settings.mailboxes.map(({ name }) => name),
    readVersion(),
    {
      status: () => board.read(),
      freeBytes: () => inbox.freeBytes(),
      queueDepth: async () => queue?.depth(),
    },
    clock,
  );
  const server = createHttp({
    board,
    metrics: () => metrics.text(),
    history: (search) => readPast(settings.work, search === "" ? {} : { search }),
    actions: await openActions(settings, clock, stop, () => obey()),
    hosts: settings.http.hosts,
  });
  scope.use(startListening(server, settings.http.listen, watch), (close) => close());
  return {
    watch: watchFor(board, metrics),
    polled(state, isGood, seconds) {
      board.tokenValidUntil(state.mailbox.name, state.tokens.validUntilMs);
      metrics.polled(state.mailbox.name, isGood ? "ok" : "failed", seconds);
    },
    mailboxesChanged(mailboxes) {
      board.setMailboxes(mailboxes);
      metrics.setMailboxes(mailboxes.map(({ name }) => name));
    },
    obeyWith(given) {
      obey = given;
    },
    async attach(opened, listUnfinished) {
      queue = opened;
      const look = async () => {
        board.queued((await opened.depth()) ?? 0);
        board.learn(await listUnfinished());
      };
      board.recall((await readPast(settings.work, { state: "delivered" })).map(asDelivery));
      await look();
      const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS);
      scope.use(timer, clearInterval);
    },
  };
}

/** What is damaged in the journal is passed over here: `inlet history` says so. */
async function readPast(work: string, query: Partial<HistoryQuery>): Promise<HistoryEntry[]> {
  return Array.fromAsync(readHistory(work, { ...query, limit: MOST_PAST }, () => {}));
}

function asDelivery({ mailbox, trackingId, sender, folder = "", at }: HistoryEntry): Delivery {
  return { mailbox, trackingId, sender, folder, at, tookSeconds: undefined };
}

function factsOf({ queue, inbox }: Settings) {
  return {
    program: readVersion(),
    host: hostname(),
    pid: process.pid,
    queue: queue === "embedded" ? ("embedded" as const) : ("redis" as const),
    role: queue === "embedded" ? ("all" as const) : queue.role,
    inbox,
  };
}

function watchFor(board: Board, metrics: Metrics): Partial<DaemonWatch> {
  return {
    discovered(receipt) {
      board.discovered(receipt);
      metrics.discovered(receipt);
    },
    stateChanged(receipt) {
      board.stateChanged(receipt);
      metrics.stateChanged(receipt);
    },
    progressed(receipt, doneBytes, totalBytes, receivedBytes) {
      board.progressed(receipt, doneBytes, totalBytes, receivedBytes);
      metrics.received(receivedBytes);
    },
    lost: (receipt) => board.lost(receipt),
    polled: (mailbox, listed) => board.polled(mailbox, listed),
    pollFailed: (mailbox, fault) => board.pollFailed(mailbox, fault),
    diskFull: (fault) => board.troubleBegan("disk", fault),
    diskHasRoom: () => board.troubleEnded("disk"),
    queueLost: (fault) => board.troubleBegan("queue", fault),
    queueBack: () => board.troubleEnded("queue"),
    missed: (mailbox, { described }, dueMs) => board.missed(mailbox, described, dueMs),
    arrived: (mailbox, { described }) => board.arrived(mailbox, described),
    handedOver(delivered, step) {
      board.handoffs.handedOver(delivered, step);
      metrics.handoffs.tried(step, "ok");
    },
    handoffFailed(delivered, step, { message }, { willRetry }) {
      board.handoffs.failed(delivered, step, message, willRetry);
      metrics.handoffs.tried(step, "failed");
    },
    uncollected: (delivered) => board.handoffs.uncollected(delivered),
    collected: (delivered) => board.handoffs.collected(delivered),
    handoffsSeen(summary) {
      board.handoffs.seen(summary);
      metrics.handoffs.seen(summary);
    },
  };
}
