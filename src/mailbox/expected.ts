/**
 * Transfers that are expected regularly. Each missed deadline is reported once, and so is a late arrival.
 *
 * A deadline is judged only after a successful poll that began after it. That poll discovers a transfer that arrived while
 * no daemon ran; the time of the discovery counts as its arrival.
 */
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { clearTemporaries, makeFolderDurably } from "../base/durable.ts";
import { addressForm, makeMatcher } from "../base/normal-form.ts";
import type { Ledger } from "../ledger/port.ts";
import { type Emit, listenTo, type Overdue } from "../model/events.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { digestOfMailbox, type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import { ExpectedFile } from "./expected-file.ts";
import { judge } from "./overdue.ts";

interface ExpectedTools {
  /** Holds one file per mailbox. All processes that share the inbox share the folder. */
  readonly folder: string;
  readonly ledger: Pick<Ledger, "open">;
  readonly clock: Clock;
  readonly emit: Emit;
}

export interface Expected {
  /** Notes the arrival of each discovered transfer. */
  readonly listener: Emit;
  /** Judges the deadlines after a successful poll of the mailbox; `polledMs`: when it began. Never throws. */
  check(mailbox: string, polledMs: number): Promise<void>;
  /** The expected transfers that are overdue, including those that were overdue before a restart. */
  overdue(): Overdue[];
  /** Reads the facts that other processes have noted. */
  refresh(): Promise<void>;
  /**
   * Opens the files of new settings. The returned function puts them in force; it never throws, and resolves when the
   * old files are written. Throws `DISK_FULL` or `DISK_REFUSED`, and then nothing has changed.
   */
  prepare(mailboxes: readonly Mailbox[]): Promise<() => Promise<void>>;
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

/** Throws `DISK_FULL` or `DISK_REFUSED` if the folder cannot be created. */
export async function openExpected(tools: ExpectedTools, mailboxes: readonly Mailbox[]): Promise<Expected> {
  const expected = new FileExpected(tools);
  const apply = await expected.prepare(mailboxes);
  await apply();
  return expected;
}

type Files = ReadonlyMap<MailboxId, ExpectedFile>;

class FileExpected implements Expected {
  readonly #tools: ExpectedTools;
  #files: Files = new Map();
  readonly listener = listenTo({ "transfer-discovered": ({ record }) => noteArrival(this.#files, record) });

  constructor(tools: ExpectedTools) {
    this.#tools = tools;
  }

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

  async check(mailbox: string, polledMs: number): Promise<void> {
    const file = this.#files.get(mailboxIdOf(mailbox));
    if (file === undefined) return;
    // Another process may know more.
    await file.sync();
    const judged = file.rules.map((rule) => ({ rule, ...judge(rule, file.factsOf(rule), polledMs) }));
    for (const { rule, facts } of judged) file.learn(rule, facts);
    // Written first: after a crash a deadline is listed as overdue, but never reported twice.
    await file.sync();
    for (const { rule: expectation, cleared, missed } of judged) {
      const { emit } = this.#tools;
      if (cleared !== undefined) emit({ type: "arrival-late", mailbox, expectation, dueMs: cleared });
      if (missed !== undefined) emit({ type: "arrival-missed", mailbox, expectation, dueMs: missed });
    }
    this.#emitOverdue();
  }

  async refresh(): Promise<void> {
    await syncAll(this.#files);
    this.#emitOverdue();
  }

  close(): Promise<void> {
    return syncAll(this.#files);
  }

  overdue(): Overdue[] {
    return [...this.#files].flatMap(([mailbox, file]) =>
      file.rules.flatMap((expectation) => {
        const { missedMs, clearedMs } = file.factsOf(expectation);
        return missedMs > clearedMs ? [{ mailbox, expectation, dueMs: missedMs }] : [];
      }),
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
  for (const rule of file.rules) {
    if (!makeMatcher(rule.sender, addressForm)(sender)) continue;
    file.learn(rule, { arrivedMs });
  }
}

async function syncAll(files: Files): Promise<void> {
  for (const file of files.values()) await file.sync();
}
