/** Acts of operators on many transfers, the same for commands, the console and the API. */
import { forEachLimit, mapLimit } from "../base/concurrency.ts";
import { asFault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { pauseOrAbort } from "../base/timers.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import { mailboxOf, serviceIdOf } from "../model/mailbox.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import { hasEnded, MODE, type TransferKey, type TransferRecord } from "../model/record.ts";
import type { ActResult } from "../model/views.ts";
import {
  type ActObjection,
  type ActTools,
  awaitAct,
  describeGiven,
  describeStored,
  LOOK_EVERY_MS,
  objectionToAct,
  refuseAct,
  type SubmittedAct,
  submitAct,
  supplyPassword,
} from "./act.ts";
import type { Outcome } from "./outcome.ts";

export interface ActRequest {
  readonly act: TransferAct;
  readonly transfers: readonly TransferKey[];
  /** For the act `password`. */
  readonly password?: Secret | undefined;
  /** The password is meant for the named mailboxes only, not for every mailbox that received the transfer. */
  readonly isForMailbox?: boolean;
  /** False: outcomes are not awaited, except that of the transfer with which a password is tried first. */
  readonly isAwaited?: boolean;
}

/** A healthy daemon carries out an order, or tries a password, within this time. Several are done one after the other. */
const CARRIED_OUT_MS = 10_000;
const CARRIED_OUT_EACH_MS = 200;
/** Each wait looks at the ledger regularly. */
const AWAITED_AT_ONCE = 50;
const SUBMITTED_AT_ONCE = 8;

type Result = Omit<ActResult, "mailbox" | "trackingId">;

const PENDING = { status: 200, result: "pending", text: "In progress." } as const;
export const UNTRIED = {
  status: 409,
  result: "refused",
  text: "The password was not tried: it did not open another transfer, which was tried first.",
} as const;

/** `submitted`: every act is given or refused, except those that follow the trial of a password. `settled`: all is over. */
export interface RunningAct {
  readonly submitted: Promise<void>;
  readonly settled: Promise<void>;
  /** As they are now, in the order of the request. */
  results(): Promise<ActResult[]>;
}

/**
 * Gives the order for each transfer, and waits for the outcomes until `signal` aborts. One password for many transfers is
 * tried with the first of them, because a wrong one costs an attempt on each. The others follow if it opens that one.
 * `onResult` gets each result, and each time it changes.
 */
export function startAct(
  tools: ActTools,
  request: ActRequest,
  by: Actor,
  signal: AbortSignal,
  onResult: (result: ActResult) => void = () => {},
  onLook: (trackingId: string, state: string) => void = () => {},
): RunningAct {
  const { act, transfers, isAwaited = true } = request;
  const results = new Map<string, ActResult>();
  const open = new Map<string, SubmittedAct>();
  const set = ({ mailbox, trackingId }: TransferKey, result: Result) => {
    const whole = { mailbox, trackingId, ...result };
    results.set(nameOf(whole), whole);
    onResult(whole);
  };
  const resultsOf = (keys: readonly TransferKey[]) => keys.flatMap((key) => results.get(nameOf(key)) ?? []);
  const fail = (key: TransferKey) => (error: unknown) =>
    set(key, { status: 503, result: "attention", text: asFault(error).message });
  const submit = async (keys: readonly TransferKey[]) => {
    const given = await submitAll(tools, request, keys, by, set, fail);
    for (const each of given) {
      open.set(nameOf(each.before), each);
      set(each.before, PENDING);
    }
    if (given.length > 0) await tools.runOrders?.();
  };
  const follow = async (waits: boolean) => {
    const isRunning = await tools.isRunning();
    const count = open.size;
    await forEachLimit([...open.values()], AWAITED_AT_ONCE, async (each) => {
      const { before } = each;
      if (!isRunning) set(before, given(before, `${before.trackingId}: ${describeStored(act)}`));
      else if (!waits) set(before, given(before, describeGiven(act, before.trackingId)));
      else {
        await awaitCarriedOut(tools, each, CARRIED_OUT_MS + count * CARRIED_OUT_EACH_MS, signal)
          .then((inTime) =>
            awaitAct(tools, each, inTime ? signal : AbortSignal.abort(), (now) =>
              onLook(before.trackingId, now?.state ?? "gone"),
            ),
          )
          .then((outcome) => set(before, resultOf(outcome)))
          .catch(fail(before));
      }
      open.delete(nameOf(before));
    });
  };
  const submitTrial = async (keys: readonly TransferKey[]): Promise<Trial> => {
    const trial = splitForTrial(keys);
    await submit(trial.first);
    const isOver = trial.others.length === 0 || isTried(resultsOf(trial.first));
    return isOver ? trial : submitTrial(trial.others);
  };
  for (const key of transfers) set(key, PENDING);
  const supply = async () => {
    const objection = await objectionToServices(tools, transfers);
    if (objection === undefined) return submitTrial(transfers);
    for (const key of transfers) set(key, refuseAct(key, objection, undefined));
    return NO_TRIAL;
  };
  const begun = act === "password" ? supply() : submit(transfers).then(() => NO_TRIAL);
  const settled = begun.then(async ({ first, others }) => {
    await follow(isAwaited || others.length > 0);
    if (others.length === 0) return;
    if (!isOpenedBy(resultsOf(first))) return others.forEach((key) => void set(key, UNTRIED));
    await submit(others);
    await follow(isAwaited);
  });
  const look = async (result: ActResult): Promise<ActResult> => {
    const each = open.get(nameOf(result));
    // Not known yet.
    const outcome = each && (await awaitAct(tools, each, AbortSignal.abort()).catch(() => undefined));
    return outcome === undefined ? result : { ...result, ...resultOf(outcome) };
  };
  return {
    submitted: begun.then(() => {}),
    settled,
    results: () => mapLimit(resultsOf(transfers), SUBMITTED_AT_ONCE, look),
  };
}

type Trial = { readonly first: readonly TransferKey[]; readonly others: readonly TransferKey[] };

const NO_TRIAL: Trial = { first: [], others: [] };

function splitForTrial(keys: readonly TransferKey[]): Trial {
  const tried = keys[0]?.trackingId;
  const { first = [], others = [] } = Object.groupBy(keys, ({ trackingId }) =>
    trackingId === tried ? "first" : "others",
  );
  return { first, others };
}

/** Whether a password was on its way. Otherwise it says nothing about other transfers. */
function isTried(results: readonly ActResult[]): boolean {
  return results.some(({ status }) => status === 200);
}

/** Whether the password has opened a transfer, for whichever of its mailboxes. */
export function isOpenedBy(results: readonly ActResult[]): boolean {
  return results.some(({ state, reason, result }) => {
    const isLocked = state === "waiting" && (reason === "password" || reason === MODE || reason === "locked");
    return result !== "refused" && result !== "pending" && !isLocked;
  });
}

/** A password goes to one service only. */
async function objectionToServices(
  tools: ActTools,
  keys: readonly TransferKey[],
): Promise<ActObjection | undefined> {
  const serviceOf = (key: TransferKey) => {
    const mailbox = mailboxOf(tools.mailboxes, key);
    return mailbox && serviceIdOf(mailbox.service.baseUrl);
  };
  if (new Set(keys.map(serviceOf)).size <= 1) return undefined;
  const peek = peekLedger(tools);
  // A damaged record is refused later.
  const found = await mapLimit(keys, SUBMITTED_AT_ONCE, (key) => peek.find(key).catch(() => undefined));
  const open = found.flatMap((record) => (record === undefined || hasEnded(record) ? [] : [record]));
  if (new Set(open.map(serviceOf)).size <= 1) return undefined;
  const names = [...new Set(open.map(({ mailbox }) => mailbox))].join(", ");
  return { kind: "impossible", detail: `several services list it, for ${names}: choose one mailbox` };
}

/** Returns those that are on their way; the others are refused. */
async function submitAll(
  tools: ActTools,
  { act, password, isForMailbox = false }: ActRequest,
  keys: readonly TransferKey[],
  by: Actor,
  set: (key: TransferKey, result: Result) => void,
  fail: (key: TransferKey) => (error: unknown) => void,
): Promise<SubmittedAct[]> {
  const peek = peekLedger(tools);
  const possible: TransferRecord[] = [];
  await forEachLimit(keys, SUBMITTED_AT_ONCE, async (key) => {
    try {
      const record = await peek.find(key);
      const objection = await objectionToAct(tools, act, record, password);
      if (record !== undefined && objection === undefined) possible.push(record);
      else set(key, refuseAct(key, objection, record));
    } catch (error) {
      fail(key)(error);
    }
  });
  const submitted: SubmittedAct[] = [];
  const groups =
    act !== "password" || isForMailbox
      ? possible.map((record) => [record])
      : Map.groupBy(possible, ({ trackingId }) => trackingId).values();
  for (const records of groups) {
    const [first] = records;
    if (first === undefined) continue;
    try {
      if (act !== "password") submitted.push(await submitAct(tools, act, first, by));
      else if (password !== undefined)
        submitted.push(...(await supplyPassword(tools, records, by, password, !isForMailbox)));
    } catch (error) {
      for (const record of records) fail(record)(error);
    }
  }
  return submitted;
}

async function awaitCarriedOut(
  tools: ActTools,
  { act, before, isCarriedOut }: SubmittedAct,
  maxMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  // An order for a paused mailbox is carried out, and has no effect yet.
  if (act !== "discard" && act !== "grant" && mailboxOf(tools.mailboxes, before)?.paused === true)
    return true;
  for (let waitedMs = 0; waitedMs < maxMs && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
    if (await isCarriedOut()) return true;
    await pauseOrAbort(LOOK_EVERY_MS, signal);
  }
  return isCarriedOut();
}

function resultOf({ record, text, result }: Outcome): Result {
  return { status: 200, text, state: record?.state, reason: record?.reason, result };
}

function given({ state, reason }: TransferRecord, text: string): Result {
  return { status: 200, text, state, reason, result: "given" };
}
