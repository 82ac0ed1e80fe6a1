/** Reads transfers from the work folder, and gives orders there. No daemon needs to run. */

import { setTimeout as pause } from "node:timers/promises";
import { forEachLimit, Mutex, mapLimit } from "../base/concurrency.ts";
import { blockingDisk } from "../base/disk.ts";
import { Fault } from "../base/faults.ts";
import { asOwnerOf } from "../base/process.ts";
import type { Secret } from "../base/secret.ts";
import type { Settings } from "../config/settings.ts";
import {
  type ActTools,
  awaitAct,
  describeGiven,
  describeStored,
  describeWithdrawn,
  objectionToAct,
  refuseAct,
  type SubmittedAct,
  selectActable,
  submitAct,
  supplyPassword,
} from "../daemon/acts.ts";
import { readStory } from "../daemon/story.ts";
import { listTransfers, makeFormatter, selectTransfers } from "../daemon/transfers.ts";
import { countMembers } from "../inbox/members.ts";
import { nameOf } from "../ledger/paths.ts";
import { type LedgerPeek, peekLedger } from "../ledger/peek.ts";
import type { OnDamaged } from "../ledger/port.ts";
import type { Outcome } from "../mailbox/outcome.ts";
import { mailboxOf } from "../model/mailbox.ts";
import type { TransferAct } from "../model/order.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import type {
  ActResult,
  PageRequest,
  Story,
  TransferFilter,
  TransferList,
  TransferView,
} from "../model/views.ts";
import { type Access, type ActRequest, demandOneService } from "./access.ts";
import { operatorOf } from "./actor.ts";
import type { Context } from "./context.ts";
import { withDaemonsState } from "./transfers.ts";

/** A healthy daemon carries out an order, or tries a password, within this time. Several are done one after the other. */
const CARRIED_OUT_MS = 10_000;
const CARRIED_OUT_EACH_MS = 200;
const LOOK_EVERY_MS = 50;
/** Outcomes that are awaited, or transfers that are read, at the same time. */
const AT_ONCE = 50;

type OnLook = (trackingId: string, state: string) => void;

export class LocalAccess implements Access {
  readonly #context: Context;
  readonly #settings: Settings;
  readonly #peek: LedgerPeek;
  /** The rights of the process change while it writes. */
  readonly #writes = new Mutex();

  constructor(context: Context, settings: Settings) {
    this.#context = context;
    this.#settings = settings;
    this.#peek = peekLedger(settings, blockingDisk);
  }

  async find(trackingId: string, mailbox: string | undefined): Promise<TransferView[]> {
    const names = mailbox === undefined ? this.#settings.mailboxes.map(({ name }) => name) : [mailbox];
    const found: TransferRecord[] = [];
    for (const name of names) {
      const record = await this.#peek.find({ mailbox: name, trackingId });
      if (record !== undefined) found.push(record);
    }
    // Its mailbox may have been removed from the configuration.
    if (found.length === 0 && mailbox === undefined) {
      found.push(...(await this.#peek.findAll(trackingId)));
    }
    return this.#format(found);
  }

  async select(filter: TransferFilter, act: TransferAct): Promise<TransferView[]> {
    // The daemon reports damaged records, and so does doctor.
    const actable = selectActable(await this.#tools(), filter, act, () => {}, this.#context.stop);
    return this.#format(await Array.fromAsync(actable));
  }

  async *all(
    filter: TransferFilter,
    onDamaged: (path: string) => void,
  ): AsyncGenerator<TransferView, void, undefined> {
    const format = await makeFormatter(this.#peek, this.#settings.mailboxes);
    const records = selectTransfers(this.#peek, filter, onDamaged, this.#context.stop);
    for await (const record of records) yield await format(record);
  }

  list(filter: TransferFilter, page: PageRequest): Promise<TransferList> {
    const select = (onDamaged: OnDamaged) =>
      selectTransfers(this.#peek, filter, onDamaged, this.#context.stop);
    return listTransfers(this.#peek, this.#settings.mailboxes, select, page);
  }

  story(key: TransferKey): Promise<Story | undefined> {
    return readStory(this.#settings, key, this.#settings.mailboxes);
  }

  async objectionTo(act: TransferAct, key: TransferKey): Promise<string | undefined> {
    const objection = await objectionToAct(await this.#tools(), act, await this.#peek.find(key));
    return objection?.detail;
  }

  async act(request: ActRequest, onLook: OnLook): Promise<ActResult[]> {
    const tools = await this.#tools();
    const results = new Map<string, ActResult>();
    const submitted =
      request.password === undefined
        ? await this.#order(tools, request, results)
        : await this.#supply(tools, request, request.password, results);
    // Asked after the orders were submitted: a daemon that starts now finds them.
    const isRunning = await this.#isRunning();
    await forEachLimit(submitted, AT_ONCE, async (each) => {
      const outcome = await this.#follow(tools, each, request, isRunning, submitted.length, onLook);
      results.set(nameOf(each.before), { ...resultOf(each.before, outcome), ...outcome.override });
    });
    return request.transfers.flatMap((key) => results.get(nameOf(key)) ?? []);
  }

  async #order(
    tools: ActTools,
    request: ActRequest,
    results: Map<string, ActResult>,
  ): Promise<SubmittedAct[]> {
    const by = operatorOf(this.#context);
    const { act } = request;
    const submitted: SubmittedAct[] = [];
    for (const key of request.transfers) {
      const record = await this.#peek.find(key);
      const objection = await objectionToAct(tools, act, record);
      if (objection !== undefined || record === undefined || act === "password") {
        results.set(nameOf(key), refuseAct(key, objection, record));
      } else submitted.push(await submitAct(tools, act, record, by));
    }
    return submitted;
  }

  /** Writes one file for all mailboxes that received a transfer, unless a mailbox is named. */
  async #supply(
    tools: ActTools,
    request: ActRequest,
    password: Secret,
    results: Map<string, ActResult>,
  ): Promise<SubmittedAct[]> {
    const by = operatorOf(this.#context);
    const accepting: TransferRecord[] = [];
    for (const key of request.transfers) {
      const record = await this.#peek.find(key);
      const objection = await objectionToAct(tools, "password", record, password);
      if (objection === undefined && record !== undefined) accepting.push(record);
      else results.set(nameOf(key), refuseAct(key, objection, record));
    }
    demandOneService(this.#settings, accepting);
    const submitted: SubmittedAct[] = [];
    for (const records of Map.groupBy(accepting, ({ trackingId }) => trackingId).values()) {
      submitted.push(...(await supplyPassword(tools, records, by, password, request.isForMailbox !== true)));
    }
    return submitted;
  }

  /** Other processes may run on other machines, where their locks cannot be seen. */
  async #isRunning(): Promise<boolean> {
    return (await countMembers(this.#settings.work)) > 0 || this.#settings.queue !== "embedded";
  }

  async #follow(
    tools: ActTools,
    submitted: SubmittedAct,
    { waitMs }: ActRequest,
    isRunning: boolean,
    count: number,
    onLook: OnLook,
  ): Promise<Outcome & { readonly override?: Partial<ActResult> }> {
    const { act, before } = submitted;
    const { trackingId } = before;
    const kept = { record: before, isSettled: false, result: "pending" } as const;
    const override = { result: "given" } as const;
    if (!isRunning) return { ...kept, text: `${trackingId}: ${describeStored(act)}`, override };
    if (waitMs === undefined) {
      return { ...kept, text: describeGiven(act, trackingId), override };
    }
    const signal = AbortSignal.any([this.#context.stop, AbortSignal.timeout(waitMs)]);
    const isPaused = mailboxOf(tools.mailboxes, before)?.paused === true;
    const maxMs = Math.min(waitMs, CARRIED_OUT_MS + count * CARRIED_OUT_EACH_MS);
    const isCarriedOut =
      (isPaused && act !== "discard") || (await this.#isCarriedOutWithin(submitted, maxMs, signal));
    if (this.#context.stop.aborted)
      throw new Fault("STOPPED", { detail: `${trackingId}: the order is kept` });
    if (!isCarriedOut && (await submitted.withdraw()))
      return { ...kept, text: describeWithdrawn(trackingId) };
    const outcome = await awaitAct(tools, submitted, isCarriedOut ? signal : AbortSignal.abort(), (record) =>
      onLook(trackingId, record?.state ?? "gone"),
    );
    if (this.#context.stop.aborted)
      throw new Fault("STOPPED", { detail: `${trackingId}: the order is kept` });
    return outcome;
  }

  async #isCarriedOutWithin(submitted: SubmittedAct, maxMs: number, signal: AbortSignal): Promise<boolean> {
    for (let waitedMs = 0; waitedMs < maxMs && !signal.aborted; waitedMs += LOOK_EVERY_MS) {
      if (await submitted.isCarriedOut()) return true;
      await pause(LOOK_EVERY_MS);
    }
    return submitted.isCarriedOut();
  }

  async #format(records: readonly TransferRecord[]): Promise<TransferView[]> {
    return mapLimit(records, AT_ONCE, await makeFormatter(this.#peek, this.#settings.mailboxes));
  }

  /** Passwords go to the state folder of the running daemon. */
  async #tools(): Promise<ActTools> {
    const { work, inbox, state, mailboxes } = await withDaemonsState(this.#settings);
    const asOwner: ActTools["asOwner"] = (folder, write) => this.#writes.run(() => asOwnerOf(folder, write));
    return { work, inbox, state, mailboxes, asOwner };
  }
}

function resultOf({ mailbox, trackingId }: TransferKey, { record, text, result }: Outcome): ActResult {
  return { mailbox, trackingId, status: 200, text, state: record?.state, reason: record?.reason, result };
}
