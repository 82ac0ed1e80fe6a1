/** The hand-off: commands and webhooks that are slow, failing or killed, and consumers that are faster than Inlet. */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Settings } from "../../src/config/settings.ts";
import { peekLedger } from "../../src/ledger/peek.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { type HandoffTask, makeHandoff, WEBHOOK_SECRET } from "../support/handoff.ts";
import { end, logOf, makeFolder, startChild } from "../support/program.ts";
import { accept, hang, openReceiver, refuse } from "../support/receiver.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";

const SENDER = "anna@supplier.example";

/** Appends its id and transfer to a file. */
const NOTE = 'echo "$INLET_ID $INLET_TRACKING_ID" >> "$0"';

describe("the command", () => {
  test("gets the facts of the delivery, and nothing else of the daemon's environment", async () => {
    const { settings, folder } = await prepare(({ note }) => ({
      command: [
        process.execPath,
        "-e",
        "fs.writeFileSync(process.argv[1], JSON.stringify({ env: process.env, cwd: process.cwd() }))",
        note,
      ],
    }));
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.handoffs).toEqual(["t1: command done"]);
    const { env, cwd } = JSON.parse(readFileSync(folder.note, "utf8"));
    // No folder in which a sender can put code that the command loads.
    expect(cwd).toBe("/");
    expect(env).toEqual({
      PATH: process.env["PATH"],
      INLET_EVENT: "delivered",
      INLET_ID: expect.stringMatching(/^[0-9a-f]{32}$/),
      INLET_FOLDER: join(settings.inbox, MAILBOX, SENDER, "t1"),
      INLET_MANIFEST: join(settings.inbox, MAILBOX, SENDER, "t1/transfer.json"),
      INLET_MAILBOX: MAILBOX,
      INLET_SENDER: SENDER,
      INLET_TRACKING_ID: "t1",
      INLET_TO: MAILBOX,
      INLET_CC: "",
      INLET_SECURITY_MODE: "ONE_TIME_PASSWORD",
      INLET_PASSWORD_MODE: "MANUAL",
      INLET_TRANSFER_ID: expect.stringMatching(/./),
      INLET_VERIFIED: "all",
      INLET_DELIVERED_AT: expect.stringMatching(/^20.*Z$/),
    });
  });

  test("that is slow does not delay other transfers", async () => {
    const names = Array.from({ length: 8 }, (_, at) => `t${at}`);
    const { settings, folder } = await prepare(
      ({ note, go }) => ({
        command: ["sh", "-c", `while ! [ -e "$1" ]; do sleep 0.05; done; ${NOTE}`, note, go],
      }),
      names,
    );
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.changes.filter(({ state }) => state === "delivered")).toHaveLength(8);
    expect(daemon.handoffs).toEqual([]);
    await writeFile(folder.go, "");
    await expect.poll(() => daemon.handoffs.length).toBe(8);
    expect(notes(folder.note).toSorted()).toHaveLength(8);
  });

  test("is run before `once` ends, which reports its failure", async () => {
    const { settings, folder } = await prepare(({ note, go }) => ({
      command: ["sh", "-c", `${NOTE}; [ -e "$1" ]`, note, go],
    }));
    expect((await (await runOnce(settings)).outcome).unsettled).toBe(1);
    expect(new Set(notes(folder.note)).size).toBe(1);
    await writeFile(folder.go, "");
    await expect.poll(async () => (await (await runOnce(settings)).outcome).unsettled).toBe(0);
    expect(new Set(notes(folder.note)).size).toBe(1);
  });
});

describe("the webhook", () => {
  test("is signed, and called again with the same key until it is accepted", async () => {
    const receiver = await openReceiver(
      refuse(500),
      refuse(302, { location: "/elsewhere" }),
      refuse(429, { "retry-after": "0" }),
      hang,
      accept,
    );
    const { settings } = await prepare(() => ({ webhook: receiver.url, webhookTimeoutMs: 300 }));
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.handoffs.at(-1)).toBe("t1: webhook done");
    expect(daemon.handoffs.slice(0, -1).map((line) => line.replace(/.*the call: /, "").trim())).toEqual([
      "it answered with status 500",
      "it answered with status 302, and redirects are not followed",
      "it answered with status 429",
      "no answer within 0.3 s",
    ]);
    expect(daemon.handoffs.join()).not.toContain("in-the-query");
    expect(new Set(receiver.calls.map(({ path }) => path))).toEqual(new Set(["/hook?token=in-the-query"]));
    expect(new Set(receiver.calls.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
    for (const { headers, body } of receiver.calls) {
      const [, seconds, signature] =
        /^t=(\d+),v1=([0-9a-f]{64})$/.exec(String(headers["inlet-signature"])) ?? [];
      expect(createHmac("sha256", WEBHOOK_SECRET).update(`${seconds}.${body}`).digest("hex")).toBe(signature);
      expect(headers["content-type"]).toBe("application/json");
      expect(JSON.parse(body)).toEqual({
        version: 1,
        event: "delivered",
        id: headers["idempotency-key"],
        mailbox: MAILBOX,
        recipients: { to: [MAILBOX], cc: [] },
        securityMode: "ONE_TIME_PASSWORD",
        passwordMode: "MANUAL",
        sender: SENDER,
        trackingId: "t1",
        transferId: expect.stringMatching(/./),
        folder: `${MAILBOX}/${SENDER}/t1`,
        manifest: `${MAILBOX}/${SENDER}/t1/transfer.json`,
        deliveredAt: expect.stringMatching(/^20.*Z$/),
        verified: "all",
      });
    }
  });
});

describe("a folder is picked up", () => {
  test("when it holds the acknowledgement, which a sender's file cannot be", async () => {
    const { simulator, settings } = await prepare(() => ({ acknowledgement: "GOT-IT" }), []);
    simulator.addTransfer(
      transferPlan({ trackingId: "t1", files: [{ name: "GOT-IT", text: "by the sender" }] }),
    );
    const daemon = startDaemon(settings);
    await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
    await expect.poll(() => handoffsOf(settings).length).toBe(1);
    const folder = join(settings.inbox, MAILBOX, SENDER, "t1");
    expect(existsSync(join(folder, "GOT-IT"))).toBe(false);
    await writeFile(join(folder, "GOT-IT"), "");
    await expect.poll(() => daemon.handoffs).toEqual(["t1: acknowledged"]);
    await expect.poll(async () => (await recordOf(settings))?.state).toBe("picked-up");
    expect(existsSync(folder)).toBe(true);
  });

  test("but not by a sender's file whose name became the acknowledgement during the download", async () => {
    const files = [{ name: "DONE", generate: { bytes: 100_000 } }];
    const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1", files })] });
    simulator.addFault({ on: "file", does: { kind: "drip", bytes: 5_000, pauseMs: 50 } });
    const settings = await daemonSettings([mailboxSettings(simulator)]);
    const daemon = startDaemon(settings);
    await expect.poll(() => simulator.totals().file).toBe(1);
    const handoff = makeHandoff({ acknowledgement: "DONE", expectWithinMs: 1, keep: { pickedUpMs: 0 } });
    await daemon.reload({ ...settings, handoff });
    expect(daemon.stateOf("t1")).toBe("downloading");
    await expect.poll(() => daemon.handoffs).toEqual(["t1: overdue"]);
    const folder = join(settings.inbox, MAILBOX, SENDER, "t1");
    expect(await readdir(folder)).toContain("DONE");
    await rm(folder, { recursive: true });
    await expect.poll(() => daemon.handoffs.at(-1)).toBe("t1: taken");
  });
});

test("each mailbox has a hand-off of its own: command, modes, marker, acknowledgement and retention", async () => {
  const other = "invoices@example.com";
  const simulator = await openTestSimulator({
    transfers: [
      transferPlan({ trackingId: "t1" }),
      transferPlan({ trackingId: "t2", to: [other] }),
      transferPlan({ trackingId: "t3", to: [MAILBOX, other] }),
    ],
  });
  const [common, own] = [join(await makeFolder(), "note"), join(await makeFolder(), "note")];
  const commonHandoff = makeHandoff({ command: ["sh", "-c", NOTE, common], acknowledgement: "done" });
  const ownTask = {
    command: ["sh", "-c", NOTE, own],
    acknowledgement: "taken",
    keep: { pickedUpMs: 1 },
  } as const;
  const ownHandoff = { ...makeHandoff(ownTask, 0o600, "ready"), folderMode: 0o700 };
  const mailboxes = [
    mailboxSettings(simulator),
    mailboxSettings(simulator, { name: other, email: other, handoff: ownHandoff }),
  ];
  const settings = await daemonSettings(mailboxes, { handoff: commonHandoff });
  const daemon = startDaemon(settings);
  await expect.poll(() => daemon.handoffs.length).toBe(4);
  const transfersIn = (path: string) => notes(path).map((line) => line.split(" ")[1]);
  expect([transfersIn(common).toSorted(), transfersIn(own).toSorted()]).toEqual([
    ["t1", "t3"],
    ["t2", "t3"],
  ]);
  const folderOf = (mailbox: string) => join(settings.inbox, mailbox, SENDER, "t3");
  const modeOf = (path: string) => statSync(path).mode & 0o777;
  expect([modeOf(folderOf(MAILBOX)), modeOf(join(folderOf(MAILBOX), "a.txt"))]).toEqual([0o750, 0o640]);
  expect([modeOf(folderOf(other)), modeOf(join(folderOf(other), "a.txt"))]).toEqual([0o700, 0o600]);
  expect(modeOf(join(settings.inbox, other))).toBe(0o700);
  expect(existsSync(join(folderOf(other), "ready"))).toBe(true);
  expect(existsSync(join(folderOf(MAILBOX), "ready"))).toBe(false);
  for (const mailbox of [MAILBOX, other]) {
    for (const name of ["done", "taken"]) await writeFile(join(folderOf(mailbox), name), "");
  }
  // Only the other mailbox removes acknowledged folders.
  const events = ["t3: acknowledged", "t3: acknowledged", "t3: removed after picked-up"];
  await expect.poll(() => daemon.handoffs.slice(4).toSorted()).toEqual(events);
  expect([MAILBOX, other].map((mailbox) => existsSync(folderOf(mailbox)))).toEqual([true, false]);
});

test("of two daemons on Redis, one takes over the hand-off of the killed one, for the same delivery", {
  tags: ["system"],
}, async () => {
  const [redis, folder] = [await startRedis(), await makeFolder()];
  const [note, go] = [join(folder, "note"), join(folder, "go")];
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const { url, clientId } = simulator;
  const command = ["sh", "-c", `${NOTE}; while ! [ -e "$1" ]; do sleep 0.05; done`, note, go];
  const task = { url, clientId, folder, redis: redis.url, lockMs: 2_000, handoff: { command } };
  const start = () => startChild(task);
  const first = start();
  await expect.poll(() => notes(note).length).toBe(1);
  const second = start();
  const logged = logOf(second);
  await expect.poll(logged).toContain('"msg":"ready"');
  first.kill("SIGKILL");
  await once(first, "exit");
  expect(notes(note)).toHaveLength(1);
  // The orphaned command ends, and only then it is run again.
  await writeFile(go, "");
  await expect.poll(() => notes(note).length).toBe(2);
  expect(new Set(notes(note)).size).toBe(1);
  await expect.poll(logged).toContain('"msg":"handed over"');
  await rm(join(folder, "inbox", MAILBOX, SENDER, "t1"), { recursive: true });
  await expect.poll(logged).toContain('"msg":"picked up"');
  await end(second);
});

/** A service with these transfers, and settings with this hand-off. */
async function prepare(
  task: (folder: { note: string; go: string }) => HandoffTask,
  names: readonly string[] = ["t1"],
) {
  const transfers = names.map((trackingId) => transferPlan({ trackingId }));
  const simulator = await openTestSimulator({ transfers });
  const own = await makeFolder();
  const folder = { note: join(own, "note"), go: join(own, "go") };
  const handoff = makeHandoff(task(folder));
  const settings = await daemonSettings([mailboxSettings(simulator)], { handoff });
  return { simulator, settings, folder };
}

function notes(path: string): string[] {
  return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
}

function recordOf(settings: Settings) {
  return peekLedger(settings).find({ mailbox: MAILBOX, trackingId: "t1" });
}

function handoffsOf({ work }: Settings): string[] {
  return readdirSync(join(work, "outbox")).filter((name) => /\.(json|wait|kept)$/.test(name));
}
