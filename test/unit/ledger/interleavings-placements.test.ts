/**
 * I1 whole or nothing, I2 once, I5 no escape: deliveries file by file, and with files beside the folder, in every order of
 * their steps, with crashes and power cuts.
 */
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { systemCode } from "../../../src/base/faults.ts";
import type { EndRecord } from "../../../src/ledger/format.ts";
import { nameOf } from "../../../src/ledger/paths.ts";
import type { Placing } from "../../../src/ledger/placing.ts";
import type { Stage } from "../../../src/ledger/port.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import { makePlacement, type Part, type Placement } from "../../../src/model/placement.ts";
import { nextRound, type TransferRecord } from "../../../src/model/record.ts";
import { INBOX, M1, M2, makeWorkFolder, PATHS, T1 } from "../../support/ledger-run.ts";
import type { ModelDisk } from "../../support/model-disk.ts";
import {
  explore,
  formatViolation,
  type Gate,
  GatedDisk,
  LIMITS,
  type Run,
  type Scenario,
} from "../../support/schedules.ts";

vi.mock("node:crypto", async (original) => ({
  ...(await original<typeof import("node:crypto")>()),
  randomBytes: (await import("../../support/predictable-bytes.ts")).predictableBytes,
}));

const TIMEOUT_MS = 1_800_000;
const FLAT = `${INBOX}/m`;
const TAKEN = "/taken";
const FILES = ["one", "two"];
/** Not of Inlet, and under a name that a delivery would choose first. */
const FOREIGN = { path: `${FLAT}/t1_two`, text: "foreign" };

/** Who wrote a file, and which part of the delivery it is. */
interface Written {
  readonly name: string;
  readonly round: number;
  readonly token: string;
  readonly part: string;
}

/** `few`: one file and a manifest, for workers that take many steps. */
type Kind = "files" | "few" | "folder";

class Process {
  readonly disk: GatedDisk;
  readonly rounds: Rounds;

  constructor(model: ModelDisk, gate: Gate, isAlone: boolean) {
    this.disk = new GatedDisk(model, gate);
    this.rounds = new Rounds({
      disk: this.disk,
      paths: PATHS,
      root: INBOX,
      folderMode: () => 0o750,
      isAlone,
    });
  }

  /** Prepares a delivery, and returns its end: the end record, and the placing. */
  async prepare(record: TransferRecord, kind: Kind): Promise<() => Promise<void>> {
    const { round, end } = await this.rounds.current(nameOf(record));
    if (end !== undefined) return async () => {};
    const stage = await this.rounds.openStage({ ...record, round });
    const files = kind === "files" ? FILES : ["one"];
    for (const file of files) await this.#write(join(stage.folder, file), stage, file);
    const deliver = kind === "folder" ? "folder" : "files";
    const placement = await this.#plan(stage, record, kind);
    await this.disk.makeFolder(stage.beside, 0o700);
    for (const { from, name } of placement.phases.flat()) {
      if (from === "beside") await this.#write(join(stage.beside, name), stage, name);
    }
    await this.rounds.placing.write(stage, placement, "{}");
    await this.rounds.seal(stage);
    const folder = deliver === "files" ? "m" : `m/${placement.phases[placement.content]?.[0]?.as}`;
    const ended: EndRecord = {
      ...record,
      round,
      folder,
      state: "delivered",
      placement: deliver,
      token: stage.token,
    };
    return async () => {
      if (await this.rounds.endWith(stage, ended)) await this.rounds.place(ended, true);
      else await this.rounds.dropStage(stage);
      await this.rounds.dropTicket(ended);
    };
  }

  async deliver(record: TransferRecord, kind: Kind): Promise<void> {
    await (await this.prepare(record, kind))();
  }

  async #plan(stage: Stage, record: TransferRecord, kind: Kind): Promise<Placement> {
    const claim = async (name: string): Promise<string> => {
      for (let number = 1; ; number++) {
        const as = number === 1 ? `${record.trackingId}_${name}` : `${record.trackingId}_${name}-${number}`;
        if (await this.rounds.placing.claim(stage, [`m/${as}`], record)) return as;
      }
    };
    const part = async (from: Part["from"], name: string, asked = name): Promise<Part> => ({
      from,
      name,
      as: await claim(asked),
      identity: "",
    });
    if (kind === "folder") {
      const content = [await part("folder", "", "folder")];
      const [before, after] = [[await part("beside", "manifest")], [await part("beside", "done")]];
      return makePlacement({ deliver: kind, parent: "m" }, { before: [before], content, after: [after] });
    }
    const [content, after]: [Part[], Part[][]] = [[await part("file", "one")], []];
    if (kind === "files") {
      content.push(await part("file", "two"));
      after.push([await part("beside", "done")]);
    }
    after.push([await part("beside", "manifest")]);
    return makePlacement({ deliver: "files", parent: "m" }, { before: [], content, after });
  }

  async recover(): Promise<string | undefined> {
    let failed: string | undefined;
    const recovered = await this.rounds.recover((entry, error) => {
      // A worker may still write to a stage that recovery removes.
      if (systemCode(error) !== "ENOTEMPTY") failed ??= `recovery of ${entry} failed: ${error}`;
    });
    for (const { end } of recovered) await this.rounds.dropTicket(end);
    return failed;
  }

  async #write(path: string, { name, round, token }: Stage, part: string): Promise<void> {
    const file = await this.disk.create(path, 0o600);
    const written: Written = { name, round, token, part };
    await file.write(JSON.stringify(written));
    await file.sync();
    await file.close();
  }
}

interface Spec {
  readonly kind: Kind;
  readonly transfers: readonly TransferRecord[];
  readonly takes?: boolean;
  readonly isAlone?: boolean;
  readonly hasForeign?: boolean;
  workers(spawn: () => Process): Promise<readonly (readonly [string, Process, () => Promise<void>])[]>;
}

const recovery = (process: Process) => async () => void (await process.recover());

/** Ends the round, and leaves everything to recovery. */
async function endOnly(process: Process, record: TransferRecord, kind: Kind): Promise<void> {
  const { place } = process.rounds;
  process.rounds.place = async () => undefined;
  await process.deliver(record, kind);
  process.rounds.place = place;
}

const SCENARIOS: Readonly<Record<string, Spec>> = {
  "one delivery of single files, with a foreign file in its way": {
    kind: "files",
    transfers: [T1],
    hasForeign: true,
    async workers(spawn) {
      const a = spawn();
      return [["a", a, () => a.deliver(T1, "files")]];
    },
  },
  "one delivery of single files, and a consumer that takes them at once": {
    kind: "files",
    transfers: [T1],
    takes: true,
    async workers(spawn) {
      const a = spawn();
      return [["a", a, () => a.deliver(T1, "files")]];
    },
  },
  "two attempts that deliver single files, and a consumer that takes them at once": {
    kind: "files",
    transfers: [T1],
    takes: true,
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["a", a, await a.prepare(T1, "files")],
        ["b", b, await b.prepare(T1, "files")],
      ];
    },
  },
  "two recoveries of single files without working locks": {
    kind: "files",
    transfers: [T1],
    isAlone: true,
    async workers(spawn) {
      const [first, a, b] = [spawn(), spawn(), spawn()];
      await endOnly(first, T1, "files");
      return [
        ["a", a, recovery(a)],
        ["b", b, recovery(b)],
      ];
    },
  },
  "two recoveries of single files, and a consumer that takes them at once": {
    kind: "files",
    transfers: [T1],
    takes: true,
    async workers(spawn) {
      const [first, a, b] = [spawn(), spawn(), spawn()];
      await endOnly(first, T1, "files");
      return [
        ["a", a, recovery(a)],
        ["b", b, recovery(b)],
      ];
    },
  },
  "single files of one transfer for two mailboxes that share a folder": {
    kind: "few",
    transfers: [M1, M2],
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      const [first, second] = [await a.prepare(M1, "few"), await b.prepare(M2, "few")];
      return [
        ["a", a, first],
        ["b", b, second],
      ];
    },
  },
  "single files of two rounds": {
    kind: "few",
    transfers: [T1],
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      await endOnly(a, T1, "few");
      const { end } = await b.rounds.current(nameOf(T1));
      if (end !== undefined) await b.rounds.begin(nextRound(end));
      const second = await b.prepare(T1, "few");
      return [
        ["a", a, recovery(a)],
        ["b", b, second],
      ];
    },
  },
  "two attempts that deliver a folder with its manifest beside it": {
    kind: "folder",
    transfers: [T1],
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["a", a, await a.prepare(T1, "folder")],
        ["b", b, await b.prepare(T1, "folder")],
      ];
    },
  },
  "two recoveries of a folder with its manifest beside it, and a consumer that takes all of it": {
    kind: "folder",
    transfers: [T1],
    takes: true,
    async workers(spawn) {
      const [first, a, b] = [spawn(), spawn(), spawn()];
      await endOnly(first, T1, "folder");
      return [
        ["a", a, recovery(a)],
        ["b", b, recovery(b)],
      ];
    },
  },
};

test.each(Object.entries(SCENARIOS))(
  "%s",
  async (name, spec) => {
    expect(await findViolation(name, spec)).toBeUndefined();
  },
  TIMEOUT_MS,
);

async function findViolation(name: string, spec: Spec): Promise<string | undefined> {
  const { violation } = await explore(makeScenario(name, spec), LIMITS);
  return formatViolation(violation);
}

function makeScenario(name: string, spec: Spec): Scenario {
  const empty = makeWorkFolder();
  return {
    name,
    async start(gate: Gate): Promise<Run> {
      const disk = (await empty).copy();
      if (spec.hasForeign) await addForeign(disk);
      const processes: Process[] = [];
      const workers = await spec.workers(() => {
        const process = new Process(disk, gate, spec.isAlone ?? false);
        processes.push(process);
        return process;
      });
      return {
        disk,
        workers: workers.map(([name, process, run]) => ({ name, process: processes.indexOf(process), run })),
        outside: () => "",
        check: startChecks(disk, spec),
        react: () => consume(disk, spec),
        checkEnd: () => undefined,
        restart: (left, afterStep) => restart(left, spec, afterStep).catch((error) => `failed: ${error}`),
      };
    },
  };
}

async function addForeign(disk: ModelDisk, path = FOREIGN.path): Promise<void> {
  const file = await disk.create(path, 0o600);
  await file.write(FOREIGN.text);
  await file.sync();
  await file.close();
  await disk.syncFolder(FLAT);
}

async function restart(left: ModelDisk, spec: Spec, afterStep: () => void): Promise<string | undefined> {
  const check = startChecks(left, spec);
  let problem = check();
  consume(left, spec);
  const gate: Gate = async (_, step) => {
    const value = await step();
    problem ??= check();
    consume(left, spec);
    afterStep();
    return value;
  };
  const process = new Process(left, gate, spec.isAlone ?? false);
  problem ??= await process.recover();
  for (const record of spec.transfers) await process.deliver(record, spec.kind);
  problem ??= await process.recover();
  return problem ?? (await findUnfinished(left, spec, process.rounds));
}

/** Every part that is or was in the inbox. */
function visible(disk: ModelDisk): Written[] {
  const texts = [INBOX, TAKEN].flatMap((place) => [...disk.filesBelow(place).values()]);
  return texts.filter((text) => text !== FOREIGN.text).map((text) => parse(text) as Written);
}

const parsed = new Map<string, unknown>();

/** The same texts are looked at after each step. */
function parse(text = ""): unknown {
  const value = parsed.get(text) ?? JSON.parse(text || "{}");
  parsed.set(text, value);
  return value;
}

/** Checks that hold at any time. */
function startChecks(disk: ModelDisk, spec: Spec): () => string | undefined {
  let version = -1;
  return () => {
    if (version === disk.version) return undefined;
    version = disk.version;
    return findFlaw(disk, spec);
  };
}

function findFlaw(disk: ModelDisk, { kind, hasForeign }: Spec): string | undefined {
  if (hasForeign && disk.textOf(FOREIGN.path) !== FOREIGN.text) return "I5: a foreign file was replaced";
  const seen = new Set<string>();
  const parts = visible(disk);
  for (const { name, round, token, part } of parts) {
    if (part === undefined) return "I1: a file is visible before it is synced";
    const id = `${name}~${round} ${part}`;
    if (seen.has(id)) return `I2: ${id} was delivered twice`;
    seen.add(id);
    const end = parse(disk.textOf(PATHS.end(name, round))) as EndRecord;
    if (end.token !== token) return `I2: ${id} of ${token}, and the round ended with ${end.token}`;
  }
  for (const { name, round, part } of parts) {
    const missing = FOLLOWS[kind][part]?.find((other) => !seen.has(`${name}~${round} ${other}`));
    if (missing !== undefined) return `${part} is visible before ${missing}`;
  }
  return undefined;
}

/** The parts that must be visible before each part. */
const FOLLOWS: Readonly<Record<Kind, Readonly<Record<string, readonly string[]>>>> = {
  files: { done: FILES, manifest: [...FILES, "done"] },
  few: { manifest: ["one"] },
  folder: { one: ["manifest"], done: ["one", "manifest"] },
};

const PARTS: Readonly<Record<Kind, readonly string[]>> = {
  files: ["one", "two", "done", "manifest"],
  few: ["one", "manifest"],
  folder: ["manifest", "one", "done"],
};

async function findUnfinished(
  disk: ModelDisk,
  { transfers, kind }: Spec,
  rounds: Rounds,
): Promise<string | undefined> {
  const parts = visible(disk);
  for (const record of transfers) {
    const name = nameOf(record);
    const { round: last } = await rounds.current(name);
    for (let round = 1; round <= last; round++) {
      const found = parts.filter((it) => it.name === name && it.round === round).map(({ part }) => part);
      if (found.toSorted().join() !== PARTS[kind].toSorted().join())
        return `round ${round} has only ${found}`;
    }
  }
  for (const folder of [PATHS.staging, PATHS.names, PATHS.temporary]) {
    const left = disk.namesIn(folder);
    if (left.length > 0 && folder !== PATHS.temporary) return `${folder} still holds ${left}`;
  }
  return undefined;
}

/** The fastest possible consumer, whose moves survive every power cut. */
function consume(disk: ModelDisk, { takes }: Spec): void {
  if (!takes) return;
  for (const name of disk.namesIn(FLAT)) {
    void disk.rename(join(FLAT, name), join(TAKEN, `${disk.namesIn(TAKEN).length + 1}`));
    void disk.syncFolder(TAKEN);
  }
}

describe("a foreign entry that takes the name of a part after the end record", () => {
  const NAMES = {
    files: ["t1_one", "t1_two", "t1_done", "t1_manifest"],
    few: ["t1_one", "t1_manifest"],
    folder: ["t1_manifest", "t1_folder", "t1_done"],
  } as const;
  const cases = Object.entries(NAMES).flatMap(([kind, names]) =>
    names.map((name) => [kind as Kind, name] as const),
  );

  test.each(cases)(
    "stops a delivery of %s at %s until it is moved away, wherever a process crashes",
    async (kind, name) => {
      const foreign = `${FLAT}/${name}`;
      const spec: Spec = { kind, transfers: [T1], workers: async () => [] };
      let isCutShort = true;
      for (let steps = 0; isCutShort; steps++) {
        const disk = (await makeWorkFolder()).copy();
        const check = startChecks(disk, spec);
        const gate: Gate = async (_, step) => {
          const value = await step();
          expect([check(), disk.textOf(foreign)]).toEqual([undefined, FOREIGN.text]);
          return value;
        };
        await endOnly(new Process(disk, ungated, false), T1, kind);
        await addForeign(disk, foreign);
        isCutShort = await recoverUntil(disk, gate, steps);
        expect(await new Process(disk, gate, false).recover()).toContain(foreign);
        const { rounds } = new Process(disk, gate, false);
        const { end } = await rounds.current(nameOf(T1));
        if (end === undefined) throw new TypeError("the round has ended");
        await expect(rounds.place(end)).rejects.toMatchObject({
          code: "TARGET_TAKEN",
          message: expect.stringContaining(foreign),
        });
        expect(await rounds.isPlaced(end)).toBe(false);
        await disk.rename(foreign, "/foreign");
        const last = new Process(disk, ungated, false);
        expect(await last.recover()).toBeUndefined();
        expect(check()).toBeUndefined();
        expect(await findUnfinished(disk, spec, last.rounds)).toBeUndefined();
      }
    },
  );

  const ungated: Gate = (_, step) => step();

  /** A recovery that crashes after so many steps. Returns whether it did. */
  async function recoverUntil(disk: ModelDisk, gate: Gate, steps: number): Promise<boolean> {
    let taken = 0;
    const crashing: Gate = (label, step) => {
      if (taken++ >= steps) throw new Error("crashed");
      return gate(label, step);
    };
    await new Process(disk, crashing, false).recover().catch(() => {});
    return taken > steps;
  }
});

test(
  "of two deliveries that claim one name at the same time, one gets it",
  async () => {
    expect(await findSharedName(() => {})).toBeUndefined();
  },
  TIMEOUT_MS,
);

test(
  "a protocol without claims is found wrong",
  async () => {
    const without = (placing: Placing) => {
      placing.claims.take = async () => [];
    };
    expect(await findSharedName(without)).toBeDefined();
  },
  TIMEOUT_MS,
);

/** Two processes claim one name, which differs only in case, for two deliveries. */
async function findSharedName(mutate: (placing: Placing) => void): Promise<string | undefined> {
  const empty = makeWorkFolder();
  const scenario: Scenario = {
    name: "two claims of one name",
    async start(gate: Gate): Promise<Run> {
      const disk = (await empty).copy();
      const got: string[] = [];
      const workers = [M1, M2].map((record, process) => {
        const { placing } = new Process(disk, gate, false).rounds;
        mutate(placing);
        const id = { name: nameOf(record), round: 1 };
        const run = async () => {
          if (await placing.claim(id, [process === 0 ? "m/Name" : "m/name"], record))
            got.push(record.mailbox);
        };
        return { name: record.mailbox, process, run };
      });
      return {
        disk,
        workers,
        outside: () => got.join(),
        check: () => (got.length > 1 ? `I5: ${got} share a name` : undefined),
        react: () => {},
        checkEnd: () => (got.length === 0 ? "no delivery has the name" : undefined),
        restart: async () => undefined,
      };
    },
  };
  return formatViolation((await explore(scenario, LIMITS)).violation);
}
