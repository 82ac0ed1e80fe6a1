/** What a service takes is found out once for its version: the path of an operation, the limit of a message. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario, TransferPlan } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import type { Settings } from "../../src/config/settings.ts";
import { daemonSettings, runOnce } from "../support/daemon.ts";
import { type DescribedOptions, openDescribedService } from "../support/described-service.ts";
import { openFront } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, PASSWORD } from "../support/settings.ts";

const MEGABYTE = 1_000_000;
const SECOND = "second@example.com";

/** Many small files, which come as a ZIP, and a message. */
function full(trackingId: string, plan: Partial<TransferPlan> = {}): TransferPlan {
  const files = Array.from({ length: 20 }, (_, at) => ({ name: `f${at}.txt`, text: `${trackingId} ${at}` }));
  return transferPlan({ trackingId, files, message: "for you alone", ...plan });
}

type Reached = Parameters<typeof mailboxSettings>[0];

function settingsFor(service: Reached, boxes = [MAILBOX], more: Partial<Settings> = {}): Promise<Settings> {
  const mailboxes = boxes.map((email) => mailboxSettings(service, { fetch: "auto", email, name: email }));
  return daemonSettings(mailboxes, more);
}

/** Refused requests since the last call, by status and operation. */
function openCounter(simulator: Pick<Simulator, "requests">) {
  let counted = 0;
  return () => {
    const all = simulator.requests();
    const refused = all.slice(counted).filter(({ status }) => status >= 400);
    counted = all.length;
    const names = refused.map(({ path, status }) => `${status} ${path.split("/").slice(4).join("/")}`);
    return Object.fromEntries(
      [...Map.groupBy(names, (name) => name)].map(([name, { length }]) => [name, length]),
    );
  };
}

async function deliveredIn(settings: Settings, trackingId: string) {
  const folder = join(settings.inbox, MAILBOX, "anna@supplier.example", trackingId);
  const manifest = JSON.parse(await readFile(join(folder, "transfer.json"), "utf8"));
  return { manifest, message: await readFile(join(folder, "message.eml"), "latin1") };
}

describe("the path of an operation", () => {
  test.each<readonly [string, true | ("zip" | "eml" | "checksums")[], Record<string, number>]>([
    ["all three", true, { "404 zip": 1, "404 eml": 1, "404 checksums": 1 }],
    ["one of them", ["eml"], { "404 eml": 1 }],
    ["none", [], {}],
  ])("is found out once, by one of many downloads: %s", async (_, oldPaths, expected) => {
    const transfers = Array.from({ length: 6 }, (__, at) => full(`t${at}`, { cc: [SECOND] }));
    const simulator = await openTestSimulator({ oldPaths, transfers });
    const settings = await settingsFor(simulator, [MAILBOX, SECOND]);
    const refused = openCounter(simulator);
    const { changes } = await runOnce(settings);
    expect(changes.filter(({ state }) => state === "delivered")).toHaveLength(12);
    expect(refused()).toEqual(expected);
    simulator.addTransfer(full("t9"));
    expect((await runOnce(settings)).stateOf("t9")).toBe("delivered");
    expect(refused()).toEqual({});
  });

  test.each<readonly [string, Partial<Scenario>]>([
    ["another version", { apiVersion: "1.16" }],
    // A firewall hides the version.
    ["no version", { faults: [{ on: "status", times: "always", does: { kind: "html", status: 403 } }] }],
  ])("is found out again after an update of the service: %s", async (_, scenario) => {
    const { faults = [] } = scenario;
    const old = await openTestSimulator({ oldPaths: true, transfers: [full("t1")], faults });
    const reached = { url: old.url, clientId: old.clientId };
    const settings = await settingsFor({ ...(await openFront(reached, () => undefined)) });
    await runOnce(settings);
    const transfers = ["t2", "t3", "t4"].map((trackingId) => full(trackingId));
    const updated = await openTestSimulator({ ...scenario, showsMessage: false, transfers });
    reached.url = updated.url;
    const daemon = await runOnce(settings);
    for (const { trackingId = "" } of transfers) {
      expect(daemon.stateOf(trackingId)).toBe("delivered");
      const { manifest } = await deliveredIn(settings, trackingId);
      expect(manifest).toMatchObject({ message: "present", verified: "all" });
    }
  });

  test("is not what a proxy says it is", async () => {
    const simulator = await openTestSimulator({ transfers: [full("t1")] });
    let isRestarting = true;
    const page = { status: 404, text: "<html>", headers: { "content-type": "text/html" } };
    const isExtra = (url: URL) => /(zip|eml|checksums)$/.test(url.pathname);
    const front = await openFront(simulator, (url) => (isRestarting && isExtra(url) ? page : undefined));
    const settings = await settingsFor(front);
    await runOnce(settings);
    isRestarting = false;
    simulator.addTransfer(full("t2"));
    front.seen.length = 0;
    await runOnce(settings);
    const extras = front.seen.filter(isExtra).map(({ pathname }) => pathname.split("/").slice(4).join("/"));
    expect(new Set(extras)).toEqual(new Set(["checksums", "eml", "zip"]));
  });
});

describe("the limit of a message", () => {
  const LARGE = [
    { name: "large.bin", generate: { bytes: 3 * MEGABYTE } },
    { name: "small.txt", text: "small" },
  ];

  test.each<readonly [Scenario["threshold"], Partial<Scenario>, Record<string, number>]>([
    ["number", {}, {}],
    ["int32", {}, { "400 eml": 1 }],
    ["refused", {}, { "400 eml": 2 }],
    ["refused", { oldPaths: true }, { "404 eml": 1, "404 checksums": 1, "400 files/eml": 2 }],
    // Some frameworks answer so to a value that they cannot parse.
    ["number", { wholeThreshold: true }, { "404 eml": 1, "404 files/eml": 1 }],
  ])("is found out once, and no file is delivered twice: %s, %o", async (threshold, scenario, expected) => {
    const transfers = ["t1", "t2", "t3"].map((id) => full(id, { files: LARGE }));
    const simulator = await openTestSimulator({ threshold: threshold ?? "number", ...scenario, transfers });
    const settings = await settingsFor(simulator);
    const refused = openCounter(simulator);
    await runOnce(settings);
    expect(refused()).toEqual(expected);
    simulator.addTransfer(full("t4", { files: LARGE }));
    await runOnce(settings);
    expect(refused()).toEqual({});
    for (const trackingId of ["t1", "t2", "t3", "t4"]) {
      const { manifest, message } = await deliveredIn(settings, trackingId);
      expect(manifest).toMatchObject({ message: "present", verified: "all" });
      expect(message).toContain(Buffer.from("for you alone").toString("base64").slice(0, 16));
      expect(message.length).toBeLessThan(2_000);
      expect(message).not.toContain("attachment");
    }
  });

  type Described = Required<Pick<DescribedOptions, "threshold" | "paths">>;
  test.each<readonly [Described["threshold"], Described["paths"], readonly string[]]>([
    ["int32", "beside", ["eml", "status"]],
    ["refused", "beside", ["eml", "eml", "status"]],
    // Without a version, a path that refuses a value may be the id of a file.
    ["refused", "below", ["checksums", "status", "eml", "files/eml", "eml", "files/eml"]],
  ])(
    "is found out at a service that was written from its description: %s, %s",
    async (threshold, paths, expected) => {
      const bytes = Buffer.alloc(2 * MEGABYTE, "large file ");
      const files = [
        { name: "large.bin", bytes },
        { name: "small.txt", bytes: Buffer.from("small") },
      ];
      const transfers = ["t1", "t2"].map((trackingId) => ({
        ...{ trackingId, to: [MAILBOX], password: PASSWORD, files, message: "Psst" },
      }));
      const service = await openDescribedService({ transfers, threshold, paths });
      const settings = await settingsFor(service);
      await runOnce(settings);
      const refused = service.refused().map(({ path }) =>
        path
          .split("/")
          .slice(3)
          .join("/")
          .replace(/^[^/]*\//, ""),
      );
      expect(refused.map((name) => name || "status").toSorted()).toEqual([...expected].toSorted());
      for (const { trackingId } of transfers) {
        const { manifest, message } = await deliveredIn(settings, trackingId);
        expect(manifest).toMatchObject({ message: "present", verified: "all" });
        expect(message).toContain("Psst");
        expect(message).not.toContain("attachment");
        expect(message.length).toBeLessThan(1_000);
      }
    },
  );

  test("a row of the checksums that an EML with files cannot match is compared with the message's file", async () => {
    const transfers = [
      full("t1", { messageRow: "eml" }),
      full("t2", { messageRow: "text" }),
      full("t3", { messageRow: "wrong" }),
    ];
    const simulator = await openTestSimulator({ threshold: "refused", transfers });
    const settings = await settingsFor(simulator);
    const daemon = await runOnce(settings);
    for (const trackingId of ["t1", "t2"]) {
      const { manifest } = await deliveredIn(settings, trackingId);
      expect(manifest.messageRow).toMatchObject({ compared: "file" });
    }
    expect(daemon.stateOf("t3")).toBe("quarantined");
  });

  test("and where the service refuses that file, the manifest says that the row was not compared", async () => {
    const faults = [
      { on: "file", file: "message", times: "always", does: { kind: "error", status: 404 } },
    ] as const;
    const transfers = [full("t1", { messageRow: "eml" })];
    const simulator = await openTestSimulator({ threshold: "refused", transfers, faults: [...faults] });
    const settings = await settingsFor(simulator);
    await runOnce(settings);
    expect((await deliveredIn(settings, "t1")).manifest.messageRow).toMatchObject({ compared: "none" });
    expect(await readdir(join(settings.work, "staging"))).toEqual([]);
  });
});
