/**
 * The ledger for commands and pages: reads it beside a running daemon or without one, and changes nothing.
 *
 * Records are shown in the state that people see. A delivery whose staged folder is not moved yet is `delivering`; one
 * whose hand-off says that a consumer took it is `picked-up`. A missing folder means that nothing is known yet.
 */
import { opendir } from "node:fs/promises";
import { basename, join } from "node:path";
import * as v from "valibot";
import { systemDisk, tryRead } from "../base/disk.ts";
import { Fault, messageOf, systemCode } from "../base/faults.ts";
import type { AttemptSlots, AttemptsOf } from "../model/attempts.ts";
import { hasEnded, type Release, type State, type TransferRecord, type Verified } from "../model/record.ts";
import { FileAttempts } from "./attempts.ts";
import { type Begun, type EndRecord, parseJson, parseRecord } from "./format.ts";
import { unreadable } from "./lines.ts";
import { attemptsKey, LedgerPaths, nameOf, parseStaged, type StageId } from "./paths.ts";
import type { OnDamaged, TransferKey } from "./port.ts";
import { Rounds } from "./rounds.ts";

/** Lists pass over damaged records, and report them. All methods throw `DISK_UNREADABLE`. */
export interface LedgerPeek {
  /** The transfer in its last round. Throws `RECORD_UNREADABLE`. */
  find(key: TransferKey): Promise<TransferRecord | undefined>;
  /** How this very round ended. Throws `RECORD_UNREADABLE`. */
  readEnd(name: string, round: number): Promise<TransferRecord | undefined>;
  /** Open transfers that have a note, in no particular order. */
  open(onDamaged?: OnDamaged): AsyncIterable<TransferRecord>;
  /** Transfers whose last round ended in quarantine, and whose content is there. */
  quarantined(onDamaged?: OnDamaged): AsyncIterable<TransferRecord>;
  /** Every known transfer in its last round: open ones, then ended ones. Memory does not grow with the past. */
  all(onDamaged?: OnDamaged): AsyncIterable<TransferRecord>;
  /** Everything about one transfer. `service`: of its mailbox, where that is configured. Throws `RECORD_UNREADABLE`. */
  describe(key: TransferKey, service?: AttemptBudget): Promise<TransferDescription | undefined>;
  /** How many password attempts transfers have cost, over all mailboxes of their service: for many, with one listing. */
  countAttempts(): Promise<(of: AttemptsOf) => number>;
  /** As the daemon counts them against the budget: attempts of rounds that were delivered are void. */
  readonly attempts: Pick<AttemptSlots, "spent">;
}

interface AttemptBudget {
  /** Of the service. */
  readonly origin: string;
  readonly passwordAttempts: number;
}

export interface TransferDescription {
  /** In its last round. */
  readonly record: TransferRecord;
  /** The first one first. */
  readonly rounds: readonly RoundDescription[];
  /** Folders with content of attempts at any round. */
  readonly staged: readonly string[];
  /** The folder in quarantine, where there is one of the last round. */
  readonly kept: string | undefined;
  /** Password attempts over all mailboxes of the service; missing where the service is not given. */
  readonly passwordsSpent: number | undefined;
}

export interface RoundDescription {
  readonly round: number;
  /** Missing for round 1, which needs no order. */
  readonly begun: Begun | undefined;
  /** Missing while the round is open. */
  readonly ended: RoundEnd | undefined;
}

interface RoundEnd {
  readonly outcome: State;
  readonly at: string | undefined;
  readonly reason: string | undefined;
  readonly message: string | undefined;
  readonly folder: string | undefined;
  readonly verified: Verified | undefined;
  readonly released: Release | undefined;
  /** False while the content still has to be moved to the inbox or the quarantine. */
  readonly isPlaced: boolean;
  /** Missing where the delivery has none. */
  readonly handoff: PeekedHandoff | undefined;
}

interface PeekedHandoff {
  /**
   * `open`: a command or webhook is to be run, or has failed. `waiting`: for the folder to be picked up. `kept`: the folder
   * was picked up, and is to be removed later.
   */
  readonly progress: "open" | "waiting" | "kept" | "finished";
  readonly pickedUpAt?: string | undefined;
  /** Replaces the folder of the end record. */
  readonly folder?: string | undefined;
}

export function peekLedger(work: string): LedgerPeek {
  const reader = new LedgerReader(work);
  const ignore: OnDamaged = () => {};
  return {
    find: (key) => reader.find(nameOf(key)),
    readEnd: (name, round) => reader.readEnd(name, round),
    open: (onDamaged = ignore) => reader.open(onDamaged),
    quarantined: (onDamaged = ignore) => reader.quarantined(onDamaged),
    all: (onDamaged = ignore) => reader.all(onDamaged),
    describe: (key, service) => reader.describe(key, service),
    countAttempts: () => reader.countAttempts(),
    attempts: reader.attempts,
  };
}

const RECORD = /^(.+)\.(end|begin|handoff)-(\d+)\.json$/;
const ATTEMPT = /^([0-9a-f]{32})\.\d+\.json$/;
/** How an outbox entry's name ends. A late worker may leave an empty `wait` beside the true entry: it comes last. */
const ENTRY_KINDS = ["kept", "json", "wait"] as const;

const Step = v.optional(v.object({ state: v.string() }));
const HandoffShape = v.object({
  pickedUpAt: v.optional(v.string()),
  folder: v.optional(v.string()),
  command: Step,
  webhook: Step,
});

/** So many records are read at once. */
const AT_ONCE = 32;
/** An operator may have granted attempts beyond the budget. */
const MOST_GRANTED = 10;

/** The last round of a transfer, by the names of its records. */
interface Listed {
  begin: number;
  end: number;
}

/** Says which files exist, so that a list need not look for each. */
interface Hints {
  readonly staged: ReadonlySet<string>;
  readonly outbox: ReadonlySet<string>;
  /** Of one folder of the ledger. */
  readonly records: ReadonlySet<string>;
}

class LedgerReader {
  readonly attempts: Pick<AttemptSlots, "spent">;
  readonly #paths: LedgerPaths;
  readonly #outbox: string;
  readonly #rounds: Rounds;

  constructor(work: string) {
    this.#paths = new LedgerPaths(work);
    this.#outbox = join(work, "outbox");
    // It only reads: neither the inbox nor a mode is needed.
    this.#rounds = new Rounds({ disk: systemDisk, paths: this.#paths, root: "", folderMode: () => 0 });
    this.attempts = new FileAttempts(systemDisk, this.#paths, this.#rounds);
  }

  async find(name: string): Promise<TransferRecord | undefined> {
    return this.#reading(() => this.#find(name));
  }

  readEnd(name: string, round: number): Promise<TransferRecord | undefined> {
    return this.#reading(() => this.#rounds.readEnd(name, round));
  }

  async *open(onDamaged: OnDamaged): AsyncGenerator<TransferRecord, void, undefined> {
    const names = (await this.#list(this.#paths.notes)).filter((file) => file.endsWith(".json"));
    yield* readAll(names, async (file) => {
      const name = file.slice(0, -".json".length);
      return tolerate(this.#paths.note(name), onDamaged, () => this.#find(name, onDamaged, true));
    });
  }

  async *quarantined(onDamaged: OnDamaged): AsyncGenerator<TransferRecord, void, undefined> {
    const found = await this.#reading(() => this.#rounds.quarantine.list());
    yield* readAll(found, ({ name, round, folder }) =>
      tolerate(folder, onDamaged, async () => {
        const { end } = await this.#rounds.current(name);
        return end?.state === "quarantined" && end.round === round ? end : undefined;
      }),
    );
  }

  async *all(onDamaged: OnDamaged): AsyncGenerator<TransferRecord, void, undefined> {
    const shown = new Set<string>();
    for await (const record of this.open(onDamaged)) {
      shown.add(nameOf(record));
      yield record;
    }
    const outbox = new Set(await this.#list(this.#outbox));
    for (const spread of await this.#list(this.#paths.ledger)) {
      const records = await this.#list(join(this.#paths.ledger, spread));
      const staged = new Set(await this.#list(this.#paths.staging));
      const hints: Hints = { staged, outbox, records: new Set(records) };
      const listed = [...groupByName(records)].filter(([name]) => !shown.has(name));
      yield* readAll(listed, ([name, rounds]) =>
        tolerate(this.#paths.end(name, rounds.end), onDamaged, () => this.#readListed(name, rounds, hints)),
      );
    }
  }

  async describe(key: TransferKey, service?: AttemptBudget): Promise<TransferDescription | undefined> {
    const name = nameOf(key);
    return this.#reading(async () => {
      const record = await this.#find(name);
      if (record === undefined) return undefined;
      const rounds: RoundDescription[] = [];
      for (let round = 1; round <= record.round; round++) rounds.push(await this.#describeRound(name, round));
      const kept = this.#rounds.quarantine.folderOf(name, record.round);
      const staged = (await this.#list(this.#paths.staging)).map(parseStaged);
      return {
        record,
        rounds,
        staged: staged.flatMap((id) => (id?.name === name && id.part === "" ? [this.#paths.staged(id)] : [])),
        kept: (await systemDisk.kindOf(kept)) === "folder" ? kept : undefined,
        passwordsSpent: service && (await this.#countAttemptsAt(key.trackingId, service)),
      };
    });
  }

  async countAttempts(): Promise<(of: AttemptsOf) => number> {
    const counts = new Map<string, number>();
    await this.#reading(async () => {
      try {
        for await (const { name } of await opendir(this.#paths.attempts, { bufferSize: 512 })) {
          const [, key] = ATTEMPT.exec(name) ?? [];
          if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1);
        }
      } catch (error) {
        if (systemCode(error) !== "ENOENT") throw error;
      }
    });
    return ({ origin, trackingId }) => counts.get(attemptsKey(origin, trackingId)) ?? 0;
  }

  /** Looks for each slot: slots that were given back leave gaps, and the folder may be large. */
  async #countAttemptsAt(trackingId: string, { origin, passwordAttempts }: AttemptBudget): Promise<number> {
    const key = attemptsKey(origin, trackingId);
    let count = 0;
    for (let number = 1; number <= passwordAttempts + MOST_GRANTED; number++) {
      const path = join(this.#paths.attempts, `${key}.${number}.json`);
      if ((await systemDisk.kindOf(path)) !== undefined) count++;
    }
    return count;
  }

  /** `isOpen`: only where its last round is open. */
  async #find(name: string, onDamaged?: OnDamaged, isOpen = false): Promise<TransferRecord | undefined> {
    const { round, begin, end } = await this.#rounds.current(name);
    if (end !== undefined) return isOpen ? undefined : this.#asSeen(name, end);
    const note = await this.#readNote(name, onDamaged);
    return note?.round === round && !hasEnded(note) ? note : begin;
  }

  async #readListed(name: string, { begin, end }: Listed, hints: Hints): Promise<TransferRecord | undefined> {
    if (begin > end) return this.#find(name);
    const record = await this.#rounds.readEnd(name, end);
    return record && this.#asSeen(name, record, hints);
  }

  /** A note is a convenience, and the daemon does without a damaged one: only lists report it. */
  async #readNote(name: string, onDamaged?: OnDamaged): Promise<TransferRecord | undefined> {
    const path = this.#paths.note(name);
    const text = await tryRead(systemDisk, path);
    if (text === undefined) return undefined;
    try {
      return parseRecord(text, path);
    } catch (error) {
      onDamaged?.(path, messageOf(error));
      return undefined;
    }
  }

  async #asSeen(name: string, end: EndRecord, hints?: Hints): Promise<TransferRecord> {
    if (end.state !== "delivered") return end;
    if (!(await this.#isPlaced(name, end, hints))) return { ...end, state: "delivering" };
    const handoff = await this.#readHandoff(name, end.round, hints);
    const { pickedUpAt, folder = end.folder } = handoff ?? {};
    if (pickedUpAt === undefined) return { ...end, folder };
    return { ...end, folder, state: "picked-up", at: { ...end.at, "picked-up": pickedUpAt } };
  }

  async #isPlaced(name: string, { round, token }: EndRecord, hints?: Hints): Promise<boolean> {
    if (token === undefined) return true;
    const id: StageId = { name, round, token };
    if (hints !== undefined) return !hints.staged.has(`${name}~${round}~${token}`);
    return (await systemDisk.kindOf(this.#paths.staged(id))) === undefined;
  }

  /** The record of a finished hand-off counts, whatever a late worker left in the outbox. */
  async #readHandoff(name: string, round: number, hints?: Hints): Promise<PeekedHandoff | undefined> {
    const entries = ENTRY_KINDS.map((kind) => `${name}~${round}.${kind}`);
    const record = this.#paths.handoff(name, round);
    const isInOutbox = hints === undefined || entries.some((entry) => hints.outbox.has(entry));
    if (!isInOutbox && !hints.records.has(basename(record))) return undefined;
    // An entry that changes its name meanwhile is found at the second try.
    for (let tries = 0; tries < 2; tries++) {
      const text = await tryRead(systemDisk, record);
      if (text !== undefined) return { ...parseHandoff(text, record), progress: "finished" };
      for (const [at, kind] of ENTRY_KINDS.entries()) {
        const found = await tryRead(systemDisk, join(this.#outbox, entries[at] ?? ""));
        if (found !== undefined) return parseEntry(found, kind);
      }
    }
    return undefined;
  }

  async #describeRound(name: string, round: number): Promise<RoundDescription> {
    const path = this.#paths.begin(name, round);
    const text = await tryRead(systemDisk, path);
    const begun = text === undefined ? undefined : parseRecord(text, path).begun;
    const end = await this.#rounds.readEnd(name, round);
    if (end === undefined) return { round, begun, ended: undefined };
    const { state: outcome, at, reason, message, verified, released } = end;
    const handoff = outcome === "delivered" ? await this.#readHandoff(name, round) : undefined;
    const isPlaced = await this.#isPlaced(name, end);
    const folder = handoff?.folder ?? end.folder;
    const facts = { outcome, at: at[outcome], reason, message, folder, verified, released };
    return { round, begun, ended: { ...facts, isPlaced, handoff } };
  }

  async #list(folder: string): Promise<string[]> {
    return this.#reading(async () => {
      try {
        return await systemDisk.list(folder);
      } catch (error) {
        if (systemCode(error) === "ENOENT") return [];
        throw error;
      }
    });
  }

  /** Turns the system's errors into `DISK_UNREADABLE`. */
  async #reading<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof Fault || systemCode(error) === "") throw error;
      throw unreadable((error as NodeJS.ErrnoException).path ?? this.#paths.work, error);
    }
  }
}

/** By transfer, the last round that began and the last that ended. */
function groupByName(files: readonly string[]): Map<string, Listed> {
  const groups = new Map<string, Listed>();
  for (const file of files) {
    const [, name, kind, round] = RECORD.exec(file) ?? [];
    if (name === undefined || (kind !== "end" && kind !== "begin")) continue;
    const listed = groups.get(name) ?? { begin: 1, end: 0 };
    listed[kind] = Math.max(listed[kind], Number(round));
    groups.set(name, listed);
  }
  return groups;
}

/** Yields in the given order what can be read, some at once. */
async function* readAll<Item>(
  items: readonly Item[],
  read: (item: Item) => Promise<TransferRecord | undefined>,
): AsyncGenerator<TransferRecord, void, undefined> {
  for (let start = 0; start < items.length; start += AT_ONCE) {
    const found = await Promise.all(items.slice(start, start + AT_ONCE).map(read));
    for (const record of found) if (record !== undefined) yield record;
  }
}

/** `undefined` where the record cannot be read, which is reported. */
async function tolerate<Result>(
  path: string,
  onDamaged: OnDamaged,
  read: () => Promise<Result>,
): Promise<Result | undefined> {
  try {
    return await read();
  } catch (error) {
    onDamaged(path, messageOf(error));
    return undefined;
  }
}

/** The outbox is no record: the daemon reports a damaged entry. An empty one only waits. */
function parseEntry(text: string, kind: (typeof ENTRY_KINDS)[number]): PeekedHandoff {
  const result = v.safeParse(HandoffShape, parseJson(text));
  const { command, webhook, ...facts } = result.success ? result.output : {};
  if (kind === "kept") return { ...facts, progress: "kept" };
  const isOpen = [command, webhook].some((step) => step !== undefined && step.state !== "done");
  return { ...facts, progress: isOpen ? "open" : "waiting" };
}

/** It is not synced: a power cut may leave it empty. Then it is finished, and no more is known. */
function parseHandoff(text: string, path: string): Omit<PeekedHandoff, "progress"> {
  if (text === "") return {};
  const result = v.safeParse(HandoffShape, parseJson(text));
  if (!result.success) throw new Fault("RECORD_UNREADABLE", { detail: path });
  const { pickedUpAt, folder } = result.output;
  return { pickedUpAt, folder };
}
