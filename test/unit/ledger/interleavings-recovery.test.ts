/** I1 whole or nothing, I2 once: recovery and take-over beside an attempt that still lives. */
import { expect, test, vi } from "vitest";
import { systemCode } from "../../../src/base/faults.ts";
import type { EndRecord } from "../../../src/ledger/format.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import { findViolation, type LedgerSpec, makeScenario, T1 } from "../../support/ledger-run.ts";
import { explore, LIMITS } from "../../support/schedules.ts";

vi.mock("node:crypto", async (original) => ({
  ...(await original<typeof import("node:crypto")>()),
  randomBytes: (await import("../../support/predictable-bytes.ts")).predictableBytes,
}));

const TIMEOUT_MS = 1_800_000;

const RECOVERY: LedgerSpec = {
  async workers(spawn) {
    const [a, b] = [spawn(), spawn()];
    return [
      ["download", a, () => a.download(T1)],
      ["recovery", b, () => b.recoverBesideWorkers()],
    ];
  },
};

const SCENARIOS: Readonly<Record<string, LedgerSpec>> = {
  "a recovery beside a download, where locks do not work": { ...RECOVERY, isAlone: true },
  "two downloads, where locks do not work": {
    isAlone: true,
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      const [first, second] = [await a.downloadOnly(T1), await b.downloadOnly(T1)];
      return [
        ["download", a, first],
        ["download too", b, second],
      ];
    },
  },
  "two recoveries beside a download": {
    async workers(spawn) {
      const [a, b, c] = [spawn(), spawn(), spawn()];
      return [
        ["download", a, () => a.download(T1)],
        ["recovery", b, () => b.recoverBesideWorkers()],
        ["recovery too", c, () => c.recoverBesideWorkers()],
      ];
    },
  },
  "a recovery in the process of a download": {
    async workers(spawn) {
      const process = spawn();
      const deliver = await process.downloadOnly(T1);
      return [
        ["download", process, deliver],
        ["recovery", process, () => process.recoverBesideWorkers()],
      ];
    },
  },
  "a download that revokes another one": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["download", a, () => a.download(T1)],
        ["revoking", b, () => b.download(T1, { revokes: true })],
      ];
    },
  },
  "two downloads that revoke each other": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["revoking", a, () => a.download(T1, { revokes: true })],
        ["revoking too", b, () => b.download(T1, { revokes: true })],
      ];
    },
  },
  "a download that continues in its own stage, and one that revokes it": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      await a.downloadPart(T1);
      return [
        ["continued", a, () => a.download(T1)],
        ["revoking", b, () => b.download(T1, { revokes: true })],
      ];
    },
  },
};

test.each(Object.entries(SCENARIOS))(
  "%s: it is delivered once, and whole",
  { timeout: TIMEOUT_MS },
  async (name, spec) => {
    expect(await findViolation(name, spec)).toBeUndefined();
  },
);

test("a delivery that could not be placed is not written to by the next attempt of its process", {
  timeout: TIMEOUT_MS,
}, async () => {
  class Failing extends Rounds {
    #hasFailed = false;

    override async place(end: EndRecord, isDurable?: boolean): Promise<string | undefined> {
      if (this.#hasFailed) return super.place(end, isDurable);
      this.#hasFailed = true;
      throw Object.assign(new Error("EIO"), { code: "EIO" });
    }
  }
  const spec: LedgerSpec = {
    async workers(spawn) {
      const process = spawn();
      const deliver = await process.downloadOnly(T1);
      return [
        ["failing", process, () => deliver().catch(unlessFailed)],
        ["next", process, () => process.download(T1).catch(unlessFailed)],
      ];
    },
  };
  const limits = { ...LIMITS, crashes: 0 };
  const name = "a delivery that could not be placed, and the next attempt";
  expect(await findViolation(name, spec, limits, Failing)).toBeUndefined();
});

test("a second power cut during a restart does no harm", { timeout: TIMEOUT_MS }, async () => {
  const limits = { ...LIMITS, cutsRestarts: true };
  expect(
    await findViolation("a recovery beside a download, two power cuts", RECOVERY, limits),
  ).toBeUndefined();
});

test("the exploration misses no state by stopping runs early", { timeout: TIMEOUT_MS }, async () => {
  const scenario = makeScenario("a recovery beside a download, one preemption", RECOVERY);
  const limits = { preemptions: 1, crashes: 1 };
  const { states, restarts } = await explore(scenario, limits);
  expect(await explore(scenario, { ...limits, isExhaustive: true })).toMatchObject({ states, restarts });
});

function unlessFailed(error: unknown): void {
  if (systemCode(error) !== "EIO") throw error;
}
