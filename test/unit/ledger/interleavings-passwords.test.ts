/** I3 no burnt transfers: two mailboxes share the attempts at one transfer. */
import { expect, test, vi } from "vitest";
import { systemCode } from "../../../src/base/faults.ts";
import { FileAttempts } from "../../../src/ledger/attempts.ts";
import { nameOf } from "../../../src/ledger/paths.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import type { ModelDisk } from "../../support/model-disk.ts";
import { INBOX, M1, M2, makeWorkFolder, PATHS } from "../../support/model-ledger.ts";
import {
  explore,
  formatViolation,
  type Gate,
  GatedDisk,
  LIMITS,
  type Scenario,
} from "../../support/schedules.ts";

vi.mock("node:crypto", async (original) => ({
  ...(await original<typeof import("node:crypto")>()),
  randomBytes: (await import("../../support/predictable-bytes.ts")).predictableBytes,
}));

const BUDGET = 2;
const OF = { serviceId: "https://service.example", trackingId: "t1" };
const RIGHT = "right";
const AT = "2026-03-01T08:00:00.000Z";
const TIMEOUT_MS = 1_800_000;

/** The service. Notes a problem where passwords reach it that should not. */
class Service {
  /** Refused passwords, with the mailbox that sent them. */
  readonly refused: (readonly [mailbox: string, password: string])[] = [];
  problem: string | undefined;

  /** `known`: refused passwords that were durable when the sender looked for them. */
  send(disk: ModelDisk, record: TransferRecord, password: string, known: readonly string[]): boolean {
    if (known.includes(password)) this.problem ??= `I3: ${password} is sent again`;
    if (password === RIGHT) return true;
    this.refused.push([nameOf(record), password]);
    // Attempts of a mailbox whose round was delivered do not count.
    const counted = this.refused.filter(([name]) => disk.textOf(PATHS.end(name, 1)) === undefined);
    if (counted.length > BUDGET) this.problem ??= `I3: ${counted.length} wrong passwords: ${counted}`;
    return false;
  }

  copy(): Service {
    const copy = new Service();
    copy.refused.push(...this.refused);
    return copy;
  }
}

/** A process that tries passwords for one mailbox. */
class Prover {
  /** Refused passwords that were durable when it looked last. */
  known: readonly string[] = [];
  readonly #model: ModelDisk;
  readonly #gate: Gate;
  readonly #service: Service;
  readonly #rounds: Rounds;
  readonly #attempts: FileAttempts;

  constructor(model: ModelDisk, disk: GatedDisk, gate: Gate, service: Service) {
    this.#model = model;
    this.#gate = gate;
    this.#service = service;
    this.#rounds = new Rounds({ disk, paths: PATHS, root: INBOX, folderMode: () => 0o750 });
    this.#attempts = new FileAttempts(this.#rounds);
  }

  /** Tries one after the other. After the right one, the transfer is delivered. */
  async tryAll(record: TransferRecord, passwords: readonly string[]): Promise<void> {
    for (const password of passwords) {
      if (!(await this.#try(record, password))) continue;
      await this.#rounds.end({ ...record, state: "delivered" });
      return;
    }
  }

  async #try(record: TransferRecord, password: string): Promise<boolean> {
    const owner = { name: nameOf(record), round: 1, at: AT };
    const slot = await this.#attempts.take(OF, owner, BUDGET);
    if (slot === undefined) return false;
    this.known = durableFingerprints(this.#model);
    const { spent, fingerprints } = await slot.others();
    if (spent >= BUDGET || fingerprints.includes(password)) {
      await slot.giveBack();
      return false;
    }
    const isAccepted = await this.#gate(`send ${password}`, async () =>
      this.#service.send(this.#model, record, password, this.known),
    );
    if (isAccepted) await slot.giveBack();
    else await slot.refused(password);
    return isAccepted;
  }
}

function durableFingerprints(model: ModelDisk): string[] {
  const slots = model.powerCut().textsIn(PATHS.attempts).values();
  return slots.flatMap((text) => (text === "" ? [] : [JSON.parse(text).fingerprint])).toArray();
}

type Passwords = readonly [ofFirst: readonly string[], ofSecond: readonly string[]];

function makeScenario(name: string, passwords: Passwords, kind: typeof GatedDisk = GatedDisk): Scenario {
  return {
    name,
    async start(gate) {
      const disk = makeWorkFolder();
      const service = new Service();
      const provers = [M1, M2].map(() => new Prover(disk, new kind(disk, gate), gate, service));
      const workers = provers.map((prover, process) => ({
        name: ["first", "second"][process] ?? "",
        process,
        run: () => prover.tryAll(process === 0 ? M1 : M2, passwords[process] ?? []),
      }));
      return {
        disk,
        workers,
        outside: () => JSON.stringify([service.refused, provers.map(({ known }) => known)]),
        check: () => service.problem,
        checkEnd: () => (disk.textsIn(PATHS.temporary).size > 0 ? "left over in new" : undefined),
        restart: (left) => restart(left, service.copy()),
      };
    },
  };
}

/** Both mailboxes try everything that there is. */
async function restart(left: ModelDisk, service: Service): Promise<string | undefined> {
  const gate: Gate = (_, step) => step();
  const prover = new Prover(left, new GatedDisk(left, gate), gate, service);
  for (const record of [M1, M2, M1]) await prover.tryAll(record, ["p1", "p2", "p3", "p4", "p5"]);
  return service.problem;
}

test.each<[string, Passwords]>([
  [
    "two mailboxes with wrong passwords",
    [
      ["p1", "p2"],
      ["p1", "p3"],
    ],
  ],
  [
    "two mailboxes, one of which finds the right password",
    [
      ["p1", RIGHT],
      ["p2", "p3", "p4"],
    ],
  ],
])("%s: no more than the budget is spent", { timeout: TIMEOUT_MS }, async (name, passwords) => {
  const { violation } = await explore(makeScenario(name, passwords));
  expect(formatViolation(violation)).toBeUndefined();
});

test("a slot that is not synced before the password is sent is found", async () => {
  class Forgetful extends GatedDisk {
    override syncFolder(path: string): Promise<void> {
      return path === PATHS.attempts ? Promise.resolve() : super.syncFolder(path);
    }
  }
  await expectFound(Forgetful, "hole: a slot that is not synced before the password is sent");
});

test("a slot that is taken by looking first and writing then is found", async () => {
  class Looking extends GatedDisk {
    override async create(path: string, mode: number) {
      if (!path.startsWith(PATHS.attempts)) return super.create(path, mode);
      const isTaken = (await this.kindOf(path)) !== undefined;
      if (isTaken) throw Object.assign(new Error("taken"), { code: "EEXIST" });
      return super.create(path, mode).catch((error: unknown) => {
        if (systemCode(error) !== "EEXIST") throw error;
        return this.truncate(path);
      });
    }
  }
  await expectFound(Looking, "hole: a slot that is taken by looking first and writing then");
});

async function expectFound(kind: typeof GatedDisk, name: string): Promise<void> {
  const { violation } = await explore(
    makeScenario(
      name,
      [
        ["p1", "p2"],
        ["p3", "p4"],
      ],
      kind,
    ),
    LIMITS,
  );
  expect(formatViolation(violation)).toContain("I3: 3 wrong passwords");
}
