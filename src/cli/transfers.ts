/** Finds the transfer that a command names, and waits until the daemon has acted on it. */
import { setTimeout as pause } from "node:timers/promises";
import { exists } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import type { Settings } from "../config/settings.ts";
import { countMembers, findDaemonState } from "../inbox/members.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { TransferRecord } from "../model/record.ts";
import type { Context } from "./context.ts";
import { type Column, formatTime } from "./printing.ts";

/** Throws `NO_SUCH_TRANSFER`, and `ORDER_IMPOSSIBLE` where several mailboxes received it and none is named. */
export async function findTransfer(
  settings: Settings,
  trackingId: string,
  mailbox: string | undefined,
): Promise<TransferRecord> {
  const [first, ...others] = await findTransfers(settings, trackingId, mailbox);
  if (others.length === 0) return first;
  const several = [first, ...others].map((record) => record.mailbox).join(", ");
  throw new Fault("ORDER_IMPOSSIBLE", {
    detail: `${several} received it: name one with --mailbox`,
  });
}

/** The transfer's records, of the named mailbox or of all that received it. Throws `NO_SUCH_TRANSFER`. */
export async function findTransfers(
  { work, mailboxes }: Settings,
  trackingId: string,
  mailbox: string | undefined,
): Promise<[TransferRecord, ...TransferRecord[]]> {
  const ledger = peekLedger(work);
  const names = mailboxes.map(({ name }) => name).filter((name) => mailbox === undefined || name === mailbox);
  const found: TransferRecord[] = [];
  for (const name of names) {
    const record = await ledger.find({ mailbox: name, trackingId });
    if (record !== undefined) found.push(record);
  }
  const [first, ...others] = found;
  if (first !== undefined) return [first, ...others];
  const where = mailbox === undefined ? "" : ` in the mailbox ${mailbox}`;
  throw new Fault("NO_SUCH_TRANSFER", { detail: `${JSON.stringify(trackingId)}${where}` });
}

/** The daemon takes up an order or a password within this time. */
export const DAEMON_WAIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** Whether the daemon removed the file in time. `no-daemon`: none runs, so there is no wait. */
export async function untilTaken(
  path: string,
  work: string,
  signal: AbortSignal,
): Promise<"taken" | "late" | "no-daemon"> {
  if ((await countMembers(work)) === 0) return "no-daemon";
  const isTaken = await until(DAEMON_WAIT_MS, async () => ((await exists(path)) ? undefined : true), signal);
  return isTaken === true ? "taken" : "late";
}

/** The first thing that `look` finds; `undefined` where it finds nothing in time. */
export async function until<Found>(
  waitMs: number,
  look: () => Promise<Found | undefined>,
  signal: AbortSignal,
): Promise<Found | undefined> {
  for (let waitedMs = 0; waitedMs < waitMs && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
    const found = await look();
    if (found !== undefined) return found;
    await pause(LOOK_EVERY_MS);
  }
  return undefined;
}

interface ListedTransfer {
  readonly state: string;
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly reason?: string | undefined;
  readonly folder?: string | undefined;
}

/** Columns of a list of transfers. `timeOf`: the time in the first one. */
export function transferColumns<Row extends ListedTransfer>(
  context: Context,
  timeOf: (row: Row) => string,
): Column<Row>[] {
  return [
    { title: "WHEN", value: (row) => formatTime(context, timeOf(row)) },
    { title: "STATE", value: ({ state }) => state },
    { title: "MAILBOX", value: ({ mailbox }) => mailbox },
    { title: "SENDER", value: ({ sender }) => sender },
    { title: "TRACKING ID", value: ({ trackingId }) => trackingId },
    { title: "REASON", value: ({ reason = "" }) => reason },
    { title: "FOLDER", value: ({ folder = "" }) => folder },
  ];
}

/** The settings with the state folder of this inbox's daemon, unless the configuration names one. */
export async function withDaemonsState(settings: Settings): Promise<Settings> {
  if (settings.isStateNamed === true) return settings;
  const state = await findDaemonState(settings.work);
  return state === undefined ? settings : { ...settings, state };
}
