/** Mailboxes with inboxes of their own: I1, I2 and I5 hold in each of them, and after changes of the configuration. */
import { readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { peekLedger } from "../../src/ledger/peek.ts";
import { startRun } from "../support/command.ts";
import { daemonSettings, readTree, runOnce, startDaemon } from "../support/daemon.ts";
import { makeHandoff } from "../support/handoff.ts";
import { observeInbox } from "../support/inbox-observer.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { makeFolderElsewhere, runProgram } from "../support/program.ts";
import { accept, openReceiver } from "../support/receiver.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";

const [SALES, HR] = ["sales@example.com", "hr@example.com"];
const SENDER = "anna@supplier.example";

describe("two mailboxes with two inboxes", () => {
  test("get their transfers in their own inbox, and the hand-off names the right folder", async () => {
    const receiver = await openReceiver(accept);
    const { settings, sales, hr } = await setUp([SALES, HR, MAILBOX]);
    const notes = join(settings.state, "..", "notes");
    const handoff = makeHandoff({
      command: ["sh", "-c", 'echo "$INLET_TRACKING_ID $INLET_FOLDER" >> "$0"', notes],
      webhook: receiver.url,
    });
    const observers = [sales, hr].map((inbox) => observeInbox(inbox));
    const daemon = await runOnce({ ...settings, handoff });
    for (const observer of observers) observer.close();
    expect(observers.flatMap(({ problems }) => problems)).toEqual([]);
    expect(await foldersIn(sales)).toEqual([`${SALES}/${SENDER}/t0`]);
    expect(await foldersIn(hr)).toEqual([`${HR}/${SENDER}/t1`]);
    expect(await foldersIn(settings.inbox)).toEqual([`${MAILBOX}/${SENDER}/t2`]);
    const expected = [
      `t0 ${sales}/${SALES}/${SENDER}/t0`,
      `t1 ${hr}/${HR}/${SENDER}/t1`,
      `t2 ${settings.inbox}/${MAILBOX}/${SENDER}/t2`,
    ];
    expect((await readFile(notes, "utf8")).trim().split("\n").toSorted()).toEqual(expected);
    const bodies = receiver.calls.map(({ body }) => JSON.parse(body));
    expect(
      Object.fromEntries(bodies.map(({ trackingId, inbox, folder }) => [trackingId, [inbox, folder]])),
    ).toEqual({
      t0: [sales, `${SALES}/${SENDER}/t0`],
      t1: [hr, `${HR}/${SENDER}/t1`],
      t2: [undefined, `${MAILBOX}/${SENDER}/t2`],
    });
    expect(daemon.changes.filter(({ state }) => state === "delivered")).toHaveLength(3);
    const views = await Array.fromAsync(peekLedger(settings).all());
    expect(Object.fromEntries(views.map(({ trackingId, inbox }) => [trackingId, inbox]))).toEqual({
      t0: sales,
      t1: hr,
      t2: undefined,
    });
  });

  test("pick-up, acknowledgement and removal are seen in the mailbox's own inbox, and a missing inbox delays no other", async () => {
    const { settings, sales, hr, simulator } = await setUp([SALES, HR]);
    const handoff = makeHandoff({ acknowledgement: "done", keep: { pickedUpMs: 1 } });
    const daemon = startDaemon({ ...settings, handoff });
    await expect.poll(() => daemon.stateOf("t0")).toBe("delivered");
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    await rename(join(sales, SALES, SENDER, "t0"), join(sales, "..", "mine"));
    await writeFile(join(hr, HR, SENDER, "t1", "done"), "");
    await expect.poll(() => daemon.handoffs).toContain("t0: taken");
    await expect.poll(() => daemon.handoffs).toContain("t1: acknowledged");
    await expect.poll(() => daemon.handoffs, { timeout: 20_000 }).toContain("t1: removed after picked-up");
    expect(await readTree(hr)).toEqual({});
    // The other inbox is renamed: nothing in it counts as picked up.
    simulator.addTransfer(transferPlan({ trackingId: "t3", to: [SALES] }));
    await expect.poll(() => daemon.stateOf("t3")).toBe("delivered");
    await rename(sales, `${sales}-away`);
    simulator.addTransfer(transferPlan({ trackingId: "t5", to: [SALES] }));
    simulator.addTransfer(transferPlan({ trackingId: "t4", to: [HR] }));
    await expect.poll(() => daemon.stateOf("t4")).toBe("delivered");
    await expect.poll(() => daemon.stateOf("t5")).toBe("waiting");
    expect(daemon.changes.findLast(({ state }) => state === "waiting")).toMatchObject({
      reason: "disk",
      code: "INBOX_MISSING",
      message: expect.stringContaining(sales),
    });
    expect(await readdir(join(sales, ".."))).not.toContain("sales");
    await writeFile(join(hr, HR, SENDER, "t4", "done"), "");
    await expect.poll(() => daemon.handoffs).toContain("t4: acknowledged");
    expect(daemon.handoffs).not.toContain("t3: taken");
    await rename(`${sales}-away`, sales);
    await expect.poll(() => daemon.stateOf("t5")).toBe("delivered");
    expect(await foldersIn(sales)).toEqual([`${SALES}/${SENDER}/t3`, `${SALES}/${SENDER}/t5`]);
  });
});

describe("an inbox on another file system", () => {
  test("is refused by a reload, and the old settings stay in force", async () => {
    const { config, rewrite, folder, simulator } = await install({ transfers: [] });
    const elsewhere = await makeFolderElsewhere();
    const { logged } = startRun(config);
    await expect.poll(() => simulator.totals().received ?? 0).toBeGreaterThan(0);
    await rewrite({ mailboxes: [{ ...mailboxKeys(MAILBOX), inbox: elsewhere }] });
    await expect.poll(logged).toContain("INBOX_APART");
    const own = join(folder, "own");
    await rewrite({ mailboxes: [{ ...mailboxKeys(MAILBOX), inbox: own }] });
    await expect.poll(logged).toContain("the configuration was reloaded");
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expect.poll(() => foldersIn(own)).toEqual([`${MAILBOX}/${SENDER}/t1`]);
    const { stdout } = await runProgram(["list", "--config", config, "--json"]);
    expect(JSON.parse(stdout)).toMatchObject({ inbox: own, folder: `${MAILBOX}/${SENDER}/t1` });
    const shown = await runProgram(["show", "t1", "--config", config]);
    expect(shown.stdout).toContain(join(own, MAILBOX, SENDER, "t1"));
  });
});

/** Mailboxes with one transfer each: `t0`, `t1` …. The first two have inboxes of their own. */
async function setUp(names: readonly string[]) {
  const plans = names.map((to, at) => transferPlan({ trackingId: `t${at}`, to: [to] }));
  const simulator = await openTestSimulator({ transfers: plans });
  const settings = await daemonSettings(
    names.map((name) => mailboxSettings(simulator, { name, email: name })),
  );
  const [sales, hr] = [join(settings.inbox, "../sales"), join(settings.inbox, "../hr")];
  const mailboxes = settings.mailboxes.map((mailbox, at) => ({
    ...mailbox,
    ...(at < 2 ? { inbox: [sales, hr][at] } : {}),
  }));
  return { simulator, settings: { ...settings, mailboxes }, sales, hr };
}

/** Delivered folders below an inbox, relative to it. */
async function foldersIn(inbox: string): Promise<string[]> {
  const files = Object.keys(await readTree(inbox));
  return files
    .filter((path) => path.endsWith("/transfer.json"))
    .map((path) => path.slice(0, -"/transfer.json".length));
}
