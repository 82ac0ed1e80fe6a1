/** The state of an inbox as it stands on the disk, for when no daemon can be asked. */
import { hostname } from "node:os";
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { readVersion } from "../base/version.ts";
import type { Settings } from "../config/settings.ts";
import { listQuarantined } from "../mailbox/unfinished.ts";
import type { Status } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import { readHistory } from "../receipts/history.ts";
import { peekReceipts } from "../receipts/reading.ts";

const MOST_RECENT = 20;

export async function peekStatus({ queue, inbox, work, mailboxes }: Settings): Promise<Status> {
  const facts = {
    program: readVersion(),
    host: hostname(),
    pid: process.pid,
    queue: queue === "embedded" ? "embedded" : "redis",
    role: "all",
    inbox,
  } as const;
  const board = new Board(facts, mailboxes, systemClock);
  const read = (state: string) => Array.fromAsync(readHistory(work, { state, limit: MOST_RECENT }, () => {}));
  const receipts = peekReceipts(work);
  const kept = await listQuarantined({ quarantine: join(work, "quarantine") }, receipts);
  board.learn([...(await receipts.unfinished()), ...kept]);
  board.recall(
    (await read("delivered")).map(({ folder = "", ...entry }) => ({
      ...entry,
      folder,
      tookSeconds: undefined,
    })),
  );
  return board.read();
}
