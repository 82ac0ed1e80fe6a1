/** To whom a transfer was sent, and how it was protected: as consumers, routes and operators see it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario, TransferPlan } from "../../simulator/scenario.ts";
import { WANTED_FIELDS } from "../../src/mailbox/list-fields.ts";
import type { Route } from "../../src/model/mailbox.ts";
import { ruleOf } from "../../src/model/route.ts";
import { readStory } from "../../src/operate/story.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { openDescribedService } from "../support/described-service.ts";
import { openTransfer, order } from "../support/one-mailbox.ts";
import { makeFolder } from "../support/program.ts";
import { openTestService, openTestSimulator, SIGNAL, transferPlan, verify } from "../support/service.ts";
import { MAILBOX, mailboxSettings, PASSWORD } from "../support/settings.ts";

const SALES = "sales@example.com";
const SALES_ROUTE: Route = {
  name: "sales",
  when: { recipient: ["sales@*"] },
  rule: ruleOf("sales", { recipient: ["sales@*"] }),
  action: "deliver",
  layout: "sales/{trackingId}",
};
const ROUTED = {
  layout: "rest/{trackingId}",
  routing: { routes: [SALES_ROUTE], otherwise: "deliver" },
} as const;
/** An intermediary loses the recipients. */
const LOST = {
  on: "received",
  times: "always",
  does: { kind: "alter", path: "data.0.transfer.recipients" },
} as const;

function open(plan: Partial<TransferPlan>, scenario: Scenario = {}) {
  return openTransfer({ cc: [SALES], ...plan }, ROUTED, scenario);
}

async function manifestIn(inbox: string, folder: string) {
  return JSON.parse(await readFile(join(inbox, folder, "transfer.json"), "utf8"));
}

describe("recipients and protection", () => {
  test("are in the manifest, and in the environment of the command, where one is told from the other", async () => {
    const note = join(await makeFolder(), "note");
    const argv = ["/bin/sh", "-c", 'env | grep -E "^INLET_(TO|CC|.*MODE)=" | sort > "$0"', note] as const;
    const command = { argv, env: {}, timeoutMs: 60_000 };
    const handoff = { fileMode: 0o640, folderMode: 0o750, marker: undefined, command };
    const { settings } = await openTransfer(
      { to: [MAILBOX, "x,y@example.com"], cc: [SALES], bcc: ["b@example.com"] },
      { ...ROUTED, handoff },
    );
    await runOnce(settings);
    expect(await manifestIn(settings.inbox, "sales/t1")).toMatchObject({
      recipients: { to: [MAILBOX, "x,y@example.com"], cc: [SALES] },
      securityMode: "ONE_TIME_PASSWORD",
      passwordMode: "MANUAL",
    });
    expect((await readFile(note, "utf8")).trim().split("\n")).toEqual([
      `INLET_CC=${SALES}`,
      "INLET_PASSWORD_MODE=MANUAL",
      "INLET_SECURITY_MODE=ONE_TIME_PASSWORD",
      `INLET_TO=${MAILBOX},x\ufffdy@example.com`,
    ]);
    const story = await readStory(settings, { mailbox: MAILBOX, trackingId: "t1" });
    expect(story).toMatchObject({ recipients: { cc: [SALES] }, securityMode: "ONE_TIME_PASSWORD" });
  });

  test("given as none are none, and what nobody gave is missing", async () => {
    const { simulator, settings } = await open({ to: [MAILBOX], cc: [] });
    simulator.addFault({ ...LOST, does: { ...LOST.does, path: "data.0.transfer.recipients.to" } });
    await runOnce({ ...settings, mailboxes: settings.mailboxes.map(({ routing, ...it }) => it) });
    const { recipients } = await manifestIn(settings.inbox, "rest/t1");
    expect(recipients).toEqual({ cc: [] });
  });

  test("stay as they were listed first, whatever the service replaces later", async () => {
    const { simulator, settings } = await open({ processingSeconds: 0 }, {});
    const daemon = startDaemon({
      ...settings,
      mailboxes: settings.mailboxes.map((it) => ({ ...it, passwords: [] })),
    });
    await expect.poll(() => daemon.stateOf("t1")).toBe("waiting");
    await daemon.stop();
    simulator.replaceAddress("t1", SALES, "deleted-user-7@proxy.example");
    await runOnce(settings);
    expect(await manifestIn(settings.inbox, "sales/t1")).toMatchObject({ recipients: { cc: [SALES] } });
    await order(settings, "redeliver");
    await runOnce(settings);
    expect(await manifestIn(settings.inbox, "sales/t1-2")).toMatchObject({ recipients: { cc: [SALES] } });
  });

  test.each([
    ["a route of one that is kept", { cc: [SALES] }, "sales"],
    ["a route of one that is not kept", { cc: [] }, "held"],
  ])("of 150, a hundred are kept, and the rest is counted: %s", async (_name, plan, where) => {
    const many = Array.from({ length: 149 }, (_, at) => `branch-${at}@example.com`);
    const { settings } = await open({
      ...plan,
      to: plan.cc.length > 0 ? [MAILBOX, ...many.slice(0, 98)] : [MAILBOX, ...many],
    });
    const daemon = await runOnce(settings);
    expect(daemon.stateOf("t1")).toBe(where === "held" ? "waiting" : "delivered");
    const story = await readStory(settings, { mailbox: MAILBOX, trackingId: "t1" });
    const { to = [], cc = [], more = 0 } = story?.recipients ?? {};
    expect([to.length + cc.length, more]).toEqual([100, where === "held" ? 50 : 0]);
  });

  test("cost a poll less than a fifth more bytes where a transfer has a few recipients", async () => {
    const transfers = Array.from({ length: 100 }, (_, at) =>
      transferPlan({
        trackingId: `t${at}`,
        to: [MAILBOX, `b${at}@example.com`],
        cc: [SALES, `c${at}@example.com`],
      }),
    );
    const simulator = await openTestSimulator({ transfers });
    const service = openTestService(simulator);
    const address = await verify(service);
    const bytesOf = async (fields: string) => {
      await service.pollReceived(address, { active: true, pageSize: 100, fields }, SIGNAL);
      return simulator.requests().at(-1)?.bytes ?? 0;
    };
    const without = await bytesOf(WANTED_FIELDS.replace("recipients(to,cc),", ""));
    const ratio = (await bytesOf(WANTED_FIELDS)) / without;
    expect(ratio).toBeGreaterThan(1);
    expect(ratio).toBeLessThan(1.2);
  });
});

describe("a route that names a recipient", () => {
  test("holds a transfer whose recipients are lost on the way, and takes it as soon as they are there", async () => {
    const { simulator, settings } = await open({});
    simulator.addFault(LOST);
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("waiting");
    expect(daemon.changes.at(-1)).toMatchObject({
      reason: "held",
      needsPerson: true,
      message: expect.stringMatching(/^It is unknown whether its route is "sales".*inlet release/),
    });
    expect(simulator.totals().info).toBe(0);
    simulator.clearFaults();
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    expect(daemon.changes.at(-1)).toMatchObject({ folder: "sales/t1", route: "sales" });
  });

  test("does not take a transfer that an operator releases: it goes where the mailbox says", async () => {
    const { settings } = await open({}, { refusedFields: ["transfer.recipients"] });
    expect((await runOnce(settings)).stateOf("t1")).toBe("waiting");
    await order(settings, "release");
    const daemon = await runOnce(settings);
    expect(daemon.changes.at(-1)).toMatchObject({ state: "delivered", folder: "rest/t1" });
    expect((await manifestIn(settings.inbox, "rest/t1")).recipients).toBeUndefined();
  });
});

test.each([
  ["nothing", []],
  ["the subject", ["notificationMessage"]],
] as const)(
  "a service that is written from its description alone, and refuses %s, gives both lists",
  async (_name, unknownFields) => {
    const files = [{ name: "a.txt", bytes: Buffer.from("a") }];
    const transfer = { trackingId: "t1", to: [MAILBOX], cc: [SALES], password: PASSWORD, files };
    const service = await openDescribedService({ transfers: [transfer], unknownFields });
    const settings = await daemonSettings([mailboxSettings(service, ROUTED)]);
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    expect(await manifestIn(settings.inbox, "sales/t1")).toMatchObject({
      recipients: { to: [MAILBOX], cc: [SALES] },
      securityMode: "ONE_TIME_PASSWORD",
    });
  },
);
