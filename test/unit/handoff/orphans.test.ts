/** Commands that outlived their daemon: real processes, known by their environment. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Orphans } from "../../../src/handoff/orphans.ts";
import { deliveryId } from "../../../src/model/manifest.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";
import { openBench } from "./bench.ts";

const PATIENCE = { scanMs: 20, killMs: 300 };
const LONG_MS = 60_000;
/** Other tests at the same time have commands too, which must not have the same ids. */
const TRANSFER = `orphan-${newId()}`;

test("an orphan is waited for, nothing happens to others, and no process of a delivery means that its command may run", async () => {
  const id = newId();
  await using orphan = start(id);
  await using other = start(newId());
  const orphans = new Orphans(PATIENCE);
  let isOver = false;
  const clearing = orphans.clear(id, LONG_MS, SIGNAL).finally(() => {
    isOver = true;
  });
  // Each of these needs a scan of its own.
  for (let scans = 0; scans < 5; scans++) expect(await orphans.clear(newId(), LONG_MS, SIGNAL)).toBe(true);
  expect(isOver).toBe(false);
  orphan.child.kill("SIGKILL");
  expect(await clearing).toBe(true);
  expect([orphan.child.signalCode, other.child.exitCode]).toEqual(["SIGKILL", null]);
});

test("an orphan that takes too long is ended with its children, by force if need be", async () => {
  const id = newId();
  const note = join(await makeFolder(), "note");
  // It and its child ignore SIGTERM, and the child has another environment.
  const loop = "while :; do sleep 0.1; done";
  const script = `trap "" TERM; env -i sh -c '${loop}' & echo $! > ${note}.new; mv ${note}.new ${note}; ${loop}`;
  await using orphan = start(id, script);
  await using polite = start(id);
  await expect.poll(() => existsSync(note)).toBe(true);
  const child = (await readFile(note, "utf8")).trim();
  expect(await new Orphans(PATIENCE).clear(id, 0, SIGNAL)).toBe(true);
  expect(polite.child.signalCode).toBe("SIGTERM");
  expect(orphan.child.signalCode).toBe("SIGKILL");
  await expect.poll(() => isAlive(child)).toBe(false);
});

test("a stop ends the wait, and the orphan lives on", async () => {
  const id = newId();
  await using orphan = start(id);
  const stop = new AbortController();
  const clearing = new Orphans(PATIENCE).clear(id, LONG_MS, stop.signal);
  stop.abort();
  expect(await clearing).toBe(false);
  expect(orphan.child.signalCode).toBeNull();
});

test("what a failed attempt leaves running is ended before the next attempt, after the time limit of the command", async () => {
  const note = join(await makeFolder(), "note");
  const bench = await openBench({
    command: ["sh", "-c", 'sleep 60 > /dev/null 2>&1 & echo $! >> "$0"; exit 1', note],
    commandTimeoutMs: 1_000,
  });
  const { record } = await bench.deliver(TRANSFER);
  const id = deliveryId(bench.ledger.nameOf(record), record.round);
  const handoffs = await bench.open();
  await handoffs.prepare(record);
  onTestFinished(async () => void (await new Orphans(PATIENCE).clear(id, 0, SIGNAL)));
  handoffs.placed(record);
  await expect.poll(() => bench.told.length).toBeGreaterThan(0);
  const [first = ""] = (await readFile(note, "utf8")).split("\n");
  // The wait between two attempts is one of the real clock.
  const finish = () => handoffs.finish().then(() => bench.told.length);
  await expect.poll(finish).toBeGreaterThan(1);
  expect(bench.told.slice(0, 2)).toEqual([`${TRANSFER}: command failed`, `${TRANSFER}: command failed`]);
  expect(isAlive(first)).toBe(false);
});

/** A process that has ended may not be reaped yet. */
function isAlive(pid: string): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

function newId(): string {
  return randomBytes(16).toString("hex");
}

/** A process as a command of this delivery would be. */
function start(id: string, script = "while :; do sleep 0.1; done") {
  const env = { PATH: process.env["PATH"] ?? "", INLET_EVENT: "delivered", INLET_ID: id };
  const child: ChildProcess = spawn("sh", ["-c", script], { env, detached: true, stdio: "ignore" });
  return {
    child,
    async [Symbol.asyncDispose]() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      const isOver = child.exitCode !== null || child.signalCode !== null;
      try {
        process.kill(-(child.pid ?? 0), "SIGKILL");
      } catch {}
      if (!isOver) await ended;
    },
  };
}
