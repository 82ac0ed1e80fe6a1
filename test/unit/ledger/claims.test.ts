import { mkdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { Claims } from "../../../src/ledger/claims.ts";
import { type LedgerPaths, ledgerPaths } from "../../../src/ledger/paths.ts";
import { diskAround } from "../../support/disk-steps.ts";
import { makeFolder } from "../../support/program.ts";

const A = `t1.${"a".repeat(32)}~1`;
const B = `t2.${"b".repeat(32)}~1`;
const NAMES = ["x", "y"];

describe("a claim", () => {
  test("belongs to one delivery until it is released", async () => {
    const { claims, paths } = await openClaims();
    expect(await claims.take(A, NAMES)).toEqual(NAMES);
    expect(await claims.take(A, NAMES)).toEqual([]);
    expect(await claims.take(B, ["z", "y"])).toBeUndefined();
    await claims.release(A, NAMES);
    expect(await claims.take(B, ["z", "y"])).toEqual(["z", "y"]);
    expect(await systemDisk.list(paths.temporary)).toEqual([]);
  });

  test("is cleared once its delivery is over, and so is a folder that a power cut has emptied", async () => {
    const { claims, paths } = await openClaims();
    await claims.take(A, ["x"]);
    await claims.take(B, ["y"]);
    await mkdir(join(paths.names, "0"));
    await claims.clear(async (owner) => owner === A);
    expect(await claims.take(B, NAMES)).toEqual(["x"]);
    expect(await systemDisk.list(paths.names)).toHaveLength(2);
  });

  test("can replace a folder that a power cut has emptied", async () => {
    const { claims, paths } = await openClaims();
    await claims.take(A, ["x"]);
    const [digest = ""] = await systemDisk.list(paths.names);
    await rmdir(join(paths.names, digest, A));
    expect(await claims.take(B, ["x"])).toEqual(["x"]);
  });

  test("counts on a full disk too, which refuses new ones", async () => {
    const { claims, paths } = await openClaims();
    await claims.take(A, ["x"]);
    const refuse = () => Promise.reject(Object.assign(new Error("full"), { code: "ENOSPC" }));
    const others = new Claims({ ...systemDisk, makeFolder: refuse }, paths);
    expect(await others.take(A, ["x"])).toEqual([]);
    await expect(others.take(A, ["y"])).rejects.toThrow("full");
    expect(await others.take(B, ["x"])).toBeUndefined();
  });

  test("takes three calls, none while its maker uses it, and two to release", async () => {
    const { claims, calls } = await openClaims();
    await claims.take(A, ["x"]);
    expect(calls.splice(0)).toEqual(["makeFolder", "makeFolder", "rename"]);
    await claims.take(A, ["x"]);
    expect(calls.splice(0)).toEqual([]);
    await claims.release(A, ["x"]);
    expect(calls).toEqual(["removeFolder", "removeFolder"]);
    expect(await claims.take(A, ["x"])).toEqual(["x"]);
  });

  const removals = {
    releases: (claims: Claims) => claims.release(A, NAMES),
    clears: (claims: Claims) => claims.clear(async (owner) => owner === A),
  };
  test.each(Object.entries(removals))(
    "stays if it was made while another process, which %s earlier claims, paused at any step",
    async (_, remove) => {
      let steps = 0;
      for (let hasPaused = true; hasPaused; ) {
        const { claims, paths } = await openClaims();
        await claims.take(A, NAMES);
        hasPaused = false;
        const paused = pausedAt(++steps, async () => {
          hasPaused = true;
          await claims.clear(async (owner) => owner === A);
          expect(await claims.take(B, NAMES)).toEqual(NAMES);
        });
        await remove(new Claims(paused, paths));
        expect(await new Claims(systemDisk, paths).take(B, NAMES)).toEqual(hasPaused ? [] : NAMES);
      }
      expect(steps).toBeGreaterThan(4);
    },
  );
});

/** `calls`: the names of the steps of the disk so far. */
async function openClaims(): Promise<{ claims: Claims; paths: LedgerPaths; calls: string[] }> {
  const paths = ledgerPaths(await makeFolder());
  for (const path of [paths.names, paths.temporary]) await mkdir(path);
  const calls: string[] = [];
  const disk = diskAround((name, run) => {
    calls.push(name);
    return run();
  });
  return { claims: new Claims(disk, paths), paths, calls };
}

/** The disk of a process that pauses before a step, while others work. */
function pausedAt(step: number, work: () => Promise<void>): Disk {
  let left = step;
  return diskAround(async (_, run) => {
    if (--left === 0) await work();
    return run();
  });
}
