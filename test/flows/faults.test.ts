/** Every misbehaviour of a service ends delivered, or in a state with a reason, within bounded attempts. */

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FaultPlan, FilePlan } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { forEachLimit } from "../../src/base/concurrency.ts";
import type { MailboxSettings } from "../../src/config/settings.ts";
import { ledgerPaths } from "../../src/ledger/paths.ts";
import { peekStatus } from "../../src/operate/status.ts";
import { daemonSettings, readTree, runOnce, startDaemon, type TestDaemon } from "../support/daemon.ts";
import { readRecords } from "../support/ledger.ts";
import { openMailbox, openTransfer, order, startAndDeliver } from "../support/one-mailbox.ts";
import { openWitness } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { mailboxSettings, pageSettings } from "../support/settings.ts";

const FILES: FilePlan[] = [
  { name: "large.bin", generate: { bytes: 2_000_000 } },
  { name: "small.txt", text: "Hello" },
];

const AT_ONCE = 4;

/** Each on its own service: after an unclear verdict no password goes to other transfers of the service. */
const ALONE: readonly FaultPlan[] = [
  { on: "info", does: { kind: "reset" } },
  { on: "info", does: { kind: "stall" } },
  { on: "info", does: { kind: "body", text: "{" } },
  // More locks than attempts.
  { on: "info", times: 4, does: { kind: "error", status: 403, errorCode: 2005 } },
  ...[401, 403, 504, 200].map((status) => ({ on: "info", does: { kind: "html", status } }) as const),
  { on: "received", does: { kind: "reset" } },
  { on: "received", does: { kind: "html" } },
  { on: "received", does: { kind: "error", status: 429, retryAfter: "0" } },
  { on: "received", does: { kind: "truncate", afterBytes: 20 } },
  { on: "received", does: { kind: "repeat", entries: 1 } },
  { on: "received", does: { kind: "shift", by: -1 } },
  { on: "verification-token", does: { kind: "error", status: 500 } },
];

const OF_TRANSFERS: readonly FaultPlan[] = [
  { on: "info", does: { kind: "error", status: 503 } },
  { on: "info", does: { kind: "drip", bytes: 20, pauseMs: 5 } },
  { on: "files", does: { kind: "reset", afterBytes: 10 } },
  { on: "files", does: { kind: "alter", path: "data.0.size", value: "x" } },
  { on: "files", does: { kind: "omit", headers: ["content-type"] } },
  { on: "checksums", does: { kind: "error", status: 500 } },
  { on: "checksums", does: { kind: "reset", afterBytes: 10 } },
  { on: "file", does: { kind: "reset" } },
  { on: "file", does: { kind: "reset", afterBytes: 500_000 } },
  { on: "file", does: { kind: "stall", afterBytes: 500_000 } },
  { on: "file", does: { kind: "truncate", afterBytes: 500_000, announce: true } },
  { on: "file", does: { kind: "truncate", afterBytes: 3 } },
  { on: "file", does: { kind: "lengthen", bytes: 10 } },
  { on: "file", does: { kind: "corrupt", at: 3 } },
  { on: "file", does: { kind: "error", status: 502 } },
  { on: "file", does: { kind: "html" } },
  { on: "file", does: { kind: "encoding", encoding: "gzip" } },
  { on: "file", does: { kind: "omit", headers: ["content-length", "etag"] } },
  { on: "file", does: { kind: "drip", bytes: 50_000, pauseMs: 1 } },
  { on: "file", does: { kind: "change-etag" } },
  { on: "eml", does: { kind: "error", status: 500 } },
];

const OF_ZIPS: readonly FaultPlan[] = [
  { on: "zip", does: { kind: "reset" } },
  { on: "zip", does: { kind: "reset", afterBytes: 500_000 } },
  { on: "zip", does: { kind: "stall", afterBytes: 500_000 } },
  { on: "zip", does: { kind: "truncate", afterBytes: 500_000 } },
  { on: "zip", does: { kind: "truncate", afterBytes: 500_000, announce: true } },
  { on: "zip", does: { kind: "lengthen", bytes: 10 } },
  { on: "zip", does: { kind: "corrupt", at: 300_000 } },
  { on: "zip", does: { kind: "error", status: 500 } },
  { on: "zip", does: { kind: "html" } },
  { on: "zip", does: { kind: "body", text: "" } },
  { on: "zip", does: { kind: "omit", headers: ["content-length"] } },
  { on: "zip", does: { kind: "drip", bytes: 100_000, pauseMs: 1 } },
];

describe("a passing failure does not prevent the delivery", () => {
  test("of a list, a token or the first request, once", async () => {
    await forEachLimit(ALONE, AT_ONCE, async (fault) => {
      const transfers = [transferPlan({ trackingId: "t1" })];
      const simulator = await openTestSimulator({ transfers, faults: [fault] });
      const daemon = await startAndDeliver(await daemonSettings([impatient(simulator)]));
      expect([fault, deliveredBy(daemon)]).toEqual([fault, ["t1"]]);
    });
  });

  test.each([
    ["file", OF_TRANSFERS],
    ["zip", OF_ZIPS],
  ] as const)("of a transfer by %s, once, with one transfer for each failure", async (fetch, failures) => {
    const names = failures.map(
      ({ on, does }) => `${on} ${does.kind} ${Object.values(does).slice(1).join(" ")}`,
    );
    const faults = failures.map((fault, at) => ({ ...fault, transfer: names[at] ?? "" }));
    const simulator = await openTestSimulator({ transfers: names.map(planFor), faults });
    const settings = await daemonSettings([
      impatient(simulator, { fetch: fetch === "zip" ? "zip" : "files" }),
    ]);
    const daemon = startDaemon(settings);
    await expect.poll(() => deliveredBy(daemon)).toEqual(names.toSorted());
  });

  test.each([
    undefined,
    { times: "always", does: { kind: "range", mode: "ignore" } },
    { times: "always", does: { kind: "range", mode: "refuse" } },
    { times: "always", does: { kind: "range", mode: "elsewhere" } },
    { times: 1, does: { kind: "range", mode: "lie" } },
    { times: "always", does: { kind: "change-etag" } },
  ] as const)("a download that broke off is taken up again, where ranges meet %o", async (fault) => {
    const { simulator, settings } = await openTransfer({ files: FILES });
    simulator.addFault({ on: "file", file: "large.bin", does: { kind: "reset", afterBytes: 900_000 } });
    if (fault !== undefined) simulator.addFault({ on: "file", ...fault });
    await startAndDeliver(settings);
  });

  test("a download that a stop interrupted resumes after a start", async () => {
    const { simulator, settings } = await openTransfer({ files: FILES });
    simulator.addFault({ on: "file", file: "large.bin", does: { kind: "stall", afterBytes: 1_500_000 } });
    const daemon = startDaemon(settings, { graceMs: 0 });
    const staged = async () => {
      const staging = join(settings.work, "staging");
      const names = await readdir(staging, { recursive: true }).catch(() => []);
      const parts = join(staging, names.find((name) => name.endsWith("large.bin")) ?? "none");
      return (await readFile(parts).catch(() => Buffer.alloc(0))).length;
    };
    await expect.poll(staged).toBeGreaterThan(1_000_000);
    await daemon.stop();
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    const ranges = simulator
      .requests()
      .filter((request) => request.operation === "file" && request.status === 206);
    expect(ranges).toHaveLength(1);
  });
});

describe("I7 nothing silent: a lasting failure ends in a state with a reason", () => {
  test.each([
    [{ kind: "corrupt", at: 1 }, "CHECKSUM_MISMATCH"],
    [{ kind: "truncate", afterBytes: 2 }, "SIZE_MISMATCH"],
    [{ kind: "lengthen", bytes: 2 }, "SIZE_MISMATCH"],
  ] as const)("%o, always", async (does, reason) => {
    const { simulator, settings } = await openTransfer({ files: FILES });
    simulator.addFault({ on: "file", file: "small.txt", times: "always", does });
    // Otherwise, on a slow machine, its wait may be over before the run.
    const { changes } = await runOnce(settings, { retryMs: 60_000 });
    const message = expect.stringMatching(/\w{20}|\. /);
    expect(changes.at(-1)).toMatchObject({ state: "quarantined", reason, message });
    expect(simulator.totals().file).toBeLessThanOrEqual(8);
    expect(await readTree(settings.inbox)).toEqual({});
  });

  test("every listed transfer has one record, in one state, also where a journal is unreadable", async () => {
    const broken = [{ name: "a.txt", text: "Hello", listChecksum: "wrong" }] as const;
    const { settings } = await openMailbox(
      {},
      {
        transfers: [
          transferPlan({ trackingId: "good" }),
          transferPlan({ trackingId: "broken", files: broken }),
          transferPlan({ trackingId: "closed", password: "Unknown-Secret:7" }),
          transferPlan({ trackingId: "bare", algorithm: "none" }),
          transferPlan({ trackingId: "empty", files: [] }),
          transferPlan({ trackingId: "message only", files: [], message: "Psst" }),
        ],
      },
    );
    await mkdir(join(settings.work, "journal", "2020-01.jsonl"), { recursive: true, mode: 0o700 });
    await runOnce(settings);
    const ledger = readRecords(settings.work);
    expect(
      Object.fromEntries(ledger.map(({ trackingId, state, reason }) => [trackingId, [state, reason]])),
    ).toEqual({
      good: ["delivered", undefined],
      broken: ["quarantined", "CHECKSUM_MISMATCH"],
      closed: ["waiting", "password"],
      bare: ["quarantined", "UNVERIFIABLE"],
      empty: ["quarantined", "UNVERIFIABLE"],
      "message only": ["delivered", undefined],
    });
    expect(ledger).toHaveLength(6);
  });

  test.each(["Secret Bytes, and no JSON", "null", '{"mailbox":1}'])(
    "a quarantine record with the content %j is reported once, and does not stop the daemon",
    async (text) => {
      const { settings } = await openMailbox();
      const kept = join(settings.work, "quarantine", "t0.0123~1");
      await mkdir(kept, { recursive: true, mode: 0o700 });
      const record = ledgerPaths(settings.work).end("t0.0123", 1);
      await mkdir(dirname(record), { recursive: true, mode: 0o700 });
      await writeFile(record, text);
      await writeFile(join(settings.work, "format"), "4 test\n");
      const daemon = await startAndDeliver({ ...settings, http: pageSettings() });
      expect(daemon.reports).toEqual([`${kept}: damaged`]);
      await expect.poll(async () => (await peekStatus(settings)).recent).toHaveLength(1);
      expect((await peekStatus(settings)).attention).toEqual([]);
    },
  );

  test.each([
    ["more than its files", 14, undefined, "quarantined"],
    ["less than its files", 12, undefined, "quarantined"],
    ["less than its files, with a message", 12, "Psst", "quarantined"],
    ["more than its files, with a message that may be counted", 17, "Psst", "delivered"],
  ] as const)("I1 whole or nothing: a transfer that announces %s", async (_case, value, message, state) => {
    const { simulator, settings } = await openTransfer({ ...(message === undefined ? {} : { message }) });
    const does = { kind: "alter", path: "data.totalSize", value } as const;
    simulator.addFault({ on: "info", times: "always", does });
    const { changes } = await runOnce(settings);
    expect(changes.at(-1)?.state).toBe(state);
    if (state === "delivered") return;
    expect(changes.at(-1)).toMatchObject({
      reason: "SIZE_MISMATCH",
      message: expect.stringContaining(`announces ${value} bytes in total and lists files of 13 bytes`),
    });
    await order(settings, "release");
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  });

  test.each([
    ["require", undefined, "quarantined"],
    ["require", "Psst", "delivered"],
    ["prefer", undefined, "delivered"],
    ["prefer", "Psst", "delivered"],
  ] as const)(
    "a transfer without files is never called verified: verify %s, message %s",
    async (verify, message, state) => {
      const { settings } = await openTransfer(
        { files: [], ...(message === undefined ? {} : { message }) },
        { verify },
      );
      const last = (await runOnce(settings)).changes.at(-1);
      expect(last).toMatchObject(
        state === "delivered" ? { state, verified: "none" } : { state, reason: "UNVERIFIABLE" },
      );
    },
  );

  test("a transfer over the limits is not downloaded", async () => {
    const { simulator, settings } = await openTransfer({ files: FILES });
    const limits = { ...settings.limits, maxTransferBytes: 1000 };
    const { changes } = await runOnce({ ...settings, limits });
    expect(changes.at(-1)).toMatchObject({ state: "quarantined", reason: "LIMIT_EXCEEDED" });
    expect(simulator.totals()).toMatchObject({ file: 0 });
  });

  test("I4 no leaks: no request goes to another origin", async () => {
    const witness = await openWitness();
    for (const on of ["received", "info", "files", "checksums", "file", "zip", "eml"] as const) {
      const { simulator, settings } = await openMailbox({ fetch: on === "zip" ? "zip" : "files" });
      simulator.addFault({ on, times: "always", does: { kind: "redirect", to: `${witness.url}/stolen` } });
      await runOnce(settings);
    }
    expect(witness.seen).toEqual([]);
  });
});

/** Gives up a request that stalls. */
function impatient(simulator: Simulator, keys: Partial<MailboxSettings> = {}): MailboxSettings {
  const mailbox = mailboxSettings(simulator, keys);
  return { ...mailbox, service: { ...mailbox.service, timeoutMs: 5_000 } };
}

/** Longer than what arrives before a failure. */
function planFor(trackingId: string) {
  return transferPlan({ trackingId, files: [{ name: "large.bin", generate: { bytes: 600_000 } }] });
}

/** Each as often as it was delivered. */
function deliveredBy({ changes }: TestDaemon): string[] {
  const delivered = changes.filter(({ state }) => state === "delivered");
  return delivered.map(({ trackingId }) => trackingId).toSorted();
}
