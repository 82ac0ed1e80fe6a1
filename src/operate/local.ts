/**
 * The questions and orders of operators, from commands, the console and the API. Answers are read from the work folder, and
 * orders are placed there, inside the daemon as well as beside it or without one.
 */
import { mapLimit } from "../base/concurrency.ts";
import { type Disk, systemDisk } from "../base/disk.ts";
import { lookAt } from "../base/files.ts";
import type { Settings } from "../config/settings.ts";
import { findDaemonState } from "../inbox/members.ts";
import { findDaemonUsers } from "../inbox/work-folder.ts";
import { readPauses, withPauses } from "../ledger/pauses.ts";
import { peekLedger } from "../ledger/peek.ts";
import type { OnDamaged } from "../ledger/port.ts";
import { Labels } from "../model/mailbox.ts";
import type { Actor, CommandOptions, TransferAct } from "../model/order.ts";
import type { JournalKind, ListQuery, TransferFilter } from "../model/queries.ts";
import type { TransferKey, TransferRecord } from "../model/record.ts";
import type {
  ActResult,
  Journal,
  JournalQuery,
  MailboxResult,
  Story,
  TransferList,
  TransferView,
} from "../model/views.ts";
import { type ActTools, objectionToAct, selectActable } from "./act.ts";
import { type ActRequest, type RunningAct, startAct } from "./acting.ts";
import { readJournal } from "./history.ts";
import { countPages, makeFormatter, selectTransfers, takeFirst } from "./list.ts";
import { actOnMailboxes, type MailboxRequest } from "./mailboxes.ts";
import { readStory } from "./story.ts";

/** `act`: only transfers for which it is possible, as far as that is known. */
export type Choice = TransferFilter & { readonly act?: TransferAct | undefined };

/** What `Local` and `DaemonClient` both offer, with the same answers. */
export type Operate = Omit<Local, "start">;

/** Transfers that are read at the same time. */
const AT_ONCE = 32;
/** Unreadable records that an answer names. */
const MAX_DAMAGED = 100;

export type LocalSettings = Pick<Settings, "work" | "inbox" | "state" | "mailboxes" | "isStateNamed">;

export interface LocalTools extends Pick<ActTools, "asOwner" | "isRunning" | "runOrders" | "mayList"> {
  /** As they are now. Operators' pauses are read from the work folder. */
  settings(): LocalSettings;
  readonly stop: AbortSignal;
  readonly disk?: Disk;
  /** Options of the commands that answers advise. */
  readonly options?: CommandOptions;
}

/** Methods throw the faults of the disk. */
export class Local {
  readonly #tools: LocalTools;

  constructor(tools: LocalTools) {
    this.#tools = tools;
  }

  /** The transfer in the named mailbox, or in every mailbox that received it. */
  async find(trackingId: string, mailbox: string | undefined): Promise<TransferView[]> {
    const { mailboxes } = this.#tools.settings();
    const names = mailbox === undefined ? mailboxes.map(({ name }) => name) : [this.#labels.keyOf(mailbox)];
    const found: TransferRecord[] = [];
    for (const name of names) {
      const record = await this.#peek().find({ mailbox: name, trackingId });
      if (record !== undefined) found.push(record);
    }
    // Its mailbox may have been removed from the configuration.
    if (found.length === 0 && mailbox === undefined) found.push(...(await this.#peek().findAll(trackingId)));
    return mapLimit(found, AT_ONCE, await this.#makeFormatter());
  }

  /** Every transfer that matches, in no particular order. */
  async *all(
    choice: Choice,
    onDamaged: (path: string) => void,
  ): AsyncGenerator<TransferView, void, undefined> {
    const format = await this.#makeFormatter();
    for await (const record of this.#select(choice, onDamaged)) yield await format(record);
  }

  /** A page beyond the last one is empty. */
  async list(query: ListQuery, signal?: AbortSignal): Promise<TransferList> {
    const { page, size, sort } = query;
    const damaged = new Set<string>();
    const onDamaged = (path: string) => void (damaged.size < MAX_DAMAGED && damaged.add(path));
    const { first, total } = await takeFirst(this.#select(query, onDamaged, signal), page * size, sort);
    const format = await this.#makeFormatter();
    const transfers = await mapLimit(first.slice((page - 1) * size), AT_ONCE, format);
    return { total, page, pages: countPages(total, size), size, transfers, damaged: [...damaged] };
  }

  /** `undefined` for an unknown transfer. */
  async story(key: TransferKey): Promise<Story | undefined> {
    const { shown, keyed } = this.#labels;
    const story = await readStory(this.#tools.settings(), keyed(key), this.#tools.options);
    return story && shown(story);
  }

  async history<Kind extends JournalKind>(
    kind: Kind,
    query: JournalQuery,
    signal = this.#tools.stop,
  ): Promise<Journal<Kind>> {
    const { shown, filtered } = this.#labels;
    const journal = await readJournal(this.#tools.settings().work, kind, filtered(query), signal);
    return { ...journal, entries: journal.entries.map(shown) };
  }

  /** Why the act is not possible, for people; `undefined` if nothing is known against it. */
  async objectionTo(act: TransferAct, key: TransferKey): Promise<string | undefined> {
    return (
      await objectionToAct(await this.#actTools(), act, await this.#peek().find(this.#labels.keyed(key)))
    )?.detail;
  }

  /** In the order of the request. `waitMs`: for the outcomes. `onResult` gets each result, again whenever it changes. */
  async act(
    request: ActRequest,
    by: Actor,
    waitMs: number,
    onResult: (result: ActResult) => void,
  ): Promise<ActResult[]> {
    const running = await this.start(request, by, AbortSignal.timeout(waitMs), onResult);
    await running.settled;
    return running.results();
  }

  /** In the order of the configuration. `waitMs`: for the outcomes of polls. */
  actOnMailboxes(
    request: MailboxRequest,
    by: Actor,
    waitMs: number,
    signal = this.#tools.stop,
  ): Promise<MailboxResult[]> {
    const { work, mailboxes: configured } = this.#tools.settings();
    const ended = AbortSignal.any([this.#tools.stop, signal, AbortSignal.timeout(waitMs)]);
    return actOnMailboxes({ ...this.#tools, work, configured, by }, request, ended);
  }

  /** As `act`, for a caller that shows results as they come. */
  async start(
    request: ActRequest,
    by: Actor,
    signal: AbortSignal,
    onResult: (result: ActResult) => void,
  ): Promise<RunningAct> {
    const { shown, keyed } = this.#labels;
    const running = startAct(
      await this.#actTools(),
      { ...request, transfers: request.transfers.map(keyed) },
      by,
      AbortSignal.any([signal, this.#tools.stop]),
      (result) => onResult(shown(result)),
    );
    return { ...running, results: () => running.results().map(shown) };
  }

  async *#select({ act, ...choice }: Choice, onDamaged: OnDamaged, signal = this.#tools.stop) {
    const filter = this.#labels.filtered(choice);
    if (act === undefined) yield* selectTransfers(this.#peek(), filter, onDamaged, signal);
    else yield* selectActable(await this.#actTools(), filter, act, onDamaged, signal);
  }

  async #makeFormatter() {
    const format = await makeFormatter(this.#peek(), this.#tools.settings().mailboxes);
    const { shown } = this.#labels;
    return async (record: TransferRecord) => shown(await format(record));
  }

  /** Callers know what people call mailboxes, and records the keys. */
  get #labels(): Labels {
    return new Labels(this.#tools.settings().mailboxes);
  }

  #peek() {
    return peekLedger(this.#tools.settings(), this.#tools.disk ?? systemDisk);
  }

  async #actTools(): Promise<ActTools> {
    const { work, inbox, state, mailboxes } = await withDaemonsState(this.#tools.settings());
    return { ...this.#tools, work, inbox, state, mailboxes: withPauses(mailboxes, await readPauses(work)) };
  }
}

/** Passwords go to the state folder. Unless the configuration names one, it is that of this inbox's daemon. */
export async function withDaemonsState<Given extends LocalSettings>(settings: Given): Promise<Given> {
  if (settings.isStateNamed === true) return settings;
  // A work folder of another user does not say where passwords go.
  const known = [0, process.geteuid?.(), ...(await findDaemonUsers(settings))];
  if (!known.includes((await lookAt(settings.work))?.uid)) return settings;
  const state = await findDaemonState(settings.work);
  return state === undefined ? settings : { ...settings, state };
}
