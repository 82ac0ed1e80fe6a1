/** A ZIP that breaks off: what has arrived is kept, and only the rest is asked for again. */
import { expect, test } from "vitest";
import type { FaultPlan, Scenario, TransferPlan } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import type { MailboxSettings } from "../../src/config/settings.ts";
import { daemonSettings, readTree, runOnce, withoutTimes } from "../support/daemon.ts";
import { openDescribedService } from "../support/described-service.ts";
import { openMailbox, openTransfer, startAndDeliver } from "../support/one-mailbox.ts";
import { MAILBOX, mailboxSettings, PASSWORD } from "../support/settings.ts";

/** Of both kinds: yazl deflates text, and stores the rest; sizes follow the content of each. */
const FILES = Array.from({ length: 40 }, (_, at) =>
  at % 2 === 0
    ? { name: `file ${at}.bin`, generate: { bytes: 25_000 + at, seed: at + 1 } }
    : { name: `Übersicht ${at}.txt`, text: `line of ${at}\n`.repeat(at === 1 ? 0 : 2_000) },
);

/** Delivers the transfer with these faults. `whole`: the bytes of its ZIP. */
async function deliver(
  faults: (whole: number) => readonly FaultPlan[],
  mailbox: Partial<MailboxSettings> = {},
  scenario: Scenario = {},
  files: TransferPlan["files"] = FILES,
) {
  const undisturbed = await openTransfer({ files }, { fetch: "zip" });
  await runOnce(undisturbed.settings);
  const whole = bytesOf(undisturbed.simulator, "zip");
  const { simulator, settings } = await openTransfer({ files }, { fetch: "zip", ...mailbox }, scenario);
  for (const fault of faults(whole)) simulator.addFault(fault);
  await startAndDeliver(settings);
  const tree = withoutTimes(await readTree(settings.inbox));
  expect(tree).toEqual(withoutTimes(await readTree(undisturbed.settings.inbox)));
  const zips = simulator.requests().filter(({ operation }) => operation === "zip");
  const received = bytesOf(simulator, "zip") + bytesOf(simulator, "file");
  return { simulator, zips, share: received / whole, files: simulator.totals().file };
}

function bytesOf(simulator: Simulator, operation: "zip" | "file"): number {
  return simulator
    .requests()
    .filter((request) => request.operation === operation)
    .reduce((sum, { bytes }) => sum + bytes, 0);
}

const breakAt =
  (share: number, more: Partial<FaultPlan> = {}) =>
  (whole: number) => [
    { on: "zip", does: { kind: "reset", afterBytes: Math.floor(whole * share) }, ...more } as const,
  ];

test.each([0.05, 0.5, 0.95, 0.999])(
  "a ZIP that breaks off at %d of its bytes costs hardly more bytes",
  async (share) => {
    const { zips, share: received, files } = await deliver(breakAt(share));
    expect(received).toBeLessThan(1.06);
    // Nothing is missing of a ZIP that breaks off in its directory.
    expect(zips).toHaveLength(share > 0.99 ? 1 : 2);
    expect(files).toBe(0);
  },
);

test("each ZIP that brings a file may break off in its turn", async () => {
  const { zips, share, files } = await deliver(() => [
    { on: "zip", times: "always", does: { kind: "reset", afterBytes: 150_000 } },
  ]);
  expect(zips.length).toBeGreaterThan(3);
  expect(share).toBeLessThan(1.4);
  expect(files).toBe(0);
});

test("a ZIP that ends too early, or is damaged, is completed by single files", async () => {
  for (const does of [
    { kind: "truncate", afterBytes: 300_000 },
    { kind: "corrupt", at: 300_000 },
  ] as const) {
    const { zips, share, files } = await deliver(() => [{ on: "zip", does }]);
    expect(zips).toHaveLength(1);
    // Text is larger without the ZIP.
    expect(files).toBeLessThan(20);
    expect(share).toBeLessThan(does.kind === "truncate" ? 1.4 : 2);
  }
});

test("without checksums nothing of a broken ZIP is kept", async () => {
  const { simulator, settings } = await openTransfer(
    { files: FILES, algorithm: "none" },
    {
      fetch: "zip",
      verify: "prefer",
    },
  );
  simulator.addFault({ on: "zip", does: { kind: "reset", afterBytes: 400_000 } });
  await startAndDeliver(settings);
  const zips = simulator.requests().filter(({ operation }) => operation === "zip");
  expect(zips.map(({ query }) => query["customized-files-ids"])).toEqual([undefined, undefined]);
});

test("a service that sends the whole ZIP in place of the rest is taken at that", async () => {
  const { zips, share } = await deliver(breakAt(0.5), {}, { ignoresFileIds: true });
  expect(zips).toHaveLength(2);
  expect(share).toBeLessThan(1.6);
});

test("a service that always breaks off at the same byte, before any file is whole, is asked for single files in the end", async () => {
  const files = [
    { name: "large.bin", generate: { bytes: 400_000, seed: 3 } },
    { name: "small.txt", text: "small" },
  ];
  const { files: single } = await deliver(breakAt(0.6, { times: "always" }), {}, {}, files);
  expect(single).toBe(2);
});

test("a member of many thousands is asked for in lists that fit into a request", async () => {
  const files = Array.from({ length: 300 }, (_, at) => ({ name: `${at}.txt`, text: `content of ${at}` }));
  const { zips, share } = await deliver(breakAt(0.3), {}, {}, files);
  for (const { query } of zips) expect(query["customized-files-ids"]?.length ?? 0).toBeLessThanOrEqual(100);
  expect(share).toBeLessThan(1.1);
});

test("a broken ZIP of a service that is written from its description alone is continued", async () => {
  const files = Array.from({ length: 40 }, (_, at) => ({
    name: `${at}.bin`,
    bytes: Buffer.alloc(10_000, `${at} `),
  }));
  const transfers = [{ trackingId: "t1", to: [MAILBOX], password: PASSWORD, files }];
  const service = await openDescribedService({ transfers, breakZip: { share: 0.95, times: 1 } });
  const settings = await daemonSettings([mailboxSettings(service, { fetch: "auto" })]);
  const daemon = await runOnce(settings);
  expect(daemon.stateOf("t1")).toBe("delivered");
  const zips = service.requests.filter(({ path }) => path.endsWith("/zip"));
  expect(zips).toHaveLength(2);
  expect(zips.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThan(1.05 * 400_000 + 10_000);
});

test.each([
  [403, 3010],
  [403, 3011],
  [403, 3999],
])("where single files are refused with %d/%d, the ZIP is taken", async (status, errorCode) => {
  const files = [
    { name: "a.bin", generate: { bytes: 300_000, seed: 1 } },
    { name: "b.txt", text: "b" },
  ];
  const { simulator, settings } = await openTransfer({ files, message: "Psst" }, { fetch: "auto" });
  simulator.addFault({ on: "file", times: "always", does: { kind: "error", status, errorCode } });
  const daemon = await runOnce(settings);
  expect(daemon.stateOf("t1")).toBe("delivered");
  expect(simulator.totals()).toMatchObject({ zip: 1, info: 1 });
});

test("a service that refused single files of two transfers is not asked for them for a day, also after a start", async () => {
  const { simulator, settings } = await openMailbox({}, { transfers: [] });
  simulator.addFault({ on: "file", times: "always", does: { kind: "error", status: 403, errorCode: 3010 } });
  const deliverNext = async (trackingId: string, ahead = 0) => {
    simulator.addTransfer({ ...T1, trackingId, files: [{ name: "a", text: trackingId }] });
    const before = simulator.totals().file;
    const daemon = await runOnce(settings, { clock: { now: () => Date.now() + ahead } });
    expect(daemon.stateOf(trackingId)).toBe("delivered");
    return simulator.totals().file - before;
  };
  const [hour, day] = [3_600_000, 86_400_000];
  expect(await deliverNext("t1")).toBe(1);
  expect(await deliverNext("t2")).toBe(1);
  expect(await deliverNext("t3")).toBe(0);
  expect(await deliverNext("t4", day - hour)).toBe(0);
  // It may give them out again, and if it does not, one more transfer is enough.
  expect(await deliverNext("t5", day + hour)).toBe(1);
  expect(await deliverNext("t6", day + 2 * hour)).toBe(0);
});

test("files that a ZIP cannot tell apart are not taken from one", async () => {
  const files = [
    { name: "a", text: "1" },
    { name: "a", text: "2" },
  ];
  const { simulator, settings } = await openMailbox({}, { transfers: [{ ...T1, files }] });
  simulator.addFault({ on: "file", times: "always", does: { kind: "error", status: 403, errorCode: 3010 } });
  await runOnce(settings);
  expect(simulator.totals().zip).toBe(0);
});

test("a lock is no refusal of single files", async () => {
  const { simulator, settings } = await openTransfer({});
  simulator.addFault({ on: "file", does: { kind: "error", status: 403, errorCode: 2005 } });
  await startAndDeliver(settings);
  expect(simulator.totals().zip).toBe(0);
});

const T1 = { trackingId: "t1", from: "anna@supplier.example", to: [MAILBOX], password: PASSWORD };
