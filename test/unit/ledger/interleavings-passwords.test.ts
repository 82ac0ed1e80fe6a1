/** I3 no burnt transfers: two mailboxes share the attempts at one transfer, in random schedules with a kill or a power cut. */
import { expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { systemCode } from "../../../src/base/faults.ts";
import { FileAttempts, parseSlot } from "../../../src/ledger/attempts.ts";
import { ledgerPaths, nameOf } from "../../../src/ledger/paths.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { makeRecord } from "../../support/record.ts";
import { oneIn } from "../../support/thorough.ts";
import { SimulatedDisk } from "../../world/ground/disk.ts";
import { type Ground, Process, START_MS } from "../../world/ground/process.ts";
import { Random } from "../../world/ground/random.ts";
import { Schedule } from "../../world/ground/schedule.ts";

const PATHS = ledgerPaths("/work");
const FIRST = makeRecord({ mailbox: "one@example.org" });
const SECOND = makeRecord({ mailbox: "two@example.org" });
const BUDGET = 2;
const RIGHT = "right";
const ALL = ["p1", "p2", "p3", "p4", "p5"];
const RUNS = 10_000 / oneIn(20);
/** More than a process makes. */
const MANY_STEPS = 80;
const MINUTE_MS = 60_000;

/** The service. Notes a problem where passwords reach it that should not. */
class Service {
  /** Refused passwords, with the mailbox that sent them. */
  readonly #refused: (readonly [mailbox: string, password: string])[] = [];
  readonly #disk: SimulatedDisk;
  problem: string | undefined;

  constructor(disk: SimulatedDisk) {
    this.#disk = disk;
  }

  /** `known`: refused passwords that were durable when the sender looked for them. */
  send(record: TransferRecord, password: string, known: readonly string[]): boolean {
    if (known.includes(password)) this.problem ??= `I3: ${password} is sent again`;
    if (password === RIGHT) return true;
    this.#refused.push([nameOf(record), password]);
    this.check();
    return false;
  }

  /** Attempts of a mailbox whose round was delivered do not count. */
  check(): void {
    const counted = this.#refused.filter(([name]) => this.#disk.text(PATHS.end(name, 1)) === undefined);
    if (counted.length > BUDGET) this.problem ??= `I3: ${counted.length} wrong passwords: ${counted}`;
  }
}

/** What a run shares. `disk`: through which the processes see the machine's. */
interface Play {
  readonly ground: Ground;
  readonly service: Service;
  readonly disk: Disk;
}

/** Tries passwords for one mailbox, one after the other. After the right one, the transfer is delivered. */
async function tryAll({ ground, service, disk }: Play, record: TransferRecord, passwords: readonly string[]) {
  const rounds = new Rounds({ disk, paths: PATHS, root: "/inbox", folderMode: () => 0o750 });
  const attempts = new FileAttempts(rounds);
  const owner = { name: nameOf(record), round: 1, at: "2026-03-01T08:00:00.000Z" };
  for (const password of passwords) {
    const slot = await attempts.take(FIRST.trackingId, owner, BUDGET);
    if (slot === undefined) continue;
    const known = durableFingerprints(ground.disk);
    const { spent, fingerprints } = await slot.others();
    if (spent >= BUDGET || fingerprints.includes(password)) {
      await slot.giveBack();
      continue;
    }
    if (!service.send(record, password, known)) {
      await slot.refused(password);
      continue;
    }
    await slot.giveBack();
    await rounds.end({ ...record, state: "delivered" });
    return;
  }
}

function durableFingerprints(disk: SimulatedDisk): string[] {
  const slots = [...disk.folder(PATHS.slots).durableEntries.values()];
  return slots.flatMap((slot) => {
    const text = slot.kind === "file" ? slot.durableBytes.toString() : "";
    return parseSlot(text).fingerprint ?? [];
  });
}

type Passwords = readonly [ofFirst: readonly string[], ofSecond: readonly string[]];

/** One schedule. Afterwards, another process tries everything for both mailboxes. Returns the first problem. */
async function play(seed: number, passwords: Passwords, system: Disk): Promise<string | undefined> {
  const random = new Random(seed);
  const schedule = new Schedule(START_MS);
  const disk = new SimulatedDisk(() => schedule.nowMs);
  const folders = [...PATHS.folders(), ...[FIRST, SECOND].map((key) => PATHS.ledgerFolder(nameOf(key)))];
  for (const folder of folders) disk.prepare(folder, 0o700, 0);
  const unused = () => Promise.reject(new Error("no program and no request runs here"));
  const ground: Ground = {
    ...{ schedule, disk, random, areLocksBroken: false, locks: new Map(), watches: new Set() },
    ...{ disturb: () => 0, runProgram: unused, post: unused },
  };
  const service = new Service(disk);
  const start = (process: Process, work: () => Promise<void>) =>
    void process.run(work).catch((error: unknown) => {
      service.problem ??= `failed: ${error}`;
    });
  const processes = [FIRST, SECOND].map((record, at) => {
    const process = new Process(record.mailbox, ground);
    start(process, () => tryAll({ ground, service, disk: system }, record, passwords[at] ?? []));
    return process;
  });
  const end = random.pick(["undisturbed", "killed", "power cut"]);
  for (const process of end === "undisturbed" ? [] : processes) process.stepsToLive = random.int(MANY_STEPS);
  await schedule.run(START_MS + MINUTE_MS);
  if (end === "power cut") disk.powerCut(random);
  service.check();
  const isLeftOver = disk.names(PATHS.temporary).length > 0;
  if (end === "undisturbed" && isLeftOver) service.problem ??= "left over in new";
  start(new Process("last", ground), async () => {
    for (const record of [FIRST, SECOND, FIRST]) {
      await tryAll({ ground, service, disk: systemDisk }, record, ALL);
    }
  });
  await schedule.run(START_MS + 2 * MINUTE_MS);
  return service.problem;
}

async function findProblem(passwords: Passwords, system: Disk = systemDisk): Promise<string | undefined> {
  for (let seed = 1; seed <= RUNS; seed++) {
    const problem = await play(seed, passwords, system);
    if (problem !== undefined) return `${problem} (seed ${seed})`;
  }
  return undefined;
}

const WRONG: Passwords = [
  ["p1", "p2"],
  ["p1", "p3"],
];

test.each<[string, Passwords]>([
  ["with wrong passwords", WRONG],
  ["one of which finds the right password", [["p1", RIGHT], ALL.slice(1, 4)]],
])("two mailboxes, %s: no more than the budget is spent", { timeout: 300_000 }, async (_, passwords) => {
  expect(await findProblem(passwords)).toBeUndefined();
});

test("a slot that is not synced before the password is sent is found", async () => {
  const forgetful: Disk = {
    ...systemDisk,
    syncFolder: async (path) => (path === PATHS.slots ? undefined : systemDisk.syncFolder(path)),
  };
  expect(await findProblem(WRONG, forgetful)).toContain("I3: 3 wrong passwords");
});

test("a slot that is taken by looking first and writing then is found", async () => {
  const looking: Disk = {
    ...systemDisk,
    async create(path, mode) {
      if (!path.startsWith(PATHS.slots)) return systemDisk.create(path, mode);
      const isTaken = (await systemDisk.kindOf(path)) !== undefined;
      if (isTaken) throw Object.assign(new Error("taken"), { code: "EEXIST" });
      return systemDisk.create(path, mode).catch((error: unknown) => {
        if (systemCode(error) !== "EEXIST") throw error;
        return systemDisk.truncate(path);
      });
    },
  };
  expect(await findProblem(WRONG, looking)).toContain("I3: ");
});
