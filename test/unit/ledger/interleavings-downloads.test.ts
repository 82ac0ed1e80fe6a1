/** I1 whole or nothing, I2 once: downloads that run at the same time, in every order, with crashes and power cuts. */
import { expect, test, vi } from "vitest";
import { findViolation, type LedgerSpec, T1, T2 } from "../../support/ledger-run.ts";
import { LIMITS } from "../../support/schedules.ts";

vi.mock("node:crypto", async (original) => ({
  ...(await original<typeof import("node:crypto")>()),
  randomBytes: (await import("../../support/predictable-bytes.ts")).predictableBytes,
}));

const TIMEOUT_MS = 1_800_000;

const SCENARIOS: Readonly<Record<string, LedgerSpec>> = {
  "two downloads of one transfer": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["a", a, () => a.download(T1)],
        ["b", b, () => b.download(T1)],
      ];
    },
  },
  "two downloads of one transfer, and a consumer that takes it at once": {
    consumer: "takes",
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["a", a, () => a.download(T1)],
        ["b", b, () => b.download(T1)],
      ];
    },
  },
  "two downloads of one transfer, and a consumer that also removes the folder above": {
    consumer: "tidies",
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      const [first, second] = [await a.downloadOnly(T1), await b.downloadOnly(T1)];
      return [
        ["a", a, first],
        ["b", b, second],
      ];
    },
  },
  "two downloads of one transfer, below a folder that does not exist yet": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["a", a, () => a.download(T1, { folder: "new/F" })],
        ["b", b, () => b.download(T1, { folder: "new/F" })],
      ];
    },
  },
  "two downloads of one transfer in one process": {
    async workers(spawn) {
      const process = spawn();
      const [first, second] = [await process.downloadOnly(T1), await process.downloadOnly(T1)];
      return [
        ["a", process, first],
        ["b", process, second],
      ];
    },
  },
  "a download that is delivered, and another that is quarantined": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["a", a, () => a.download(T1)],
        ["b", b, () => b.download(T1, { state: "quarantined" })],
      ];
    },
  },
  "two transfers that belong in one folder": {
    transfers: [T1, T2],
    expected: ["m/F", "m/F-2"],
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["a", a, () => a.download(T1)],
        ["b", b, () => b.download(T2)],
      ];
    },
  },
  "two transfers that belong in one folder, in one process": {
    transfers: [T1, T2],
    expected: ["m/F", "m/F-2"],
    async workers(spawn) {
      const process = spawn();
      const [first, second] = [await process.downloadOnly(T1), await process.downloadOnly(T2)];
      return [
        ["a", process, first],
        ["b", process, second],
      ];
    },
  },
};

test.each(Object.entries(SCENARIOS))(
  "%s: each is delivered once, and whole",
  { timeout: TIMEOUT_MS },
  async (name, spec) => {
    expect(await findViolation(name, spec)).toBeUndefined();
  },
);

test("three downloads of one transfer: it is delivered once, and whole", {
  timeout: TIMEOUT_MS,
}, async () => {
  const spec: LedgerSpec = {
    async workers(spawn) {
      const [a, b, c] = [spawn(), spawn(), spawn()];
      const [first, second, third] = [
        await a.downloadOnly(T1),
        await b.downloadOnly(T1),
        await c.downloadOnly(T1),
      ];
      return [
        ["a", a, first],
        ["b", b, second],
        ["c", c, third],
      ];
    },
  };
  // Three workers have many schedules: crashes among them are left to long explorations.
  const limits = LIMITS.preemptions > 2 ? LIMITS : { ...LIMITS, crashes: 0 };
  expect(await findViolation("three downloads of one transfer", spec, limits)).toBeUndefined();
});
