/**
 * Transfers that are expected regularly: a missed deadline is reported once, and so is the late arrival.
 *
 * A deadline is judged only after a successful poll that began after it. Transfers that arrived while no daemon ran are
 * discovered by that poll, and count from then on.
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { clearTemporaries, makeFolderDurably } from "../base/durable.ts";
import { matchesGlob } from "../base/glob.ts";
import type { Ledger } from "../ledger/port.ts";
import type { Expectation, Mailbox } from "../model/mailbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { canonicalAddress } from "../model/transfer.ts";
import { ExpectedFile } from "./expected-file.ts";
import { judge } from "./overdue.ts";

export interface ExpectedTools {
  /** Kept over restarts, and shared by all processes of the inbox. */
  readonly folder: string;
  readonly ledger: Pick<Ledger, "open">;
  readonly clock: Clock;
  readonly watch: ExpectedWatch;
}

/** Hears what did not come in time. Must not throw. */
interface ExpectedWatch {
  /** Told once for each deadline. */
  missed(mailbox: string, rule: Expectation, dueMs: number): void;
  /** Told once, where `missed` was told before for the same deadline. */
  arrived(mailbox: string, rule: Expectation, dueMs: number): void;
}

export interface Overdue {
  readonly mailbox: string;
  readonly rule: Expectation;
  readonly dueMs: number;
}

export interface Expected {
  /** Called for every discovered transfer. */
  discovered(record: TransferRecord): void;
  /** Called after every successful poll. `polledMs`: when the poll began. Never throws. */
  check(mailbox: string, polledMs: number): Promise<void>;
  /** Reads the notes of other processes. */
  learn(): Promise<void>;
  /** Missed deadlines whose transfer has not arrived, including reports before a restart. */
  overdue(): Overdue[];
  /** Resolves when everything is written. */
  close(): Promise<void>;
}

/** For mailboxes without expectations. */
export const NOTHING_EXPECTED: Expected = {
  discovered() {},
  check: async () => {},
  learn: async () => {},
  overdue: () => [],
  close: async () => {},
};

/** Throws `DISK_FULL` or `DISK_REFUSED` where the folder cannot be made. */
export async function openExpected(tools: ExpectedTools, mailboxes: readonly Mailbox[]): Promise<Expected> {
  const expecting = mailboxes.filter(({ expect = [] }) => expect.length > 0);
  const files = new Map<string, ExpectedFile>();
  if (expecting.length > 0) {
    await makeFolderDurably(tools.folder, 0o700);
    await clearTemporaries(tools.folder, tools.clock.now());
  }
  for (const { name, expect = [] } of expecting) {
    const path = join(tools.folder, `${createHash("sha256").update(name).digest("hex").slice(0, 32)}.json`);
    files.set(name, new ExpectedFile(path, expect, tools.clock));
  }
  const expected = new OpenExpected(tools.watch, files);
  // A process may have been killed between a record and the note of its arrival.
  if (files.size > 0) for await (const record of tools.ledger.open(() => {})) expected.discovered(record);
  await expected.close();
  return expected;
}

class OpenExpected implements Expected {
  readonly #watch: ExpectedWatch;
  readonly #files: ReadonlyMap<string, ExpectedFile>;

  constructor(watch: ExpectedWatch, files: ReadonlyMap<string, ExpectedFile>) {
    this.#watch = watch;
    this.#files = files;
  }

  discovered({ mailbox, sender, at }: TransferRecord): void {
    const arrivedMs = Date.parse(at.discovered ?? "");
    const file = this.#files.get(mailbox);
    if (file === undefined || Number.isNaN(arrivedMs)) return;
    for (const rule of file.rules) {
      if (!matchesGlob(canonicalAddress(sender), canonicalAddress(rule.sender))) continue;
      file.learn(rule, { arrivedMs });
    }
  }

  async check(mailbox: string, polledMs: number): Promise<void> {
    const file = this.#files.get(mailbox);
    if (file === undefined) return;
    // Another process may know more.
    await file.sync();
    const verdicts = file.rules.map((rule) => ({ rule, ...judge(rule, file.knownOf(rule), polledMs) }));
    for (const { rule, known } of verdicts) file.learn(rule, known);
    // Written before it is reported: after a crash it is shown as overdue, but never reported twice.
    await file.sync();
    for (const { rule, cleared, missed } of verdicts) {
      if (cleared !== undefined) this.#watch.arrived(mailbox, rule, cleared);
      if (missed !== undefined) this.#watch.missed(mailbox, rule, missed);
    }
  }

  overdue(): Overdue[] {
    return [...this.#files].flatMap(([mailbox, file]) =>
      file.rules.flatMap((rule) => {
        const { missedMs, clearedMs } = file.knownOf(rule);
        return missedMs > clearedMs ? [{ mailbox, rule, dueMs: missedMs }] : [];
      }),
    );
  }

  close(): Promise<void> {
    return this.learn();
  }

  async learn(): Promise<void> {
    for (const file of this.#files.values()) await file.sync();
  }
}
