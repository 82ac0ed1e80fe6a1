/** Acts of operators on many transfers, the same for commands, the console and the API. */
import { forEachLimit } from "../base/concurrency.ts";
import { asFault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { nameOf } from "../ledger/paths.ts";
import { peekLedger } from "../ledger/peek.ts";
import { NO_PASSWORD } from "../model/attempts.ts";
import { mailboxOf, serviceIdOf } from "../model/mailbox.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import { BROWSER, MODE, NO_MODE, type TransferKey, type TransferRecord } from "../model/record.ts";
import type { ActResult } from "../model/views.ts";
import {
  type ActObjection,
  type ActTools,
  objectionToAct,
  type SubmittedAct,
  submitAct,
  supplyPassword,
} from "./act.ts";
import { awaitAct, type Outcome } from "./outcome.ts";

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

const BEGUN = { status: 200, result: "pending", text: "In progress." } as const;
export const UNTRIED = {
  status: 409,
  result: "refused",
  text: "The password was not tried: it did not open another transfer, which was tried first.",
} as const;

/** Neither promise rejects: what fails is the result of a transfer. */
export interface RunningAct {
  /** Every act is given or refused, except those that follow the trial of a password. */
  readonly submitted: Promise<void>;
  /** All is over. */
  readonly settled: Promise<void>;
  /** As they are now, in the order of the request. */
  results(): ActResult[];
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
  onResult: (result: ActResult) => void,
): RunningAct {
  const { act, transfers, isAwaited = true } = request;
  const results = new Map<string, ActResult>();
  const set: SetResult = ({ mailbox, trackingId }, result) => {
    const whole = { mailbox, trackingId, ...result };
    const known = results.get(nameOf(whole));
    if (known?.text === whole.text && known.result === whole.result) return;
    results.set(nameOf(whole), whole);
    onResult(whole);
  };
  const failed = (key: TransferKey) => (error: unknown) =>
    set(key, { status: 503, result: "attention", text: asFault(error).message });
  const resultsOf = (keys: readonly TransferKey[]) => keys.flatMap((key) => results.get(nameOf(key)) ?? []);

  const submit = async (keys: readonly TransferKey[]) => {
    const given = await submitAll(tools, request, keys, by, set, failed);
    for (const { before } of given) set(before, { ...givenResult(act, before), result: "pending" });
    if (given.length > 0) await tools.runOrders?.();
    return given;
  };
  const follow = async (given: readonly SubmittedAct[], waits: boolean) => {
    const isRunning = await tools.isRunning();
    const carriedOutMs = CARRIED_OUT_MS + given.length * CARRIED_OUT_EACH_MS;
    await forEachLimit(given, AWAITED_AT_ONCE, async (each) => {
      const { before } = each;
      const onLook = (outcome: Outcome) => set(before, resultOf(outcome));
      if (!isRunning) set(before, givenResult(act, before, `${before.trackingId}: ${describeStored(act)}`));
      else if (!waits) set(before, givenResult(act, before));
      else await awaitAct(tools, each, { signal, carriedOutMs, onLook }).then(onLook).catch(failed(before));
    });
  };

  const { promise: submitted, resolve: markSubmitted } = Promise.withResolvers<void>();
  const run = async () => {
    const objection = act === "password" ? objectionToServices(tools, transfers) : undefined;
    if (objection !== undefined)
      return transfers.forEach((key) => void set(key, refusal(key, objection, undefined)));
    // A password is tried with one transfer, in all its mailboxes, and with the next one if it cannot be sent for that. Every
    // other act is given for all transfers at once.
    const groupOf = ({ trackingId }: TransferKey) => (act === "password" ? trackingId : "");
    const groups = [...Map.groupBy(transfers, groupOf).values()];
    let tried: readonly TransferKey[] = [];
    let given: SubmittedAct[] = [];
    while (given.length === 0 && groups.length > 0) {
      tried = groups.shift() ?? [];
      given = await submit(tried);
    }
    const others = groups.flat();
    markSubmitted();
    await follow(given, isAwaited || others.length > 0);
    if (others.length === 0) return;
    if (isOpenedBy(resultsOf(tried))) return follow(await submit(others), isAwaited);
    others.forEach((key) => void set(key, UNTRIED));
  };
  for (const key of transfers) set(key, BEGUN);
  const settled = run()
    .catch((error: unknown) => transfers.forEach((key) => void failed(key)(error)))
    .finally(markSubmitted);
  return { submitted, settled, results: () => resultsOf(transfers) };
}

type SetResult = (key: TransferKey, result: Result) => void;

/** Whether the password has opened a transfer, for whichever of its mailboxes. */
export function isOpenedBy(results: readonly ActResult[]): boolean {
  return results.some(({ state, reason, result }) => {
    const isLocked =
      state === "waiting" && ["password", MODE, NO_MODE, BROWSER, "locked"].includes(reason ?? "");
    return result !== "refused" && result !== "pending" && !isLocked;
  });
}

/** A password goes to one service only. An ended round counts too: its service may be the one that is not meant. */
function objectionToServices(tools: ActTools, keys: readonly TransferKey[]): ActObjection | undefined {
  const mailboxes = new Set(keys.flatMap((key) => mailboxOf(tools.mailboxes, key) ?? []));
  if (new Set([...mailboxes].map(({ service }) => serviceIdOf(service.baseUrl))).size <= 1) return undefined;
  const names = [...mailboxes].map(({ name }) => name).join(", ");
  return { kind: "impossible", detail: `several services list it, for ${names}: choose one mailbox` };
}

/** Returns the acts that are on their way. Sets a result for each of the others. */
async function submitAll(
  tools: ActTools,
  { act, password = NO_PASSWORD, isForMailbox = false }: ActRequest,
  keys: readonly TransferKey[],
  by: Actor,
  set: SetResult,
  failed: (key: TransferKey) => (error: unknown) => void,
): Promise<SubmittedAct[]> {
  const peek = peekLedger(tools);
  const possible: TransferRecord[] = [];
  await forEachLimit(keys, SUBMITTED_AT_ONCE, async (key) => {
    const look = async () => {
      const record = await peek.find(key);
      const objection = await objectionToAct(tools, act, record, password);
      if (objection !== undefined) set(key, refusal(key, objection, record));
      else if (record !== undefined) possible.push(record);
    };
    await look().catch(failed(key));
  });
  const isForAll = act === "password" && !isForMailbox;
  const groups = Map.groupBy(possible, (record) => (isForAll ? record.trackingId : nameOf(record)));
  const submitted: SubmittedAct[] = [];
  for (const records of groups.values()) {
    try {
      if (act === "password")
        submitted.push(...(await supplyPassword(tools, records, by, password, isForAll)));
      else for (const record of records) submitted.push(await submitAct(tools, act, record, by));
    } catch (error) {
      for (const record of records) failed(record)(error);
    }
  }
  return submitted;
}

/** The result of an act that was not given. */
function refusal(
  { trackingId }: TransferKey,
  { kind, detail }: ActObjection,
  record: TransferRecord | undefined,
): Result {
  const facts = { state: record?.state, reason: record?.reason };
  if (kind === "known") {
    const text = `${trackingId}: this password was refused before, so it was not sent again: ask the sender for the right one.`;
    return { status: 409, text, ...facts, result: "attention" };
  }
  const text = `Nothing was done with ${trackingId}: ${detail}.`;
  return { status: kind === "unknown" ? 404 : 409, text, ...facts, result: "refused" };
}

function resultOf({ record, text, result }: Outcome): Result {
  return { status: 200, text, state: record?.state, reason: record?.reason, result };
}

function givenResult(
  act: TransferAct,
  { trackingId, state, reason }: TransferRecord,
  text = describeGiven(act, trackingId),
): Result {
  return { status: 200, text, state, reason, result: "given" };
}

/** A sentence for people who do not wait for the outcome. */
export function describeGiven(act: TransferAct, trackingId: string): string {
  return `${act === "password" ? "The password" : "The order"} for ${trackingId} was given.`;
}

/** A sentence for people where no daemon runs. */
function describeStored(act: TransferAct): string {
  const next = "No daemon is running: the next inlet run or inlet once";
  if (act === "password") return `${next} tries the password.`;
  return act === "grant"
    ? `${next} grants the attempt. Supply the password then.`
    : `${next} carries it out.`;
}
