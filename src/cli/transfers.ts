/** Finds the transfer that a command names, and waits for the daemon to act on it. */
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
  throw new Fault("ORDER_IMPOSSIBLE", { detail: `${several} received it: choose one with --mailbox` });
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

/** A healthy daemon acts on an order or a password within this time. */
export const DAEMON_WAIT_MS = 10_000;
const LOOK_EVERY_MS = 50;

/** Waits until the daemon has removed the file. Returns `no-daemon` at once if none is running. */
export async function waitForDaemon(
  path: string,
  work: string,
  signal: AbortSignal,
): Promise<"taken" | "late" | "no-daemon"> {
  if ((await countMembers(work)) === 0) return "no-daemon";
  const isTaken = await waitFor(
    DAEMON_WAIT_MS,
    async () => ((await exists(path)) ? undefined : true),
    signal,
  );
  return isTaken === true ? "taken" : "late";
}

/** Repeats `look` until it finds something; `undefined` after the time is up. */
export async function waitFor<Found>(
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

interface TransferRow {
  readonly state: string;
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly reason?: string | undefined;
  readonly folder?: string | undefined;
}

/** Columns of a table of transfers. `timeOf`: the time in the first column. */
export function transferColumns<Row extends TransferRow>(
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
