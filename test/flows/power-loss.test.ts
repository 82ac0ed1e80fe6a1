// @module-tag system
/**
 * I1 whole or nothing, I2 once: the power is cut at every durable step of the daemon, on a real file system.
 *
 * The disk is ext4 on a loop device that is shut down without a flush: unsynced data is lost. Then it is mounted again,
 * which replays its journal, and the daemon is started again.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { AT_ONCE, PLANS } from "../support/crashes.ts";
import { findProgram } from "../support/debian.ts";
import type { Aftermath, DiskState, PowerTask } from "../support/power-loss-driver.ts";
import { childProgram, makeFolder, runCommand } from "../support/program.ts";
import { openTestSimulator } from "../support/service.ts";
import { oneIn } from "../support/thorough.ts";

/** There are some 40. */
const MIN_STEPS = 35;
/** After these steps all names are durable. */
const PROMISES = ["round ended", "content placed"];

/** Of a sample of all steps: it is chance which of them have something to lose. */
let lossy = 0;

describe("I1 whole or nothing, I2 once: a power cut at any step leads to the same end as an undisturbed run", () => {
  test.each([
    ["by single files", "files", 3, {}],
    ["by ZIP", "zip", 5, {}],
    ["after a check", "files", 3, { check: ["sha256sum --quiet -c SHA256SUMS"] }],
    ["in folders that do not exist yet", "files", 5, { isNew: true }],
  ] as const)(
    "%s",
    async (name, fetch, interval, more) => {
      const { url, clientId } = await openTestSimulator({ transfers: PLANS });
      const cutPower = await openPowerSwitch({ url, clientId, fetch, isNew: false, ...more });
      const every = oneIn(interval);
      const lanes = Array.from({ length: AT_ONCE }, (_, lane) =>
        cutPower((lane + 1) * every, AT_ONCE * every),
      );
      const [cuts, undisturbed] = divide((await Promise.all(lanes)).flat());
      expect(cuts.length * every).toBeGreaterThan(MIN_STEPS);
      expect(cuts.flatMap((aftermath) => findProblems(aftermath, undisturbed.end))).toEqual([]);
      const losses = cuts.filter(({ report, found }) => lostNames(report.names, found).length > 0);
      lossy += losses.length;
      process.stdout.write(`power cuts, ${name}: ${cuts.length}, of which ${losses.length} lost something\n`);
    },
    600_000,
  );

  test("some of these cuts have lost something: otherwise they would prove nothing", () => {
    expect(lossy).toBeGreaterThan(0);
  });
});

type Cut = Required<Aftermath>;

function divide(aftermaths: readonly Aftermath[]): [Cut[], Aftermath] {
  const undisturbed = aftermaths.find(({ report }) => report === undefined);
  if (undisturbed === undefined) throw new Error("no daemon ended without a cut");
  return [aftermaths.filter((aftermath): aftermath is Cut => aftermath.report !== undefined), undisturbed];
}

/** All problems after one cut, each with the violated invariant. */
function findProblems({ cut, report, found, end }: Cut, undisturbed: DiskState): string[] {
  const { deliveries } = found;
  const ledger = Object.entries(found.ledger);
  const partial = Object.keys(deliveries).filter(
    (folder) =>
      !isDeepStrictEqual(
        describeContent(found, `inbox/${folder}/`),
        describeContent(undisturbed, `inbox/${folder}/`),
      ),
  );
  // The ticket of another transfer, which is being written, promises nothing.
  const lost = lostNames(report.names, found).filter((name) => !name.includes(".ticket "));
  const promised = PROMISES.includes(report.step) ? lost : [];
  const isStaged = (id: string) => found.names.some((name) => name.includes(`/staging/${id}.`));
  const empty = ledger.filter(
    ([id, it]) => it.state === "delivered" && !(`${it.folder}` in deliveries) && !isStaged(id),
  );
  // Notes are not synced: only an end is durable.
  const takenBack = Object.entries(report.reported).filter(
    ([id, state]) => state === "delivered" && found.ledger[id]?.state !== "delivered",
  );
  const again = Object.entries(deliveries).filter(([folder, inode]) => end.deliveries[folder] !== inode);
  const [expected, actual] = [describeEnd(undisturbed), describeEnd(end)];
  return [
    ...partial.map((folder) => `I1 whole or nothing: ${folder} is not whole`),
    ...promised.map((name) => `I1 whole or nothing: ${name} was on the disk, and is lost`),
    ...empty.map(
      ([id]) => `I2 once: the record of ${id} says delivered, and there is neither folder nor stage`,
    ),
    ...takenBack.map(([id, state]) => `I2 once: ${id} was reported as ${state}, and its record was lost`),
    ...again.map(([folder]) => `I2 once: ${folder} was there, and was delivered again`),
    ...expected
      .filter((line) => !actual.includes(line))
      .map((line) => `at the end, this is missing: ${line}`),
    ...actual
      .filter((line) => !expected.includes(line))
      .map((line) => `at the end, this is too much: ${line}`),
  ].map((problem) => `cut ${cut}, ${report.step}: ${problem}`);
}

function lostNames(before: readonly string[], { names }: DiskState): string[] {
  return before.filter((name) => !names.includes(name));
}

/** Names, modes, sizes and digests. */
function describeContent({ names, digests }: DiskState, folder = ""): string[] {
  const files = Object.entries(digests).map(([path, digest]) => `inbox/${path} ${digest}`);
  return [...names, ...files].filter((line) => line.startsWith(folder));
}

function describeEnd(state: DiskState): string[] {
  const ledger = Object.entries(state.ledger).map(
    ([id, { state, folder }]) => `record of ${id}: ${state} ${folder}`,
  );
  return [...describeContent(state), ...ledger, ...state.leftOver];
}

/** Fails without root or loop devices: a skipped test would prove nothing. */
async function openPowerSwitch(
  service: Pick<PowerTask, "url" | "clientId" | "fetch" | "check" | "isNew">,
): Promise<(first: number, every: number) => Promise<Aftermath[]>> {
  if (process.getuid?.() !== 0) {
    throw new Error("a power cut needs root, to mount a file system: run this as root");
  }
  if (!existsSync("/dev/loop-control")) {
    throw new Error(
      "a power cut needs a loop device: `modprobe loop`, or give the container /dev/loop-control",
    );
  }
  const [unshare, mount, umount, mkfs, perl] = await Promise.all([
    findProgram("unshare", ["util-linux"]),
    findProgram("mount", ["mount"]),
    findProgram("umount", ["mount"]),
    findProgram("mkfs.ext4", ["e2fsprogs"]),
    findProgram("perl", ["perl-base"]),
  ]);
  const programs = { mount, umount, "mkfs.ext4": mkfs, perl };
  return async (first, every) => {
    const folder = await makeFolder();
    onTestFinished(() => expect.poll(() => loopDevicesOn(folder)).toEqual([]));
    const task: PowerTask = { ...service, folder, programs, first, every };
    // All processes of the namespace end with its first one, and its mounts with the last one.
    const alone = ["--mount", "--propagation", "private", "--pid", "--fork", "--kill-child"];
    const args = [...alone, process.execPath, childProgram("power-loss-driver"), JSON.stringify(task)];
    const { exitCode, stdout, stderr } = await runCommand(unshare.path, args, {
      env: unshare.env,
    });
    if (exitCode !== 0 || stderr !== "") {
      throw new Error(`no power cut (it takes root with CAP_SYS_ADMIN, loop devices and ext4): ${stderr}`);
    }
    return stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
}

/** Loop devices backed by a file in the folder. */
function loopDevicesOn(folder: string): string[] {
  return readdirSync("/sys/block").filter((device) => {
    try {
      return readFileSync(join("/sys/block", device, "loop/backing_file"), "utf8").startsWith(`${folder}/`);
    } catch {
      return false; // It is no loop device, or a free one.
    }
  });
}
