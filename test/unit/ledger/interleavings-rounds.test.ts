/** I2 once, I7 nothing silent: orders and listings that begin and end rounds while downloads run. */
import { expect, test, vi } from "vitest";
import { DISCARDED } from "../../../src/model/record.ts";
import { findViolation, type LedgerSpec, T1 } from "../../support/ledger-run.ts";

vi.mock("node:crypto", async (original) => ({
  ...(await original<typeof import("node:crypto")>()),
  randomBytes: (await import("../../support/predictable-bytes.ts")).predictableBytes,
}));

const TIMEOUT_MS = 1_800_000;

const SCENARIOS: Readonly<Record<string, LedgerSpec>> = {
  "a download against discard": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      return [
        ["download", a, () => a.download(T1)],
        ["discard", b, () => b.endAsGone(T1, DISCARDED)],
      ];
    },
  },
  "a download against discard, and a recovery": {
    async workers(spawn) {
      const [a, b, c] = [spawn(), spawn(), spawn()];
      return [
        ["download", a, () => a.download(T1)],
        ["discard", b, () => b.endAsGone(T1, DISCARDED)],
        ["recovery", c, () => c.recoverBesideWorkers()],
      ];
    },
  },
  "a download against gone, and a new listing": {
    async workers(spawn) {
      const [a, b, c] = [spawn(), spawn(), spawn()];
      const late = await a.downloadOnly(T1);
      return [
        ["late", a, late],
        ["gone", b, () => b.endAsGone(T1, "expired")],
        ["listed", c, () => c.beginNext(T1, "gone")],
      ];
    },
  },
  "gone, and listed again by two": {
    async workers(spawn) {
      const [a, b, c] = [spawn(), spawn(), spawn()];
      return [
        ["gone", a, () => a.endAsGone(T1, "expired")],
        ["listed", b, () => b.beginNext(T1, "gone")],
        ["listed too", c, () => c.beginNext(T1, "gone")],
      ];
    },
  },
  "two retries of a transfer that is gone, and a late worker": {
    async workers(spawn) {
      const [a, b, c] = [spawn(), spawn(), spawn()];
      const late = await a.downloadOnly(T1);
      await b.endAsGone(T1, "expired");
      return [
        ["late", a, late],
        ["retry", b, () => b.beginNext(T1, "gone", "quarantined")],
        ["retry too", c, () => c.beginNext(T1, "gone", "quarantined")],
      ];
    },
  },
  "a retry and a download of a transfer in quarantine, and a late worker": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      const late = await a.downloadOnly(T1);
      await b.download(T1, { state: "quarantined" });
      return [
        ["late", a, late],
        ["retry", b, () => b.beginNext(T1, "gone", "quarantined").then(() => b.download(T1))],
      ];
    },
  },
  "redeliver and a download, and a late worker": {
    async workers(spawn) {
      const [a, b] = [spawn(), spawn()];
      const late = await a.downloadOnly(T1);
      await b.download(T1);
      return [
        ["late", a, late],
        ["redeliver", b, () => b.beginNext(T1, "delivered").then(() => b.download(T1))],
      ];
    },
  },
  "redeliver twice, while the delivery is placed": {
    async workers(spawn) {
      const [a, b, c] = [spawn(), spawn(), spawn()];
      const deliver = await a.downloadOnly(T1);
      return [
        ["download", a, deliver],
        ["redeliver", b, () => b.beginNext(T1, "delivered")],
        ["redeliver too", c, () => c.beginNext(T1, "delivered")],
      ];
    },
  },
};

test.each(Object.entries(SCENARIOS))(
  "%s: each round ends once, and is delivered at most once",
  { timeout: TIMEOUT_MS },
  async (name, spec) => {
    expect(await findViolation(name, spec)).toBeUndefined();
  },
);
