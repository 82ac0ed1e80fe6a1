/** Transfers of which the service has removed single files. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Scenario, TransferPlan } from "../../simulator/scenario.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { openDescribedService } from "../support/described-service.ts";
import { openTransfer, order } from "../support/one-mailbox.ts";
import { MAILBOX, mailboxSettings, PASSWORD } from "../support/settings.ts";

const VIRUS = "It has a virus: EICAR.";
const FILES = [
  { name: "a.txt", text: "a" },
  { name: "b.txt", text: "bb", removed: VIRUS },
  { name: "c.txt", text: "ccc" },
];
const LAYOUT = { layout: "{trackingId}" };

function open(plan: Partial<TransferPlan> = {}, fetch: "files" | "zip" = "files", scenario: Scenario = {}) {
  return openTransfer({ files: FILES, ...plan }, { ...LAYOUT, fetch }, scenario);
}

async function manifestIn(inbox: string) {
  return JSON.parse(await readFile(join(inbox, "t1/transfer.json"), "utf8"));
}

const MISSING = { originalName: "b.txt", size: 2, algorithm: "SHA-256", cause: VIRUS };

test.each(["files", "zip"] as const)(
  "the missing file and the cause are named at once, and a release delivers the rest (%s)",
  async (fetch) => {
    const { simulator, settings } = await open({}, fetch);
    const daemon = await runOnce(settings);
    expect(daemon.changes.at(-1)).toMatchObject({
      state: "quarantined",
      reason: "FILE_REMOVED",
      attempts: 1,
      message: expect.stringContaining(`"b.txt" ("${VIRUS}")`),
    });
    const asked = simulator.requests().filter(({ query }) => JSON.stringify(query).includes("removalCause"));
    expect(asked).toHaveLength(1);
    await order(settings, "release");
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    expect((await readdir(join(settings.inbox, "t1"))).filter((name) => name.endsWith(".txt"))).toEqual([
      "a.txt",
      "c.txt",
    ]);
    const manifest = await manifestIn(settings.inbox);
    expect(manifest).toMatchObject({
      verified: "some",
      released: { reason: "FILE_REMOVED" },
      missing: [MISSING],
    });
    expect(manifest.files).toHaveLength(2);
  },
);

test("without a removed file, and in polls, files are not asked for", async () => {
  const { simulator, settings } = await open({ files: FILES.map(({ name, text }) => ({ name, text })) });
  const file = { on: "file", file: "b.txt" } as const;
  simulator.addFault({ ...file, does: { kind: "error", status: 500, errorCode: 5000 } });
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  const asked = simulator.requests().filter(({ query }) => JSON.stringify(query).includes("files("));
  expect(asked).toHaveLength(0);
});

test("a file that the service refuses without having removed it is tried again, as before", async () => {
  const { simulator, settings } = await open({ files: FILES.map(({ name, text }) => ({ name, text })) });
  simulator.addFault({ on: "file", file: "b.txt", does: { kind: "error", status: 404, errorCode: 2003 } });
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  expect(daemon.changes.map(({ reason, code }) => [reason, code])).toContainEqual(["retry", "NOT_FOUND"]);
});

test("a service that names no causes says by the states of files which one it has removed", async () => {
  const { settings } = await open({}, "files", { refusedFields: ["status.files"] });
  const daemon = await runOnce(settings);
  expect(daemon.changes.at(-1)).toMatchObject({
    reason: "FILE_REMOVED",
    message: expect.stringContaining('"b.txt"'),
  });
});

test("a transfer without any file that is left is released as an empty one", async () => {
  const { settings } = await open({ files: FILES.map((file) => ({ ...file, removed: VIRUS })) });
  expect((await runOnce(settings)).changes.at(-1)).toMatchObject({ reason: "FILE_REMOVED" });
  await order(settings, "release");
  expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  expect(await manifestIn(settings.inbox)).toMatchObject({ verified: "none", files: [] });
});

test("a service that is written from its description alone names the removed file", async () => {
  const files = [
    { name: "a.txt", bytes: Buffer.from("a") },
    { name: "b.txt", bytes: Buffer.from("bb"), removed: VIRUS },
  ];
  const service = await openDescribedService({
    transfers: [{ trackingId: "t1", to: [MAILBOX], password: PASSWORD, files }],
  });
  const settings = await daemonSettings([mailboxSettings(service, LAYOUT)]);
  const daemon = await runOnce(settings);
  expect(daemon.changes.at(-1)).toMatchObject({
    reason: "FILE_REMOVED",
    message: expect.stringContaining(VIRUS),
  });
  await order(settings, "release");
  expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  expect(await manifestIn(settings.inbox)).toMatchObject({ missing: [MISSING] });
});
