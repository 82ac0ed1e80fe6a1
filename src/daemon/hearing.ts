/** What the board and the figures hear of what the daemon tells. */
import type { Board } from "../observe/board.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { Pulse } from "../observe/pulse.ts";
import type { DaemonWatch } from "./watching.ts";

/** What the pulse knows the download of a transfer by. */
export function workOn({
  mailbox,
  trackingId,
}: {
  readonly mailbox: string;
  readonly trackingId: string;
}): string {
  return `the download of ${trackingId} for ${mailbox}`;
}

/** The same watch, overheard; `metrics` where there is a page that shows them. */
export function overhear(
  watch: DaemonWatch,
  board: Board,
  pulse: Pulse,
  metrics: Metrics | undefined,
): DaemonWatch {
  return {
    ...watch,
    ...overhearTransfers(watch, board, pulse, metrics),
    ...overhearHandoffs(watch, board, metrics),
    polled(mailbox, listed, discovered, unusable) {
      watch.polled(mailbox, listed, discovered, unusable);
      board.polled(mailbox, listed, unusable);
    },
    rejected(mailbox, entries, reasons) {
      watch.rejected(mailbox, entries, reasons);
      const [first] = reasons;
      if (first !== undefined) board.rejected(mailbox, entries, first);
    },
    pollFailed(mailbox, fault, first, waitMs) {
      watch.pollFailed(mailbox, fault, first, waitMs);
      board.pollFailed(mailbox, fault, waitMs);
    },
    diskFull(fault) {
      watch.diskFull(fault);
      board.troubleBegan("disk", fault);
    },
    diskHasRoom(pausedForMs) {
      watch.diskHasRoom(pausedForMs);
      board.troubleEnded("disk");
    },
    queueLost(fault) {
      watch.queueLost(fault);
      board.troubleBegan("queue", fault);
    },
    queueBack(lostForMs) {
      watch.queueBack(lostForMs);
      board.troubleEnded("queue");
    },
    reloaded(mailboxes, waiting) {
      watch.reloaded(mailboxes, waiting);
      board.reloaded(waiting);
    },
    reloadRefused(fault) {
      watch.reloadRefused(fault);
      board.troubleBegan("configuration", fault);
    },
  };
}

function overhearTransfers(watch: DaemonWatch, board: Board, pulse: Pulse, metrics: Metrics | undefined) {
  return {
    discovered(record) {
      watch.discovered(record);
      board.discovered(record);
      metrics?.discovered(record);
    },
    stateChanged(record, fault) {
      watch.stateChanged(record, fault);
      board.stateChanged(record);
      pulse.beat(workOn(record));
      metrics?.stateChanged(record);
    },
    acknowledged(record) {
      watch.acknowledged(record);
      board.acknowledged(record);
    },
    progressed(record, doneBytes, totalBytes, receivedBytes) {
      watch.progressed(record, doneBytes, totalBytes, receivedBytes);
      board.progressed(record, doneBytes, totalBytes, receivedBytes);
      pulse.beat(workOn(record));
      metrics?.received(receivedBytes);
    },
    passwordRefused(record) {
      watch.passwordRefused(record);
      metrics?.passwordRefused(record);
    },
    lost(record) {
      watch.lost(record);
      board.lost(record);
    },
  } satisfies Partial<DaemonWatch>;
}

function overhearHandoffs(watch: DaemonWatch, { handoffs }: Board, metrics: Metrics | undefined) {
  return {
    handedOver(delivered, step) {
      watch.handedOver(delivered, step);
      handoffs.handedOver(delivered, step);
      metrics?.handoffs.tried(step, "ok");
    },
    handoffFailed(delivered, step, fault, failure) {
      watch.handoffFailed(delivered, step, fault, failure);
      handoffs.failed(delivered, step, fault.message, failure.willRetry);
      metrics?.handoffs.tried(step, "failed");
    },
    overdue(delivered, sinceMs) {
      watch.overdue(delivered, sinceMs);
      handoffs.notPickedUp(delivered);
    },
    pickedUp(delivered, how) {
      watch.pickedUp(delivered, how);
      handoffs.pickedUp(delivered);
    },
    handoffsSeen(summary) {
      watch.handoffsSeen(summary);
      handoffs.seen(summary);
      metrics?.handoffs.seen(summary);
    },
  } satisfies Partial<DaemonWatch>;
}
