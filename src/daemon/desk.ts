/** What is seen of a running daemon: the board that hears everything, and the page that shows it. */
import type { Clock } from "../base/clock.ts";
import type { Scope } from "../base/scope.ts";
import { readVersion } from "../base/version.ts";
import type { Settings } from "../config/settings.ts";
import type { Vitals } from "../host/systemd.ts";
import type { Inbox } from "../inbox/port.ts";
import type { Overdue } from "../mailbox/expected.ts";
import type { MailboxState } from "../mailbox/state.ts";
import type { TransferRecord } from "../model/record.ts";
import type { Status } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import { Pulse } from "../observe/pulse.ts";
import type { JobQueue } from "../queue/port.ts";
import { openActions } from "./desk-actions.ts";
import { describeDaemon, keptIn, readDeliveries, readGone, readPast } from "./facts.ts";
import { overhear } from "./hearing.ts";
import type { DaemonWatch } from "./watching.ts";

/** How often the depth of the queue is noted, and what others have done is learnt. */
const LOOK_EVERY_MS = 30_000;

export interface Desk {
  /** For whoever supervises the process. */
  readonly vitals: Vitals;
  /** Hears of what runs. */
  readonly pulse: Pulse;
  /** The same watch, overheard by the page. */
  overhear(watch: DaemonWatch): DaemonWatch;
  /** Serves the page from now on, where there is to be one, until the scope is left. */
  open(inbox: Inbox, scope: Scope, watch: DaemonWatch, stop: AbortSignal): Promise<void>;
  /** A poll is over, and took so long. */
  polled(state: MailboxState, isGood: boolean, seconds: number): void;
  /** From now on the page knows what is unfinished, how much waits, and what has not come. */
  attach(
    queue: JobQueue,
    scope: Scope,
    /** Other processes change what is unfinished. */
    isShared: boolean,
    listUnfinished: () => Promise<readonly TransferRecord[]>,
    listOverdue: () => Promise<readonly Overdue[]>,
  ): Promise<void>;
  /** These count from now on, as far as they do without a restart. */
  settingsChanged(settings: Settings): void;
  /** These are all that has not come in time. */
  showOverdue(overdue: readonly Overdue[]): void;
  /** From now on orders that are given through the page are carried out at once, and not only soon. */
  runOrdersWith(run: () => Promise<void>): void;
}

export async function createDesk(settings: Settings, clock: Clock): Promise<Desk> {
  const { http, work } = settings;
  const board = new Board(describeDaemon(settings), settings.mailboxes, clock, keptIn(work));
  const pulse = new Pulse();
  let isStarted = false;
  let onStarted = () => {};
  let inbox: Inbox | undefined;
  let queue: JobQueue | undefined;
  let runOrders = () => Promise.resolve();
  let token = http?.token;
  let described = settings.mailboxes;
  const namesOf = (mailboxes: Settings["mailboxes"]) => mailboxes.map(({ name }) => name);
  const page = http === undefined ? undefined : await loadPage();
  const figures = {
    status: () => board.read(),
    // A disk or a queue that cannot be asked must not keep all other figures back.
    freeBytes: async () => inbox?.freeBytes().catch(() => undefined),
    queueDepth: async () => queue?.depth().catch(() => undefined),
  };
  const metrics = page && new page.Metrics(namesOf(described), readVersion(), figures, clock);
  let shown: ReadonlyMap<string, Overdue> = new Map();
  // Where another process has seen it come, or nobody waits for it any more, nothing is told here.
  const showOverdue = (overdue: readonly Overdue[]) => {
    const [before, now] = [shown, new Map(overdue.map((it) => [nameOf(it), it]))];
    for (const [name, it] of before) if (!now.has(name)) board.arrived(it.mailbox, it.rule.described);
    for (const [name, { mailbox, rule, dueMs }] of now) {
      if (before.get(name)?.dueMs !== dueMs) board.missed(mailbox, rule.described, dueMs);
    }
    shown = now;
  };
  return {
    pulse,
    vitals: {
      status: () => board.read(),
      isReady: () => isStarted && isAttempted(board.read()),
      stuck: () => pulse.stuck(),
      onChange(listener) {
        onStarted = listener;
        return board.onChange(listener);
      },
    },
    overhear: (watch) => ({
      ...overhear(watch, board, pulse, metrics),
      ready() {
        isStarted = true;
        watch.ready();
        onStarted();
      },
    }),
    async open(opened, scope, watch, stop) {
      inbox = opened;
      if (http === undefined || page === undefined) return;
      const server = page.createHttp({
        board,
        metrics: async () => (await metrics?.text()) ?? "",
        history: (query, signal) => readPast(work, query, signal),
        actions: await openActions(
          settings,
          () => described,
          clock,
          stop,
          () => runOrders(),
          () => token,
        ),
        hosts: http.hosts,
        stuck: () => pulse.stuck(),
      });
      scope.use(page.startListening(server, http.listen, watch), (close) => close());
    },
    polled(state, isGood, seconds) {
      board.tokenValidUntil(state.mailbox.name, state.tokens.validUntilMs);
      metrics?.polled(state.mailbox.name, isGood ? "ok" : "failed", seconds);
    },
    settingsChanged({ mailboxes, http: changed }) {
      token = changed?.token ?? token;
      described = mailboxes;
      board.setMailboxes(mailboxes);
      metrics?.setMailboxes(namesOf(mailboxes));
    },
    showOverdue,
    runOrdersWith(run) {
      runOrders = run;
    },
    async attach(opened, scope, isShared, listUnfinished, listOverdue) {
      queue = opened;
      let isKnown = false;
      const look = async () => {
        board.queued((await opened.depth()) ?? 0);
        // A process that works alone hears of every change.
        if (isShared || !isKnown) board.learn(await listUnfinished());
        isKnown = true;
        showOverdue(await listOverdue());
      };
      // What cannot be shown now is no reason not to start: it is looked at again.
      const nothing = () => [];
      board.recall(await readDeliveries(work).catch(nothing), []);
      // Nothing waits for the journal of a whole day.
      void readGone(work, clock.now())
        .catch(nothing)
        .then((gone) => board.recall([], gone));
      await look().catch(() => {});
      const timer = setInterval(() => void look().catch(() => {}), LOOK_EVERY_MS);
      scope.use(timer, clearInterval);
    },
  };
}

/** Where several share the work, another process may do the polls. */
function isAttempted({ daemon, mailboxes }: Status): boolean {
  const active = mailboxes.filter(({ paused }) => !paused);
  return (
    daemon.queue === "redis" || active.length === 0 || active.some(({ lastPoll }) => lastPoll !== undefined)
  );
}

function nameOf({ mailbox, rule }: Overdue): string {
  return JSON.stringify([mailbox, rule.described]);
}

/** Its code is loaded only where there is one. */
async function loadPage() {
  const [{ createHttp }, { startListening }, { Metrics }] = await Promise.all([
    import("../observe/http.ts"),
    import("../observe/listen.ts"),
    import("../observe/metrics.ts"),
  ]);
  return { createHttp, startListening, Metrics };
}
