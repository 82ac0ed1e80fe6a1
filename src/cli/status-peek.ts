/** The state of an inbox as it stands on the disk, for when no daemon can be asked. */
import { systemClock } from "../base/clock.ts";
import type { Settings } from "../config/settings.ts";
import { describeDaemon, keptIn, readDeliveries, readGone } from "../daemon/facts.ts";
import { peekHandoffs } from "../handoff/summary.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { Status } from "../model/status.ts";
import { Board } from "../observe/board.ts";

export async function peekStatus(settings: Settings): Promise<Status> {
  const { work, mailboxes } = settings;
  const board = new Board(describeDaemon(settings), mailboxes, systemClock, keptIn(work));
  const ledger = peekLedger(work);
  const open = await Array.fromAsync(ledger.open());
  board.learn([...open, ...(await Array.fromAsync(ledger.quarantined()))]);
  board.recall(await readDeliveries(work), await readGone(work, systemClock.now()));
  board.handoffs.seen(await peekHandoffs(work, settings.handoff, ledger.readEnd));
  const status = board.read();
  // This command is no daemon, and nobody is to take its process for one.
  return { ...status, live: false, daemon: { ...status.daemon, pid: undefined, startedAt: undefined } };
}
