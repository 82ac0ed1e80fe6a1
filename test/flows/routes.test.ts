/** Routes of a mailbox, where it starts (`since`), and what `route` and `once --dry-run` say about both. */

import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { giveOrder } from "../../src/ledger/orders.ts";
import { peekLedger } from "../../src/ledger/peek.ts";
import type { Route, RouteAction } from "../../src/model/mailbox.ts";
import type { Action } from "../../src/model/order.ts";
import { ruleOf } from "../../src/model/route.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { makeFolder, runProgram } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, OPERATOR } from "../support/settings.ts";

const ANNA = "anna@supplier.example";
const BOB = "bob@elsewhere.example";

/** One transfer of each kind. */
const SCENARIO: Scenario = {
  transfers: [
    transferPlan({ trackingId: "t-xml", from: ANNA, files: [{ name: "Invoice.XML", text: "<a/>" }] }),
    transferPlan({ trackingId: "t-pdf", from: ANNA, files: [{ name: "letter.pdf", text: "%PDF" }] }),
    transferPlan({
      trackingId: "t-news",
      from: ANNA,
      subject: "Newsletter 7",
      files: [{ name: "n.txt", text: "n" }],
    }),
    transferPlan({ trackingId: "t-bob", from: BOB, files: [{ name: "b.txt", text: "b" }] }),
  ],
};

const NEWS: Route = { name: "news", when: { subject: ["*newsletter*"] }, action: "ignore" };
const INVOICES: Route = {
  name: "invoices",
  when: { sender: ["*@supplier.example"], file: ["*.xml"] },
  action: "deliver",
  layout: "invoices/{trackingId}",
};
const LETTERS: Route = { name: "letters", when: { sender: [ANNA] }, action: "deliver" };

/** How often the service was asked for the transfer itself, beyond the list. */
function requestsFor(simulator: Simulator, trackingId: string): number {
  return simulator.requests().filter(({ transfer }) => transfer === trackingId).length;
}

function withRule(route: Route): Route {
  return { ...route, rule: ruleOf(route.name, route.when) };
}

async function setUp(named: readonly Route[], otherwise: RouteAction = "deliver") {
  const routes = named.map(withRule);
  const simulator = await openTestSimulator(SCENARIO);
  const settings = await daemonSettings([
    mailboxSettings(simulator, { layout: "rest/{trackingId}", routing: { routes, otherwise } }),
  ]);
  const peek = peekLedger(settings);
  const find = (trackingId: string) => peek.find({ mailbox: MAILBOX, trackingId });
  const order = async (action: Action, trackingId: string) => {
    const round = (await find(trackingId))?.round ?? 1;
    await giveOrder(settings.work, { action, mailbox: MAILBOX, trackingId, round, by: OPERATOR });
  };
  const folders = async () => {
    const all = await readdir(settings.inbox, { recursive: true });
    return all.filter((path) => /^(rest|invoices)\/[^/]+$/.test(path)).toSorted();
  };
  return { simulator, settings, find, order, folders };
}

describe("routes", () => {
  test("send transfers to other folders, inboxes and hand-offs, leave some out, and hold those that none matches", async () => {
    const [inbox, notes] = [await makeFolder(), join(await makeFolder(), "notes")];
    const argv = ["/bin/sh", "-c", 'echo "$INLET_TRACKING_ID" >> "$0"', notes] as const;
    const command = { argv, env: {}, timeoutMs: 60_000 };
    const handoff = { fileMode: 0o600, folderMode: 0o700, marker: "READY", command };
    const routes = [NEWS, { ...INVOICES, inbox, handoff }, LETTERS];
    const { simulator, settings, find, folders } = await setUp(routes, "hold");
    await runOnce(settings);
    expect(await folders()).toEqual(["rest/t-pdf"]);
    expect(await find("t-xml")).toMatchObject({ state: "delivered", route: "invoices", inbox });
    const pdf = await find("t-pdf");
    expect(pdf).toMatchObject({ state: "delivered", route: "letters", folder: "rest/t-pdf" });
    expect(pdf?.inbox).toBeUndefined();
    expect(await find("t-news")).toMatchObject({ state: "gone", reason: "ignored", route: "news" });
    expect(await find("t-bob")).toMatchObject({ state: "waiting", reason: "held", needsPerson: true });
    // Decided by the list alone: neither was opened with a password.
    for (const trackingId of ["t-news", "t-bob"]) {
      expect([trackingId, requestsFor(simulator, trackingId)]).toEqual([trackingId, 0]);
    }
    const folder = join(inbox, "invoices/t-xml");
    expect(await readdir(folder)).toContain("READY");
    const modes = [folder, join(folder, "Invoice.XML"), join(settings.inbox, "rest/t-pdf")];
    const found = await Promise.all(modes.map(async (path) => ((await stat(path)).mode & 0o777).toString(8)));
    expect(found).toEqual(["700", "600", "750"]);
    expect(await readFile(notes, "utf8")).toBe("t-xml\n");
  });

  test("that hold a transfer until it is released deliver it then, with their layout", async () => {
    const held: Route = { ...INVOICES, action: "hold" };
    const { simulator, settings, find, order, folders } = await setUp([held]);
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t-xml")).toBe("waiting");
    expect(daemon.changes.find(({ reason }) => reason === "held")).toMatchObject({
      trackingId: "t-xml",
      message: expect.stringContaining("inlet release"),
    });
    // It was opened once to see its file names, and not again while it is held.
    const opened = requestsFor(simulator, "t-xml");
    const polls = simulator.totals().received;
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 3);
    expect(requestsFor(simulator, "t-xml")).toBe(opened);
    await order("release", "t-xml");
    await expect.poll(() => daemon.stateOf("t-xml")).toBe("delivered");
    expect(await folders()).toContain("invoices/t-xml");
    const record = await find("t-xml");
    expect(record).toMatchObject({ allowedBy: OPERATOR.who, verified: "all" });
    expect(record?.released).toBeUndefined();
  });
});

describe("since", () => {
  const start = async (since: number | "now", transfers = SCENARIO.transfers) => {
    const simulator = await openTestSimulator({ transfers: transfers ?? [] });
    const settings = await daemonSettings([mailboxSettings(simulator, { layout: "{trackingId}", since })]);
    const peek = peekLedger(settings);
    const states = async () => {
      const all = ["t-xml", "t-pdf", "t-news", "t-bob", "later"];
      const found = await Promise.all(all.map((trackingId) => peek.find({ mailbox: MAILBOX, trackingId })));
      return found.map((record) => record && `${record.state} ${record.reason ?? ""}`.trim());
    };
    return { simulator, settings, states };
  };
  const LATER = transferPlan({ trackingId: "later", from: ANNA });
  const OLD = Array.from({ length: 4 }, () => "gone ignored");

  test.each([
    ["now leaves out what is there at the first poll, and nothing else", SCENARIO.transfers, OLD],
    ["now leaves nothing out of a mailbox that was empty", [], OLD.map(() => undefined)],
  ])("%s", async (_, transfers, left) => {
    const { simulator, settings, states } = await start("now", transfers);
    await runOnce(settings);
    expect(await states()).toEqual([...left, undefined]);
    expect(simulator.totals().file).toBe(0);
    simulator.addTransfer(LATER);
    await runOnce(settings);
    expect(await states()).toEqual([...left, "delivered"]);
  });

  test.each([
    ["a date leaves out what is listed before then", 3_600_000, 0, "gone ignored"],
    ["a date in the past leaves nothing out", -1_000, 0, "delivered"],
    ["a date is judged by the clock of the service: ours may be wrong", 3_600_000, 2 * 3_600, "delivered"],
  ])("%s", async (_, sinceMs, aheadSeconds, state) => {
    const { simulator, settings, states } = await start(Date.now() + sinceMs);
    simulator.advance(aheadSeconds);
    await runOnce(settings);
    expect(await states()).toEqual([...OLD.map(() => state), undefined]);
  });
});

describe("as an administrator", () => {
  const keys = (more: object) => ({ mailboxes: [{ ...mailboxKeys(MAILBOX), ...more }] });
  const ROUTES = [
    { name: "news", subject: "*newsletter*", action: "ignore" },
    { name: "invoices", sender: "*@supplier.example", file: "*.xml", layout: "invoices/{trackingId}" },
    { name: "held", sender: "*@elsewhere.example", action: "hold" },
  ];

  test("once --dry-run says what would happen, sends no password, and changes nothing", async () => {
    const { simulator, config, folder } = await install(
      {
        transfers: [
          ...(SCENARIO.transfers ?? []),
          transferPlan({ trackingId: "t-key", from: "carl@third.example", password: "unknown-1" }),
        ],
      },
      { mailboxes: [{ email: MAILBOX, routes: ROUTES, passwords: [{ sender: ANNA, password: "x-1" }] }] },
    );
    const before = await readdir(folder, { recursive: true });
    const dryRun = ["once", "--dry-run", "--config", config];
    const { exitCode, stdout, stderr } = await runProgram([...dryRun, "--json"]);
    expect([exitCode, stderr]).toEqual([3, ""]);
    const planned = JSON.parse(stdout) as Record<string, string | undefined>[];
    const rule = "rule 1: the plain text of mailboxes[0].passwords[0].password in inlet.yaml";
    expect(
      planned.map((it) => [it["trackingId"], it["plan"], it["folder"], it["password"]]).toSorted(),
    ).toEqual([
      ["t-bob", "hold", undefined, undefined],
      ["t-key", "password", undefined, undefined],
      ["t-news", "ignore", undefined, undefined],
      ["t-pdf", "open", undefined, rule],
      ["t-xml", "open", undefined, rule],
    ]);
    expect(await readdir(folder, { recursive: true })).toEqual(before);
    for (const { trackingId } of simulator.transfers()) {
      expect(requestsFor(simulator, trackingId)).toBe(0);
    }
    const text = await runProgram(dryRun);
    expect(text.stderr).toContain("2 would be opened, and then its files decide");
    expect(text.stderr).toContain(
      "1 would wait for a password; 1 would be held for an operator; 1 would be left out",
    );
  });

  test("once --dry-run exits with 4 if the service cannot be reached", async () => {
    const { config } = await install(SCENARIO, {
      service: { baseUrl: "http://127.0.0.1:9", clientId: "C".repeat(64) },
    });
    expect((await runProgram(["once", "--dry-run", "--config", config])).exitCode).toBe(4);
  });

  test("route explains the choice for a known transfer, and for one that is only described", async () => {
    const { config } = await install(SCENARIO, keys({ routes: ROUTES }));
    await runProgram(["once", "--config", config]);
    const route = (...args: string[]) => runProgram(["route", "--config", config, ...args]);
    const held = await route("t-bob");
    expect(held.exitCode).toBe(0);
    expect(held.stdout).toContain("The route held decides: it is held, until you release or discard it.");
    const delivered = await route("t-xml");
    expect(delivered.stdout).toContain("It is delivered. The route invoices decided, because the sender");
    expect(delivered.stdout).toContain(
      "By today's routes: the route invoices decides: it is delivered to invoices/",
    );
    const facts = "--sender x@supplier.example --subject s --file a.XML --json";
    const described = await route(...facts.split(" "));
    expect(JSON.parse(described.stdout)).toMatchObject({
      decision: { route: "invoices", action: "deliver" },
      routes: [{ match: "no" }, { match: "yes" }, { match: "no" }],
    });
    expect((await route()).exitCode).toBe(2);
    expect((await route("unknown-id")).exitCode).not.toBe(0);
  });

  test("release delivers a held transfer, retry explains itself, and list and show name the route", async () => {
    const { config, inbox } = await install(SCENARIO, keys({ routes: ROUTES, otherwise: "deliver" }));
    await runProgram(["once", "--config", config]);
    const run = (...args: string[]) => runProgram([...args, "--config", config]);
    const refused = await run("retry", "t-bob");
    expect([refused.exitCode, refused.stderr]).toEqual([2, expect.stringContaining("a route holds it")]);
    expect((await run("show", "t-bob")).stdout).toMatch(/Route +held, because the sender/);
    const rows = (await run("list", "--reason", "held", "--json")).stdout.trim().split("\n");
    expect(rows.map((row) => JSON.parse(row))).toMatchObject([{ trackingId: "t-bob", route: "held" }]);
    const released = await run("release", "t-bob", "--no-wait", "--yes");
    expect(released.exitCode).toBe(0);
    const once = await run("once");
    expect([once.exitCode, once.stderr]).toEqual([0, "1 delivered, 0 waiting, 0 quarantined, 0 gone.\n"]);
    expect(await readdir(join(inbox, MAILBOX, BOB))).toEqual(["t-bob"]);
  });
});
