/** The status: of a running daemon, else from the work folder. */
import { dirname } from "node:path";
import * as v from "valibot";
import { systemClock } from "../base/clock.ts";
import { asFault, Fault, systemCode } from "../base/faults.ts";
import { lstat } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import { formatCount } from "../base/phrases.ts";
import { handoffOf, type Settings } from "../config/settings.ts";
import { peekHandoffs } from "../handoff/peek.ts";
import { isPermissionFault } from "../host/permission.ts";
import { countMembers } from "../inbox/members.ts";
import { findDaemonUsers } from "../inbox/work-folder.ts";
import { withKeys } from "../ledger/keys.ts";
import { listOrders } from "../ledger/orders.ts";
import { readPauses, withPauses } from "../ledger/pauses.ts";
import { peekLedger } from "../ledger/peek.ts";
import { type Status, StatusShape, type Trouble } from "../model/status.ts";
import { Board } from "../observe/board.ts";
import { type Answer, connectTo, findDaemon, probe, type Whereabouts } from "./client.ts";
import { describeDaemon, keptIn, readDeliveries, readGone } from "./facts.ts";

const NO_DAEMON =
  "No daemon answers. Start one with inlet run; between two runs of inlet once there is none.";
const NO_SOCKET =
  "A daemon of this inbox runs, but none answers here on its socket: the log and the console of the daemon say why.";

/** The status, and how it was found. */
export interface Reading {
  readonly status: Status;
  /** A sentence that says why the status is not the daemon's. */
  readonly instead: string | undefined;
}

export async function readStatus(settings: Settings, signal: AbortSignal): Promise<Reading> {
  let instead = NO_DAEMON;
  try {
    const daemon = await findDaemon(settings, "", signal);
    const status = statusIn(await daemon?.ask("GET", "/api/status"));
    if (status?.daemon.inbox === settings.inbox) return { status, instead: undefined };
    if (daemon === undefined && (await countMembers(settings.work)) > 0) instead = NO_SOCKET;
  } catch (error) {
    const fault = asFault(error);
    if (!["SOCKET_UNSAFE", "DAEMON_UNREACHABLE"].includes(fault.code) || isPermissionFault(fault))
      throw fault;
    instead = `${fault.message}.`;
  }
  return { status: await peekStatus(settings), instead };
}

/** The status of the daemon at this socket, whichever its inbox is; `undefined` without one. */
export async function askStatus(socket: string, signal: AbortSignal): Promise<Status | undefined> {
  // The folders are not known: the owner of the socket's folder stands for the daemon's user.
  const others = async () => [(await lstat(dirname(socket))).uid];
  const answer = connectTo(socket, others, "", signal).then((it) => it.ask("GET", "/api/status"));
  // Then no daemon is there.
  return statusIn(await answer.catch(() => undefined));
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

/** Why no daemon listens on a socket, or not for this user. */
const NOT_THERE: readonly string[] = ["ENOENT", "ENOTDIR", "ECONNREFUSED", "EACCES"];

/**
 * Asks the daemon's own socket. Where nothing answers there, asks whatever listens at `http.listen`, as other probes do: it may demand
 * a token for `/readyz`, but never for `/healthz`.
 */
export async function askHealth(
  at: Whereabouts,
  what: "ready" | "alive",
  signal: AbortSignal,
): Promise<Health> {
  const { sockets, http } = at;
  const path = what === "ready" ? "/readyz" : "/healthz";
  for (const socket of sockets) {
    const others = () => findDaemonUsers(at);
    const asked = connectTo(socket, others, "", signal).then((daemon) => daemon.ask("GET", path));
    const answer = await asked.catch((error: unknown) => asFault(error));
    if (!(answer instanceof Fault)) return healthIn(answer);
    // A daemon that hangs: whatever has its port cannot speak for it.
    if (answer.code === "DAEMON_UNREACHABLE" && !NOT_THERE.includes(systemCode(answer.cause)))
      return { isGood: false, text: `${answer.message}.` };
  }
  if (http === undefined)
    return { isGood: false, text: `${NO_DAEMON} It has no console either: http.listen is false.` };
  const answer = await probe(http.listen, path, signal);
  if (answer === undefined) return { isGood: false, text: NO_DAEMON };
  return healthIn(answer.status === 401 ? await probe(http.listen, "/healthz", signal) : answer);
}

function healthIn(answer: Answer | undefined): Health {
  const health = answer && parseAs(HealthShape, answer.body);
  if (health !== undefined) return { isGood: answer?.status === 200, text: JSON.stringify(health) };
  return { isGood: false, text: "Another program answers at http.listen, not an Inlet daemon." };
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
