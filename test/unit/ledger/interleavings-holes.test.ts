/** The exploration finds holes that an earlier protocol had, and others that are easy to make. */
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { type Disk, FolderSyncs, tryUnlink } from "../../../src/base/disk.ts";
import type { EndRecord } from "../../../src/ledger/format.ts";
import { parseStaged, type StageId } from "../../../src/ledger/paths.ts";
import type { Stage } from "../../../src/ledger/port.ts";
import { type Recovered, Rounds, type RoundsOptions } from "../../../src/ledger/rounds.ts";
import type { TransferRecord } from "../../../src/model/record.ts";
import { findViolation, type LedgerSpec, PATHS, T1, T2 } from "../../support/ledger-run.ts";
import { LIMITS } from "../../support/schedules.ts";

vi.mock("node:crypto", async (original) => ({
  ...(await original<typeof import("node:crypto")>()),
  randomBytes: (await import("../../support/predictable-bytes.ts")).predictableBytes,
}));

class OpenRounds extends Rounds {
  protected readonly disk: Disk;

  constructor(options: RoundsOptions) {
    super(options);
    this.disk = options.disk;
  }
}

const DOWNLOAD_AND_LATE: LedgerSpec = {
  async workers(spawn) {
    const [a, b] = [spawn(), spawn()];
    const late = await a.downloadOnly(T1);
    return [
      ["late", a, late],
      ["download", b, () => b.download(T1, { revokes: true })],
    ];
  },
};

const TWO_DOWNLOADS: LedgerSpec = {
  async workers(spawn) {
    const [a, b] = [spawn(), spawn()];
    return [
      ["a", a, () => a.download(T1)],
      ["b", b, () => b.download(T1)],
    ];
  },
};

const GONE: LedgerSpec = {
  async workers(spawn) {
    const [a, b] = [spawn(), spawn()];
    return [
      ["download", a, () => a.download(T1)],
      ["gone", b, () => b.endAsGone(T1, "expired")],
    ];
  },
};

const RECOVERY: LedgerSpec = {
  async workers(spawn) {
    const [a, b] = [spawn(), spawn()];
    return [
      ["download", a, () => a.download(T1)],
      ["recovery", b, () => b.recoverBesideWorkers()],
    ];
  },
};

const ONE_PROCESS: LedgerSpec = {
  transfers: [T1, T2],
  async workers(spawn) {
    const process = spawn();
    return [
      ["a", process, () => process.download(T1)],
      ["b", process, () => process.download(T2)],
    ];
  },
};

test("an attempt that takes another one's folder over by a rename", async () => {
  class Adopting extends OpenRounds {
    override async openStage(key: TransferRecord): Promise<Stage> {
      const stage = await super.openStage(key);
      const [other] = await this.otherStages(stage);
      if (other !== undefined) await this.disk.rename(PATHS.staged(other), stage.folder);
      return stage;
    }

    override async revoke(): Promise<void> {}
  }
  await expectFound(Adopting, DOWNLOAD_AND_LATE, "I2: round 1 is delivered, and not in the inbox");
});

test("an attempt that replaces the end record of another one", async () => {
  class Replacing extends OpenRounds {
    override async endWith(stage: Stage, record: TransferRecord): Promise<boolean> {
      if (await super.endWith(stage, record)) return true;
      await tryUnlink(this.disk, PATHS.end(stage.name, stage.round));
      return super.endWith(stage, record);
    }
  }
  await expectFound(Replacing, GONE, "has changed");
});

test("an attempt that has lost, and delivers all the same", async () => {
  class Stubborn extends Rounds {
    override async endWith(stage: Stage, record: TransferRecord): Promise<boolean> {
      await super.endWith(stage, record);
      return true;
    }
  }
  await expectFound(Stubborn, TWO_DOWNLOADS, "I2: ");
});

test("an attempt that writes in the folder of another one", async () => {
  class Intruding extends OpenRounds {
    override async openStage(key: TransferRecord): Promise<Stage> {
      const stage = await super.openStage(key);
      for (const other of await this.otherStages(stage)) {
        const file = await this.disk.truncate(join(PATHS.staged(other), "one.txt")).catch(() => undefined);
        await file?.write(`one.txt of ${stage.token}`);
        await file?.sync();
      }
      return stage;
    }
  }
  await expectFound(Intruding, TWO_DOWNLOADS, "I1: ");
});

test("a delivery that is placed before its record is durable", async () => {
  class Hasty extends Rounds {
    override place(end: EndRecord): Promise<string | undefined> {
      return super.place(end, true);
    }
  }
  await expectFound(Hasty, RECOVERY, "I2: delivered, and round 1 is open");
});

test("a recovery that removes the stages of open rounds", async () => {
  class Sweeping extends OpenRounds {
    override async recover(onFailed: (entry: string, error: unknown) => void): Promise<Recovered[]> {
      for (const id of (await this.disk.list(PATHS.staging)).map(parseStaged)) {
        if (id === undefined || (await this.readEnd(id.name, id.round)) !== undefined) continue;
        await tryUnlink(this.disk, PATHS.ticket(id));
        await this.disk.removeTree(PATHS.staged(id));
      }
      return super.recover(onFailed);
    }
  }
  await expectFound(Sweeping, RECOVERY, "I1: ");
});

test("a revocation that leaves the ticket", async () => {
  class Lenient extends OpenRounds {
    override async revoke(id: StageId): Promise<void> {
      const end = await this.readEnd(id.name, id.round);
      if (end?.token === id.token) await this.place(end);
      else await this.disk.removeTree(PATHS.staged(id));
    }
  }
  await expectFound(Lenient, DOWNLOAD_AND_LATE, "I2: round 1 is delivered, and not in the inbox");
});

test("a seal that does not sync the folder of all stages", async () => {
  class Unsealed extends Rounds {
    override seal({ folder }: Stage): Promise<void> {
      return this.syncs.sync(folder);
    }
  }
  await expectFound(Unsealed, TWO_DOWNLOADS, "I2: round 1 is delivered, and not in the inbox");
});

test("a folder sync that also serves callers who came after it began", async () => {
  class Joining extends FolderSyncs {
    readonly #running = new Map<string, Promise<void>>();

    override sync(folder: string): Promise<void> {
      const running = this.#running.get(folder) ?? super.sync(folder);
      this.#running.set(folder, running);
      return running.finally(() => this.#running.delete(folder));
    }
  }
  class Sharing extends Rounds {
    override readonly syncs: FolderSyncs;

    constructor(options: RoundsOptions) {
      super(options);
      this.syncs = new Joining(options.disk);
    }
  }
  await expectFound(Sharing, ONE_PROCESS, "I2: ");
});

async function expectFound(kind: typeof Rounds, spec: LedgerSpec, problem: string): Promise<void> {
  const name = `hole: ${expect.getState().currentTestName}`;
  expect(await findViolation(name, spec, LIMITS, kind)).toContain(problem);
}
