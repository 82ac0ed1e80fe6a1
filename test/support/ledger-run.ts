/** Workers that begin and end rounds by the real protocol on a model disk, and checks of the result. */
import { dirname, join } from "node:path";
import { type Disk, tryUnlink } from "../../src/base/disk.ts";
import { systemCode } from "../../src/base/faults.ts";
import type { EndRecord } from "../../src/ledger/format.ts";
import { LedgerPaths, nameOf, parseStaged } from "../../src/ledger/paths.ts";
import type { Stage } from "../../src/ledger/port.ts";
import { Quarantine } from "../../src/ledger/quarantine.ts";
import { Rounds } from "../../src/ledger/rounds.ts";
import { MANIFEST } from "../../src/model/manifest.ts";
import { nextRound, RECORD_VERSION, type TransferRecord } from "../../src/model/record.ts";
import { ModelDisk } from "./model-disk.ts";
import {
  explore,
  formatViolation,
  type Gate,
  GatedDisk,
  LIMITS,
  type Run,
  type Scenario,
} from "./schedules.ts";

export const PATHS = new LedgerPaths("/work");
const QUARANTINE = new Quarantine(PATHS.work);
export const INBOX = "/inbox";
const OUTBOX = "/work/outbox";
/** The consumer moves delivered folders here. */
const TAKEN = "/taken";

const FILES = ["one.txt", "two.txt"];
/** More rounds than any scenario begins. */
const MAX_ROUNDS = 5;

/** The manifest of a delivered folder. */
interface Manifest {
  readonly name: string;
  readonly round: number;
  readonly token: string;
}

function makeTransfer(trackingId: string, mailbox = "m"): TransferRecord {
  return {
    version: RECORD_VERSION,
    mailbox,
    trackingId,
    transferId: "x",
    sender: "a@example.org",
    state: "discovered",
    round: 1,
    reason: undefined,
    message: undefined,
    until: undefined,
    expires: undefined,
    passwordInLink: false,
    folder: undefined,
    attempts: 0,
    at: { discovered: "2026-03-01T08:00:00.000Z" },
  };
}

export const T1 = makeTransfer("t1");
export const T2 = makeTransfer("t2");
/** One transfer, received by two mailboxes. */
export const [M1, M2] = [
  makeTransfer("t1", "one@example.org"),
  makeTransfer("t1", "two@example.org"),
] as const;

interface DownloadOptions {
  /** The delivery's folder in the inbox. */
  readonly folder?: string;
  readonly state?: "delivered" | "quarantined";
  /** Revokes the stages of other attempts first. */
  readonly revokes?: boolean;
}

/** A process and its possible work. */
class Process {
  readonly disk: Disk;
  readonly rounds: Rounds;
  readonly #gate: Gate;
  readonly #isAlone: boolean;

  constructor(model: ModelDisk, gate: Gate, kind: typeof Rounds, isAlone = false) {
    const disk = new GatedDisk(model, gate);
    this.disk = disk;
    this.#gate = gate;
    this.#isAlone = isAlone;
    this.rounds = new kind({ disk, paths: PATHS, root: INBOX, folderMode: () => 0o750, isAlone });
  }

  /** Downloads and delivers a transfer if its round is open. */
  async download(record: TransferRecord, options: DownloadOptions = {}): Promise<void> {
    const deliver = await this.downloadOnly(record, options);
    await deliver();
  }

  /** Stops before the delivery, and returns it as a function. */
  async downloadOnly(record: TransferRecord, options: DownloadOptions = {}): Promise<() => Promise<void>> {
    const { round, end } = await this.rounds.current(nameOf(record));
    if (end !== undefined) return async () => {};
    await this.#gate("ask the service", async () => {});
    const stage = await this.rounds.openStage({ ...record, round });
    let isComplete = false;
    await this.#unlessRevoked(stage, async () => {
      if (options.revokes) await this.#revokeOthers(stage);
      await this.#fill(stage);
      await this.rounds.seal(stage);
      isComplete = true;
    });
    const deliver = () => this.#deliver(stage, { ...record, round }, options);
    return async () => (isComplete ? this.#unlessRevoked(stage, deliver) : undefined);
  }

  /** Downloads the first file, and stops. */
  async downloadPart(record: TransferRecord): Promise<void> {
    const stage = await this.rounds.openStage(record);
    await this.#write(join(stage.folder, FILES[0] ?? ""), "the beginning");
    await this.rounds.closeStage(stage);
  }

  async #deliver(stage: Stage, record: TransferRecord, options: DownloadOptions): Promise<void> {
    const { rounds } = this;
    const folder = await rounds.targets.takeFolder(options.folder ?? "m/F", record);
    const end: EndRecord = { ...record, folder, state: options.state ?? "delivered", token: stage.token };
    await this.#addToOutbox(stage);
    if (await rounds.endWith(stage, end)) {
      await rounds.place(end, true);
      await this.#settle(end);
    } else await rounds.dropStage(stage);
    rounds.targets.giveBack(folder);
  }

  /** As the ledger does after the journal has the end. */
  async #settle(end: EndRecord): Promise<void> {
    if (this.#isAlone) await this.rounds.dropTicket(end);
  }

  async #revokeOthers(stage: Stage): Promise<void> {
    for (const other of await this.rounds.otherStages(stage)) await this.rounds.revoke(other);
  }

  /** Each file names the attempt that wrote it. */
  async #fill({ folder, name, round, token }: Stage): Promise<void> {
    for (const file of FILES) await this.#write(join(folder, file), `${file} of ${token}`);
    const manifest: Manifest = { name, round, token };
    await this.#write(join(folder, MANIFEST), JSON.stringify(manifest));
  }

  /** A revoked attempt finds its files missing, and gives up. A failed one may be continued. */
  async #unlessRevoked(stage: Stage, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const hasTicket = (await this.disk.kindOf(PATHS.ticket(stage))) !== undefined;
      const isRevoked = systemCode(error) === "ENOENT" && !hasTicket;
      await (isRevoked ? this.rounds.dropStage(stage) : this.rounds.closeStage(stage));
      if (!isRevoked) throw error;
    }
  }

  /** An entry is only a name, so attempts can share it. */
  async #addToOutbox({ name, round }: Stage): Promise<void> {
    try {
      await (await this.disk.create(join(OUTBOX, `${name}~${round}.json`), 0o600)).close();
    } catch (error) {
      if (systemCode(error) !== "EEXIST") throw error;
    }
    await this.disk.syncFolder(OUTBOX);
  }

  async #write(path: string, text: string): Promise<void> {
    const file = await this.disk.create(path, 0o600).catch((error: unknown) => {
      if (systemCode(error) !== "EEXIST") throw error;
      return this.disk.truncate(path);
    });
    await file.write(text);
    await file.sync();
    await file.close();
  }

  /** Ends the round without content if it is open. */
  async endAsGone(record: TransferRecord, reason: string): Promise<void> {
    const { round, end } = await this.rounds.current(nameOf(record));
    if (end === undefined) await this.rounds.end({ ...record, round, state: "gone", reason });
  }

  /** Begins the next round if the last one has ended in one of these states. */
  async beginNext(record: TransferRecord, ...states: readonly TransferRecord["state"][]): Promise<void> {
    const { end } = await this.rounds.current(nameOf(record));
    if (end !== undefined && states.includes(end.state)) await this.rounds.begin(nextRound(end));
  }

  /** As at a start. Returns the first failure. */
  async recover(): Promise<string | undefined> {
    let failed: string | undefined;
    const recovered = await this.rounds.recover((entry, error) => {
      failed ??= `recovery of ${entry} failed: ${error}`;
    });
    for (const { end } of recovered) await this.#settle(end);
    for (const entry of await this.disk.list(OUTBOX)) {
      const [, name = "", round] = /^(.+)~(\d+)\.json$/.exec(entry) ?? [];
      const end = await this.rounds.readEnd(name, Number(round));
      if (end !== undefined && end.state !== "delivered") await tryUnlink(this.disk, join(OUTBOX, entry));
    }
    return failed;
  }

  /** A worker may still write into a folder that recovery removes: the next recovery removes it. */
  async recoverBesideWorkers(): Promise<void> {
    const failed = await this.recover();
    if (failed !== undefined && !failed.includes("ENOTEMPTY")) throw new Error(failed);
  }
}

type WorkerSpec = readonly [name: string, process: Process, run: () => Promise<void>];

export interface LedgerSpec {
  readonly transfers?: readonly TransferRecord[];
  /** Each process assumes that it works alone, as without working locks. */
  readonly isAlone?: boolean;
  /** Moves each folder away as soon as it appears in the inbox; `tidies`: also removes its parent. */
  readonly consumer?: "takes" | "tidies";
  /** Names in the inbox at the end. */
  readonly expected?: readonly string[];
  /** Prepares the disk, and returns the workers. */
  workers(spawn: () => Process): Promise<readonly WorkerSpec[]>;
}

/** `kind`: the protocol of the workers, which may be a faulty one. */
export async function findViolation(
  name: string,
  spec: LedgerSpec,
  limits = LIMITS,
  kind: typeof Rounds = Rounds,
): Promise<string | undefined> {
  const { violation } = await explore(makeScenario(name, spec, kind), limits);
  return formatViolation(violation);
}

export function makeScenario(name: string, spec: LedgerSpec, kind: typeof Rounds = Rounds): Scenario {
  const empty = makeWorkFolder();
  return {
    name,
    async start(gate: Gate): Promise<Run> {
      const disk = (await empty).copy();
      const processes: Process[] = [];
      const workers = await spec.workers(() => {
        const process = new Process(disk, gate, kind, spec.isAlone);
        processes.push(process);
        return process;
      });
      const check = startChecks(disk);
      return {
        disk,
        workers: workers.map(([name, process, run]) => ({ name, process: processes.indexOf(process), run })),
        outside: () => "",
        check,
        react: () => consume(disk, spec),
        checkEnd: () => findTemporaries(disk),
        restart: (left, afterStep) =>
          restart(left, spec, afterStep).catch((error: unknown) => `failed: ${error}`),
      };
    },
  };
}

export async function makeWorkFolder(): Promise<ModelDisk> {
  const disk = new ModelDisk();
  const records = [T1, T2, M1, M2].map((key) => PATHS.ledgerFolder(nameOf(key)));
  const folders = ["/work", INBOX, `${INBOX}/m`, TAKEN, OUTBOX, ...PATHS.folders(), ...records];
  for (const path of folders) await disk.makeFolder(path, 0o700);
  return disk.copy();
}

/** Recovery, a worker that finishes each open round, and recovery again: nothing must be left to do. */
async function restart(
  disk: ModelDisk,
  spec: LedgerSpec,
  afterStep: () => void,
): Promise<string | undefined> {
  const check = startChecks(disk);
  let problem = check() ?? findRoundTooEarly(disk);
  consume(disk, spec);
  if (problem !== undefined) return problem;
  const gate: Gate = async (_, step) => {
    const value = await step();
    problem ??= check();
    consume(disk, spec);
    afterStep();
    return value;
  };
  const process = new Process(disk, gate, Rounds, spec.isAlone);
  problem ??= await process.recover();
  const { transfers = [T1] } = spec;
  for (const record of transfers) {
    for (let round = 1; round <= MAX_ROUNDS; round++) await process.download(record);
  }
  problem ??= await process.recover();
  if (problem !== undefined) return problem;
  for (const record of transfers) problem ??= await findUnsettled(disk, nameOf(record), process.rounds);
  return problem ?? findUnexpected(disk, spec);
}

/** Checks that hold at any time. */
function startChecks(disk: ModelDisk): () => string | undefined {
  const records = new Map<string, string>();
  let version = -1;
  return () => {
    if (version === disk.version) return undefined;
    version = disk.version;
    return findChangedRecord(disk, records) ?? findWrongDelivery(disk);
  };
}

/** I7: a record is never replaced and never removed. */
function findChangedRecord(disk: ModelDisk, known: Map<string, string>): string | undefined {
  const now = disk.filesBelow(PATHS.ledger);
  for (const [path, text] of known) if (now.get(path) !== text) return `I7: record ${path} has changed`;
  for (const [path, text] of now) known.set(path, text);
  return undefined;
}

/** I1 and I2: each visible folder is complete and synced, and its round ended with it alone. */
function findWrongDelivery(disk: ModelDisk): string | undefined {
  const rounds = new Set<string>();
  for (const folder of deliveredFolders(disk)) {
    const problem = findFlaw(disk, folder, rounds);
    if (problem !== undefined) return `${problem}: ${folder}`;
  }
  return undefined;
}

function findFlaw(disk: ModelDisk, folder: string, rounds: Set<string>): string | undefined {
  const manifest = readManifest(disk, folder);
  if (manifest === undefined) return "I1: no manifest";
  const { name, round, token } = manifest;
  if (disk.namesIn(folder).length !== FILES.length + 1) return "I1: other files than announced";
  for (const file of FILES) {
    if (disk.textOf(join(folder, file)) !== `${file} of ${token}`) return `I1: ${file} is not of ${token}`;
  }
  if (!disk.isDurable(folder)) return "I1: visible before it is synced";
  if (rounds.has(`${name}~${round}`)) return `I2: round ${round} is delivered twice`;
  rounds.add(`${name}~${round}`);
  const end = readEnd(disk, name, round);
  if (end?.state !== "delivered") return `I2: delivered, and round ${round} is ${end?.state ?? "open"}`;
  return end.token === token ? undefined : `I2: of ${token}, and round ${round} ended with ${end.token}`;
}

/** I7: a round begins after the one before it has ended. */
function findRoundTooEarly(disk: ModelDisk): string | undefined {
  for (const path of disk.filesBelow(PATHS.ledger).keys()) {
    const [, name = "", round] = /([^/]+)\.begin-(\d+)\.json$/.exec(path) ?? [];
    const isEarly = round !== undefined && readEnd(disk, name, Number(round) - 1) === undefined;
    if (isEarly) return `I7: round ${round} has begun, and the round before it is open`;
  }
  return undefined;
}

/** At the end: each round has one outcome, and all its consequences are done. */
async function findUnsettled(disk: ModelDisk, name: string, rounds: Rounds): Promise<string | undefined> {
  const delivered = new Set(
    deliveredFolders(disk)
      .map((folder) => readManifest(disk, folder))
      .map((it) => `${it?.name}~${it?.round}`),
  );
  const { round: last } = await rounds.current(name);
  for (let round = 1; round <= last; round++) {
    const id = `${name}~${round}`;
    const end = readEnd(disk, name, round);
    if (end === undefined) return `I7: round ${round} is open`;
    const isDelivered = end.state === "delivered";
    const isKept = end.state === "quarantined" && end.token !== undefined;
    if (delivered.has(id) !== isDelivered) return `I2: round ${round} is ${end.state}, and not in the inbox`;
    if (disk.namesIn(OUTBOX).includes(`${id}.json`) !== isDelivered)
      return `outbox and round ${round} differ`;
    if (disk.namesIn(QUARANTINE.folder).includes(id) !== isKept)
      return `quarantine and round ${round} differ`;
  }
  // A power cut may leave the stage of a round whose order was lost: the round may be ordered again.
  const left = disk.namesIn(PATHS.staging).map(parseStaged);
  const isOver = left.some((it) => it?.name === name && it.round <= last);
  return isOver ? `left over in staging: ${disk.namesIn(PATHS.staging)}` : undefined;
}

function findTemporaries(disk: ModelDisk): string | undefined {
  const names = disk.namesIn(PATHS.temporary);
  return names.length === 0 ? undefined : `left over in new: ${names}`;
}

function findUnexpected(disk: ModelDisk, { expected }: LedgerSpec): string | undefined {
  const folders = deliveredFolders(disk).map((folder) => folder.slice(INBOX.length + 1));
  if (expected === undefined || folders.sort().join() === expected.join()) return undefined;
  return `delivered as ${folders}`;
}

/** Every folder with files that is or was in the inbox. */
function deliveredFolders(disk: ModelDisk): string[] {
  const folders = [INBOX, TAKEN].flatMap((place) =>
    [...disk.filesBelow(place).keys()].map((path) => join(place, path.slice(0, path.lastIndexOf("/")))),
  );
  return [...new Set(folders)];
}

function readManifest(disk: ModelDisk, folder: string): Manifest | undefined {
  const text = disk.textOf(join(folder, MANIFEST));
  return text ? JSON.parse(text) : undefined;
}

function readEnd(disk: ModelDisk, name: string, round: number): EndRecord | undefined {
  const text = disk.textOf(PATHS.end(name, round));
  return text === undefined ? undefined : JSON.parse(text);
}

/** The fastest possible consumer, whose moves survive every power cut. */
function consume(disk: ModelDisk, { consumer }: LedgerSpec): void {
  if (consumer === undefined) return;
  for (const folder of deliveredFolders(disk)) {
    if (!folder.startsWith(INBOX)) continue;
    void disk.rename(folder, join(TAKEN, `${disk.namesIn(TAKEN).length + 1}`));
    void disk.syncFolder(TAKEN);
    if (consumer !== "tidies") continue;
    void disk.removeFolder(dirname(folder));
    void disk.syncFolder(INBOX);
  }
}
