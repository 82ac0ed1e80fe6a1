/**
 * Transfers that are expected regularly. Each missed deadline is reported once, and so is a late arrival.
 *
 * A deadline is judged only after a successful poll that began after it. That poll discovers a transfer that arrived while
 * no daemon ran; the time of the discovery counts as its arrival. The facts of each mailbox are in a file, which all
 * processes that share the inbox share.
 */

import { join } from "node:path";
import * as v from "valibot";
import type { Clock } from "../base/clock.ts";
import { Coalesced } from "../base/concurrency.ts";
import { clearTemporaries, makeFolderDurably, replaceDurably } from "../base/durable.ts";
import { tryReadFile } from "../base/files.ts";
import { parseAs } from "../base/json.ts";
import { addressForm, makeMatcher } from "../base/normal-form.ts";
import { lastTimeOf } from "../base/timetable.ts";
import type { Ledger } from "../ledger/port.ts";
import { type Emit, listenTo, type Overdue } from "../model/events.ts";
import type { Expectation, Mailbox } from "../model/mailbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { digestOfMailbox, type MailboxId, mailboxIdOf } from "../model/transfer.ts";

interface ExpectedTools {
  /** Holds one file per mailbox. */
  readonly folder: string;
  readonly ledger: Pick<Ledger, "open">;
  readonly clock: Clock;
  readonly emit: Emit;
}

type Files = ReadonlyMap<MailboxId, ExpectedFile>;

/** Throws `DISK_FULL` or `DISK_REFUSED` if the folder cannot be created. */
export async function openExpected(tools: ExpectedTools, mailboxes: readonly Mailbox[]): Promise<Expected> {
  const expected = new Expected(tools);
  const apply = await expected.prepare(mailboxes);
  await apply();
  return expected;
}

export class Expected {
  readonly #tools: ExpectedTools;
  #files: Files = new Map();
  /** Notes the arrival of each discovered transfer. */
  readonly listener = listenTo({ "transfer-discovered": ({ record }) => noteArrival(this.#files, record) });

  constructor(tools: ExpectedTools) {
    this.#tools = tools;
  }

  /**
   * Opens the files of new settings. The returned function puts them in force; it never throws, and resolves when the
   * old files are written. Throws `DISK_FULL` or `DISK_REFUSED`, and then nothing has changed.
   */
  async prepare(mailboxes: readonly Mailbox[]): Promise<() => Promise<void>> {
    const { folder, clock, ledger } = this.#tools;
    const expecting = mailboxes.filter(({ expect = [] }) => expect.length > 0);
    if (expecting.length > 0) {
      await makeFolderDurably(folder, 0o700);
      await clearTemporaries(folder, clock.now());
    }
    const files: Files = new Map(
      expecting.map(({ name, expect = [] }) => {
        const path = join(folder, `${digestOfMailbox(name)}.json`);
        return [mailboxIdOf(name), new ExpectedFile(path, expect, clock)];
      }),
    );
    // A process may have been killed between a discovery and the note of the arrival.
    if (files.size > 0) for await (const record of ledger.open(() => {})) noteArrival(files, record);
    await syncAll(files);
    return () => {
      const before = this.#files;
      this.#files = files;
      this.#emitOverdue();
      return syncAll(before);
    };
  }

  /** Judges the deadlines after a successful poll of the mailbox; `polledMs`: when it began. Never throws. */
  async check(mailbox: string, polledMs: number): Promise<void> {
    const file = this.#files.get(mailboxIdOf(mailbox));
    if (file === undefined) return;
    // Another process may know more.
    await file.sync();
    const judged = file.entries.map((entry) => ({
      entry,
      ...judge(entry.expectation, entry.facts, polledMs),
    }));
    for (const { entry, facts } of judged) file.learn(entry, facts);
    // Written first: after a crash a deadline is listed as overdue, but never reported twice.
    await file.sync();
    const { emit } = this.#tools;
    for (const { entry, cleared, missed } of judged) {
      const { expectation } = entry;
      if (cleared !== undefined) emit({ type: "arrival-late", mailbox, expectation, dueMs: cleared });
      if (missed !== undefined) emit({ type: "arrival-missed", mailbox, expectation, dueMs: missed });
    }
    this.#emitOverdue();
  }

  /** Reads the facts that other processes have noted. */
  async refresh(): Promise<void> {
    await syncAll(this.#files);
    this.#emitOverdue();
  }

  /** Resolves when everything is written. */
  close(): Promise<void> {
    return syncAll(this.#files);
  }

  /** The expected transfers that are overdue, including those that were overdue before a restart. */
  overdue(): Overdue[] {
    return [...this.#files].flatMap(([mailbox, { entries }]) =>
      entries
        .filter(({ facts }) => facts.missedMs > facts.clearedMs)
        .map(({ expectation, facts }) => ({ mailbox, expectation, dueMs: facts.missedMs })),
    );
  }

  #emitOverdue(): void {
    this.#tools.emit({ type: "overdue-listed", overdue: this.overdue() });
  }
}

function noteArrival(files: Files, { mailbox, sender, at }: TransferRecord): void {
  const arrivedMs = Date.parse(at.discovered ?? "");
  const file = files.get(mailboxIdOf(mailbox));
  if (file === undefined || Number.isNaN(arrivedMs)) return;
  for (const entry of file.entries) {
    if (makeMatcher(entry.expectation.sender, addressForm)(sender)) file.learn(entry, { arrivedMs });
  }
}

async function syncAll(files: Files): Promise<void> {
  for (const file of files.values()) await file.sync();
}

/**
 * The facts about one expectation, in milliseconds since the epoch, 0 for never. `sinceMs` only falls, the others only
 * rise, and none is in the future. So the facts of two processes can be merged in any order.
 */
const FactsShape = v.object({
  /** When the expectation was first configured here. */
  sinceMs: v.number(),
  /** When the last matching transfer was discovered. */
  arrivedMs: v.number(),
  /** The last deadline that was reported as missed. */
  missedMs: v.number(),
  /** The last missed deadline whose late arrival was reported. */
  clearedMs: v.number(),
});

export type ExpectationFacts = Readonly<v.InferOutput<typeof FactsShape>>;

const Content = v.record(v.string(), FactsShape);

interface Entry {
  readonly expectation: Expectation;
  facts: ExpectationFacts;
}

/** The facts about the expectations of one mailbox, in memory and in its file. */
class ExpectedFile {
  readonly entries: readonly Entry[];
  readonly #path: string;
  readonly #clock: Clock;
  // After a failure the next call tries again, and so does each successful poll.
  readonly #writing = new Coalesced(() => this.#exchange().catch(() => {}));

  /** An expectation that is not in the file begins now. */
  constructor(path: string, expectations: readonly Expectation[], clock: Clock) {
    this.#path = path;
    this.#clock = clock;
    const facts: ExpectationFacts = { sinceMs: clock.now(), arrivedMs: 0, missedMs: 0, clearedMs: 0 };
    this.entries = expectations.map((expectation) => ({ expectation, facts }));
  }

  /** In memory at once, in the file soon. */
  learn(entry: Entry, changes: Partial<ExpectationFacts>): void {
    this.#merge(entry, changes);
    void this.sync();
  }

  /** Merges the file into memory, and memory into the file. Resolves when that is done, or has failed. */
  sync(): Promise<void> {
    return this.#writing.run();
  }

  async #exchange(): Promise<void> {
    const stored = await this.#read();
    for (const entry of this.entries) this.#merge(entry, stored[keyOf(entry.expectation)]);
    const merged = Object.fromEntries(this.entries.map((entry) => [keyOf(entry.expectation), entry.facts]));
    if (JSON.stringify(merged) === JSON.stringify(stored)) return;
    await replaceDurably(this.#path, JSON.stringify(merged), 0o600);
  }

  #merge(entry: Entry, changes?: Partial<ExpectationFacts>): void {
    entry.facts = mergeFacts(entry.facts, { ...entry.facts, ...changes }, this.#clock.now());
  }

  /** Empty if the file is missing or damaged. Throws if the disk does not answer. */
  async #read(): Promise<Readonly<Record<string, ExpectationFacts>>> {
    return parseAs(Content, await tryReadFile(this.#path)) ?? {};
  }
}

/** By content: a changed expectation is a new one. */
function keyOf({ sender, by, withinMs }: Expectation): string {
  return JSON.stringify([sender, by.zone, by.days, by.timeMs, withinMs]);
}

/** The last deadline up to `asOfMs`, if no transfer has arrived for it, in time or late. */
export function findOverdue({ by, withinMs }: Expectation, facts: ExpectationFacts, asOfMs: number) {
  const dueMs = lastTimeOf(by, asOfMs);
  // Without a time of its own, an arrival after the deadline before counts.
  const fromMs = withinMs === undefined ? lastTimeOf(by, dueMs - 1) : dueMs - withinMs;
  // Arrivals before the expectation was configured are not noted.
  if (fromMs < facts.sinceMs) return undefined;
  return facts.arrivedMs > fromMs ? undefined : dueMs;
}

/**
 * The reports due now, and the facts after them. `cleared`: the missed deadline for which a transfer has now arrived.
 * `missed`: a deadline that no transfer has met; a later one replaces an earlier one.
 */
export function judge(expectation: Expectation, facts: ExpectationFacts, asOfMs: number) {
  const isMissing = facts.missedMs > facts.clearedMs;
  const hasCome = isMissing && findOverdue(expectation, facts, facts.missedMs) === undefined;
  const cleared = hasCome ? facts.missedMs : undefined;
  const overdue = findOverdue(expectation, facts, asOfMs);
  const missed = overdue !== undefined && overdue > facts.missedMs ? overdue : undefined;
  return {
    cleared,
    missed,
    facts: { ...facts, clearedMs: cleared ?? facts.clearedMs, missedMs: missed ?? facts.missedMs },
  };
}

/** A clock that was ahead may have noted times after `nowMs`: nothing would be reported until then. */
export function mergeFacts(a: ExpectationFacts, b: ExpectationFacts, nowMs: number): ExpectationFacts {
  const latest = (fact: keyof ExpectationFacts) => Math.min(Math.max(a[fact], b[fact]), nowMs);
  return {
    sinceMs: Math.min(a.sinceMs, b.sinceMs, nowMs),
    arrivedMs: latest("arrivedMs"),
    missedMs: latest("missedMs"),
    clearedMs: latest("clearedMs"),
  };
}
