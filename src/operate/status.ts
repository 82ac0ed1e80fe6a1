/** The status: of a running daemon, else from the work folder. */

import * as v from "valibot";
import { systemClock } from "../base/clock.ts";
import { asFault } from "../base/faults.ts";
import { parseAs } from "../base/json.ts";
import { formatCount } from "../base/phrases.ts";
import { type HttpSettings, handoffOf, type Settings } from "../config/settings.ts";
import { peekHandoffs } from "../handoff/peek.ts";
import { isPermissionFault } from "../host/permission.ts";
import { withKeys } from "../ledger/keys.ts";
import { listOrders } from "../ledger/orders.ts";
import { readPauses, withPauses } from "../ledger/pauses.ts";
import { peekLedger } from "../ledger/peek.ts";
import { type Status, StatusShape, type Trouble } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import { DaemonClient } from "./client.ts";
import { describeDaemon, keptIn, readDeliveries, readGone } from "./facts.ts";

const TIMEOUT_MS = 5_000;

const NO_DAEMON =
  "No daemon answers at http.listen. Start one with inlet run; between two runs of inlet once there is none.";

/** The status, and how it was found. */
export interface Reading {
  readonly status: Status;
  /** A sentence that says why the status is not the daemon's. */
  readonly instead: string | undefined;
}

export async function readStatus(settings: Settings, signal: AbortSignal): Promise<Reading> {
  const { http, inbox } = settings;
  const answer = await askDaemon(http, "/api/status", signal);
  const status = statusIn(answer);
  if (status?.daemon.inbox === inbox) return { status, instead: undefined };
  return { status: await peekStatus(settings), instead: describeInstead(http !== undefined, answer, status) };
}

function describeInstead(
  isAsked: boolean,
  answer: { readonly status: number } | undefined,
  status: Status | undefined,
): string {
  if (!isAsked) return "The daemon cannot be reached: http.listen is false.";
  if (answer === undefined) return NO_DAEMON;
  if (answer.status === 401) return "The daemon needs a token (http.read), and this user can read none.";
  return status === undefined
    ? "No daemon answers: another program listens at http.listen."
    : `No daemon of this inbox answers: the one at http.listen serves ${status.daemon.inbox}.`;
}

/** The status of the daemon at this address, whichever its inbox is; `undefined` without one. */
export async function askStatus(http: HttpSettings, signal: AbortSignal): Promise<Status | undefined> {
  return statusIn(await askDaemon(http, "/api/status", signal));
}

/** `undefined` if another program has answered. */
export function statusIn(answer: { readonly body: string } | undefined): Status | undefined {
  return answer && parseAs(StatusShape, answer.body);
}

const HealthShape = v.union([
  v.object({ ready: v.boolean(), reasons: v.array(v.string()) }),
  v.object({ alive: v.boolean(), stuck: v.optional(v.string()) }),
]);

/** `text`: for people. */
export interface Health {
  readonly isGood: boolean;
  readonly text: string;
}

export async function askHealth(
  http: HttpSettings | undefined,
  what: "ready" | "alive",
  signal: AbortSignal,
): Promise<Health> {
  if (http === undefined)
    return { isGood: false, text: "The health of the daemon cannot be checked: http.listen is false." };
  const answer = await askDaemon(http, what === "ready" ? "/readyz" : "/healthz", signal);
  const health = answer && parseAs(HealthShape, answer.body);
  if (health !== undefined) return { isGood: answer?.status === 200, text: JSON.stringify(health) };
  const other = "Another program answers at http.listen, not an Inlet daemon.";
  return { isGood: false, text: answer === undefined ? NO_DAEMON : other };
}

/** `undefined` without a complete answer in time. Throws `DAEMON_UNREACHABLE` if this user may not use the socket. */
export async function askDaemon(http: HttpSettings | undefined, path: string, signal: AbortSignal) {
  if (http === undefined) return undefined;
  return new DaemonClient(http, "", signal)
    .ask("GET", path, undefined, TIMEOUT_MS)
    .catch((error: unknown) => {
      const fault = asFault(error);
      if (isPermissionFault(fault)) throw fault;
      return undefined;
    });
}

/** The status without a daemon, from the work folder. */
export async function peekStatus(given: Settings): Promise<Status> {
  const { work } = given;
  const settings = { ...given, mailboxes: await withKeys(work, given.mailboxes, "foreseen") };
  const mailboxes = withPauses(settings.mailboxes, await readPauses(work));
  const board = new Board(describeDaemon(settings), mailboxes, systemClock, keptIn(work));
  const ledger = peekLedger(settings);
  const open = await Array.fromAsync(ledger.open());
  board.learn([...open, ...(await Array.fromAsync(ledger.quarantined()))]);
  board.recall(await readDeliveries(work), await readGone(settings, systemClock.now()));
  const readEnd = (name: string, round: number) => ledger.readEnd(name, round);
  const summary = await peekHandoffs(work, (delivery) => handoffOf(settings, delivery), readEnd);
  board.listener({ type: "outbox-scanned", summary });
  const status = board.read();
  const orders = await describeOrders(work);
  // The board describes this process, which is not a daemon.
  const daemon = { ...status.daemon, pid: undefined, startedAt: undefined };
  return { ...status, live: false, daemon, troubles: [...status.troubles, ...orders] };
}

/** Orders that wait for a daemon. */
async function describeOrders(work: string): Promise<Trouble[]> {
  const given = await listOrders(work);
  const since = given.map(({ order }) => order.at).toSorted()[0];
  if (since === undefined) return [];
  const texts = given.map(
    ({ order: { action, trackingId, mailbox, by } }) => `${action} ${trackingId ?? mailbox}, by ${by.who}`,
  );
  const message = `${formatCount(given.length, "order waits", "orders wait")} for the daemon: ${texts.slice(0, 5).join("; ")}.`;
  const advice = "Start the daemon: it carries them out.";
  return [{ what: "orders", since, code: "ORDER_OVERDUE", message, advice }];
}
