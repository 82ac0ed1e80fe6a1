// @module-tag system
/** The shell consumer of docs/recipes.md, killed at every step and started twice. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { chmod, cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { installProgram } from "../support/debian.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import {
  type Finished,
  makeFolder,
  makeFolderElsewhere,
  runCommand,
  runProgram,
  startCommand,
} from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const SCRIPT = join(ROOT, "examples/consumers/take-transfers");
const OTHER = "archive@example.com";
const SENDER = "anna@supplier.example";

/** Every program that the script runs, and the one that it runs for each delivery. */
const PROGRAMS = ["mkdir", "stat", "findmnt", "flock", "find", "jq", "mv", "sha256sum", "sync"];
const BOOK = "book";

/** Counts the calls; at the wanted one it kills the process group, before or after the program has run. */
const SHIM = `#!/bin/sh
read -r step < "$ROOM/step" && step=$((step + 1)) && echo "$step" > "$ROOM/step"
[ "$KILL" != "before $step" ] || kill -9 0
PATH=$REST "\${0##*/}" "$@"
code=$?
[ "$KILL" != "after $step" ] || kill -9 0
exit "$code"
`;

/** Books a delivery once, however often it runs; and waits where a test wants it. */
const BOOKING = `#!/bin/sh
echo "$2" >> "$ROOM/calls"
while [ -e "$ROOM/wait" ]; do sleep 0.02; done
[ ! -e "$ROOM/fail" ] || exit 1
mkdir -p "$ROOM/booked/$2"
`;

beforeAll(() => installProgram("jq", "jq"));

describe("take-transfers", () => {
  test("takes each delivery once, also if two mailboxes received the same transfer", async () => {
    const room = await prepare();
    const { exitCode, stderr } = await room.take();
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(room.calls().toSorted()).toEqual(room.ids);
    expectAllBooked(room);
    expect(readdirSync(join(room.taken, "done", room.ids[0] ?? ""))).toContain("transfer.json");
    expect((await room.take()).exitCode).toBe(0);
    expect(room.calls()).toHaveLength(room.ids.length);
  });

  test("is killed at every step, and the next run takes the rest", async () => {
    const room = await prepare();
    const whole = await room.take();
    expect(whole.exitCode).toBe(0);
    const steps = room.steps();
    // Some programs run once, the others for each delivery.
    expect(steps).toBeGreaterThan(PROGRAMS.length + 4 * room.ids.length);
    const moments = Array.from({ length: steps }, (_, index) => `before ${index + 1}`);
    for (const moment of [...moments, `after ${steps}`]) {
      await room.reset();
      const killed = await room.take(moment);
      expect(killed.exitCode, moment).toBe(null);
      const next = await room.take();
      expect([next.exitCode, next.stderr], moment).toEqual([0, ""]);
      expectAllBooked(room);
      // Only the delivery that was in work is repeated, with the same id.
      expect(room.calls().length).toBeLessThanOrEqual(room.ids.length + 1);
    }
  });

  test("two at once share the work and repeat nothing", async () => {
    const room = await prepare();
    for (let round = 0; round < 5; round++) {
      await room.reset();
      // Two with the same folder, and one with its own.
      const own = join(room.folder, "own");
      const all = await Promise.all([room.take(), room.take(), room.take("", own)]);
      expect(all.map(({ exitCode, stderr }) => [exitCode, stderr])).toEqual(all.map(() => [0, ""]));
      expect(room.calls().toSorted()).toEqual(room.ids);
      const done = [room.taken, own].flatMap((taken) => readdirSync(join(taken, "done")));
      expect(done.toSorted()).toEqual(room.ids);
      expect(transfersIn(room.inbox)).toEqual([]);
      await rm(own, { recursive: true });
    }
  });

  test("does not start a second program while that of a killed run still works", async () => {
    const room = await prepare();
    await writeFile(join(room.folder, "wait"), "");
    const first = room.start();
    await expect.poll(() => room.calls()).toHaveLength(1);
    // Only the script itself: its program goes on.
    const gone = once(first, "exit");
    first.kill("SIGKILL");
    await gone;
    const second = room.start();
    const ended = once(second, "exit");
    await expect.poll(() => isWaitingForLock(second.pid ?? 0)).toBe(true);
    expect(room.calls()).toHaveLength(1);
    await rm(join(room.folder, "wait"));
    expect(await ended).toEqual([0, null]);
    expectAllBooked(room);
  });

  test("tries a delivery again whose program failed, and goes on with the others", async () => {
    const room = await prepare();
    await writeFile(join(room.folder, "fail"), "");
    const failed = await room.take();
    expect(failed.exitCode).toBe(1);
    expect(failed.stderr.match(/book failed for/g)).toHaveLength(room.ids.length);
    expect(readdirSync(join(room.taken, "claimed")).toSorted()).toEqual(room.ids);
    await rm(join(room.folder, "fail"));
    expect((await room.take()).exitCode).toBe(0);
    expectAllBooked(room);
  });

  test("does not hand over a changed folder, a copy, or a folder without an id, and says so", async () => {
    const room = await prepare();
    const t1 = join(room.inbox, MAILBOX, SENDER, "t1");
    await cp(t1, join(room.inbox, MAILBOX, SENDER, "copy"), { recursive: true });
    await writeFile(join(room.inbox, OTHER, SENDER, "t1/a.txt"), "changed");
    await mkdir(join(room.inbox, "foreign"));
    await writeFile(join(room.inbox, "foreign/transfer.json"), '{ "deliveryId": "../x" }');
    const { exitCode, stderr } = await room.take();
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/claimed\/[0-9a-f]{32} was changed after its delivery/);
    expect(stderr).toMatch(/is a copy of delivery [0-9a-f]{32}, which was already taken/);
    expect(stderr).toContain("foreign/transfer.json has no delivery id");
    expect(room.calls()).toHaveLength(room.ids.length - 1);
    expect(transfersIn(room.inbox)).toHaveLength(2);
  });

  test("refuses a folder on another mount, where mv would copy", async () => {
    const room = await prepare();
    const { exitCode, stderr } = await room.take("", await makeFolderElsewhere());
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("is not on the same mount as")]);
    expect(room.calls()).toEqual([]);
    // Mounts of the same file system, as systemd makes them.
    const taken = join(room.folder, "bound");
    const script = 'mkdir -p "$2" && mount --bind "$2" "$2" && exec "$0" "$1" "$2" true';
    const bound = await runCommand("unshare", ["-m", "sh", "-c", script, SCRIPT, room.inbox, taken]);
    expect([bound.exitCode, bound.stderr]).toEqual([
      1,
      expect.stringContaining("is not on the same mount as"),
    ]);
  });
});

interface Room {
  readonly folder: string;
  readonly inbox: string;
  readonly taken: string;
  /** Of all deliveries, sorted. */
  readonly ids: readonly string[];
  start(kill?: string, taken?: string): ChildProcess;
  take(kill?: string, taken?: string): Promise<Finished>;
  /** The delivery ids that the program got, in order. */
  calls(): string[];
  steps(): number;
  reset(): Promise<void>;
}

/** Three deliveries, of which two are the same transfer, and one has no files. */
async function prepare(): Promise<Room> {
  const transfers = [
    transferPlan({ trackingId: "t1", to: [MAILBOX, OTHER], message: "Psst" }),
    transferPlan({ trackingId: "t2", files: [] }),
  ];
  const mailboxes = [{ ...mailboxKeys(MAILBOX), verify: "prefer" }, mailboxKeys(OTHER)];
  const installed = await install({ transfers }, { mailboxes });
  expect((await runProgram(["once", "--config", installed.config])).exitCode).toBe(0);
  const folder = await makeFolder();
  const [inbox, taken, bin] = [join(folder, "inbox"), join(folder, "taken"), join(folder, "bin")];
  await mkdir(bin);
  for (const name of [...PROGRAMS, BOOK]) {
    await writeFile(join(bin, name), SHIM);
    await chmod(join(bin, name), 0o755);
  }
  await mkdir(join(folder, "rest"));
  await writeFile(join(folder, "rest", BOOK), BOOKING, { mode: 0o755 });
  const rest = `${join(folder, "rest")}:${process.env["PATH"]}`;
  const start = (kill = "", to = taken) => {
    const env = { ROOM: folder, KILL: kill, REST: rest, PATH: `${bin}:${rest}` };
    return startCommand("setsid", [SCRIPT, inbox, to, BOOK], { env });
  };
  const reset = async () => {
    for (const path of [inbox, taken, join(folder, "calls"), join(folder, "booked")])
      await rm(path, { recursive: true, force: true });
    await writeFile(join(folder, "step"), "0\n");
    await cp(installed.inbox, inbox, { recursive: true });
  };
  await reset();
  const ids = transfersIn(inbox)
    .map((path) => JSON.parse(readFileSync(path, "utf8")).deliveryId as string)
    .toSorted();
  expect(new Set(ids).size).toBe(3);
  return {
    ...{ folder, inbox, taken, ids, start, reset },
    take: async (kill, to) => {
      const child = start(kill, to);
      let stderr = "";
      child.stderr?.on("data", (chunk) => (stderr += chunk));
      const [exitCode] = await once(child, "close");
      return { exitCode, stdout: "", stderr };
    },
    calls: () => (existsSync(join(folder, "calls")) ? linesOf(join(folder, "calls")) : []),
    steps: () => Number(readFileSync(join(folder, "step"), "utf8")),
  };
}

function expectAllBooked({ folder, inbox, taken, ids }: Room): void {
  expect(readdirSync(join(folder, "booked")).toSorted()).toEqual(ids);
  expect(readdirSync(join(taken, "done")).toSorted()).toEqual(ids);
  expect(readdirSync(join(taken, "claimed"))).toEqual([]);
  expect(transfersIn(inbox)).toEqual([]);
}

/** The manifests of delivered folders. */
function transfersIn(inbox: string): string[] {
  return readdirSync(inbox, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith("/transfer.json") && !path.startsWith("."))
    .map((path) => join(inbox, path));
}

function linesOf(path: string): string[] {
  return readFileSync(path, "utf8").trim().split("\n");
}

/** The kernel lists a child's child, the real `flock`, as blocked. */
function isWaitingForLock(pid: number): boolean {
  const childrenOf = (parent: string) =>
    readFileSync(`/proc/${parent}/task/${parent}/children`, "utf8").split(" ").filter(Boolean);
  const blocked = readFileSync("/proc/locks", "utf8").matchAll(/-> FLOCK +\w+ +\w+ +(\d+) /g);
  const waiting = [...blocked].map(([, waiter]) => waiter ?? "");
  return childrenOf(String(pid)).some((shim) => childrenOf(shim).some((it) => waiting.includes(it)));
}
