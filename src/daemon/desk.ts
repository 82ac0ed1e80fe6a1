/** What operators see of a running daemon: the board that hears everything, and the page that shows it. */
import type { Clock } from "../base/clock.ts";
import type { Scope } from "../base/scope.ts";
import { readVersion } from "../base/version.ts";
import type { Settings } from "../config/settings.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Expected } from "../mailbox/expected.ts";
import type { MailboxState } from "../mailbox/state.ts";
import type { Receipt } from "../model/receipt.ts";
import { Board } from "../observe/board.ts";
import type { JobQueue } from "../queue/port.ts";
import { openActions } from "./desk-actions.ts";
import { describeDaemon, readDeliveries, readPast } from "./facts.ts";
import { overhear } from "./hearing.ts";
import type { DaemonWatch } from "./watching.ts";

/** How often the depth of the queue is noted, and what others have done is learnt. */
const LOOK_EVERY_MS = 30_000;

export interface Desk {
  /** The same watch, overheard by the page. */
  overhear(watch: DaemonWatch): DaemonWatch;
  /** Serves the page from now on, until the scope is left. */
  open(inbox: Inbox, scope: Scope, watch: DaemonWatch, stop: AbortSignal): Promise<void>;
  /** A poll is over, and took so long. */
  polled(state: MailboxState, isGood: boolean, seconds: number): void;
  /** From now on the page knows what is unfinished, and how much waits. `overdue`: what was missed before a restart. */
  attach(
    queue: JobQueue,
    scope: Scope,
    listUnfinished: () => Promise<readonly Receipt[]>,
    overdue: ReturnType<Expected["overdue"]>,
  ): Promise<void>;
  /** These are the mailboxes from now on. */
  mailboxesChanged(mailboxes: Settings["mailboxes"]): void;
  /** From now on orders that are given through the page are carried out at once, and not only soon. */
  obeyWith(obey: () => Promise<void>): void;
}

/** `undefined` where there is to be no page. Its code is loaded only where there is one. */
export async function createDesk(settings: Settings, clock: Clock): Promise<Desk | undefined> {
  const { http, work } = settings;
  if (http === undefined) return undefined;
  const [{ createHttp }, { startListening }, { Metrics }] = await Promise.all([
    import("../observe/http.ts"),
    import("../observe/listen.ts"),
    import("../observe/metrics.ts"),
  ]);
  const board = new Board(describeDaemon(settings), settings.mailboxes, clock);
  let inbox: Inbox | undefined;
  let queue: JobQueue | undefined;
  let obey = () => Promise.resolve();
  const metrics = new Metrics(
    settings.mailboxes.map(({ name }) => name),
    readVersion(),
    {
      status: () => board.read(),
      freeBytes: async () => inbox?.freeBytes(),
      queueDepth: async () => queue?.depth(),
    },
    clock,
  );
  return {
    overhear: (watch) => overhear(watch, board, metrics),
    async open(opened, scope, watch, stop) {
      inbox = opened;
      const server = createHttp({
        board,
        metrics: () => metrics.text(),
        history: (search) => readPast(work, search === "" ? {} : { search }),
        actions: await openActions(settings, clock, stop, () => obey()),
        hosts: http.hosts,
      });
      scope.use(startListening(server, http.listen, watch), (close) => close());
    },
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
    async attach(opened, scope, listUnfinished, overdue) {
      queue = opened;
      const look = async () => {
        board.queued((await opened.depth()) ?? 0);
        board.learn(await listUnfinished());
      };
      for (const { mailbox, rule, dueMs } of overdue) board.missed(mailbox, rule.described, dueMs);
      board.recall(await readDeliveries(work));
      await look();
      const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS);
      scope.use(timer, clearInterval);
    },
  };
}
