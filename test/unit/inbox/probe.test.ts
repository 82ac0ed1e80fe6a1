import { chmod, chown, lutimes, mkdir, readdir, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { asFault } from "../../../src/base/faults.ts";
import { probeFolder } from "../../../src/inbox/probe.ts";
import { makeFolder, makeFolderElsewhere } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";

const NOW_MS = Date.parse("2026-03-01T12:00:00Z");

test("the probe of a file system finds that a local one does all that a delivery rests on, and leaves nothing behind", async () => {
  const folder = await makeFolder();
  await writeFile(join(folder, "mine"), "mine");
  expect(await probeFolder(folder, folder, NOW_MS, SIGNAL)).toEqual({
    sync: undefined,
    reachesInbox: true,
    rename: undefined,
    exclusiveCreate: undefined,
    hardLink: undefined,
    lock: undefined,
    longName: undefined,
  });
  expect(await readdir(folder)).toEqual(["mine"]);
});

test("the probe of a file system sees that an inbox on another file system cannot be reached, without a trace there", async () => {
  const folder = await makeFolder();
  const { reachesInbox } = await probeFolder(folder, await makeFolderElsewhere(), NOW_MS, SIGNAL);
  expect(reachesInbox).toBe(false);
  expect(await readdir(folder)).toEqual([]);
});

test("the probe of a file system takes away what a killed one has left, but not what may be another's, nor anything else", async () => {
  const folder = await makeFolder();
  const [old, young] = [".inlet-probe-0123456789ab", ".inlet-probe-ba9876543210"];
  for (const name of [old, young, ".inlet-probe-notes"]) {
    await mkdir(join(folder, name), { mode: 0o700 });
    await writeFile(join(folder, name, "file"), "");
  }
  const long = new Date(NOW_MS - 2 * 3_600_000);
  await utimes(join(folder, old), long, long);
  await utimes(join(folder, ".inlet-probe-notes"), long, long);
  await utimes(join(folder, young), new Date(NOW_MS), new Date(NOW_MS));
  await probeFolder(folder, folder, NOW_MS, SIGNAL);
  expect((await readdir(folder)).toSorted()).toEqual([young, ".inlet-probe-notes"]);
});

test("the probe of a file system leaves alone what only looks like its own: another user's, a link, and what others can write", {
  tags: ["system"],
}, async () => {
  const folder = await makeFolder();
  const names = ["0", "1", "2"].map((digit) => `.inlet-probe-${digit.repeat(12)}`);
  const [theirs = "", open = "", linked = ""] = names.map((name) => join(folder, name));
  for (const path of [theirs, open]) {
    await mkdir(path, { mode: 0o700 });
    await writeFile(join(path, "file"), "");
  }
  await chmod(open, 0o770);
  await chown(theirs, 16_000, 16_000);
  await symlink(open, linked);
  const long = new Date(NOW_MS - 2 * 3_600_000);
  for (const path of [theirs, open, linked]) await lutimes(path, long, long);
  await probeFolder(folder, folder, NOW_MS, SIGNAL);
  expect((await readdir(folder)).toSorted()).toEqual(names);
  for (const path of [theirs, open]) expect(await readdir(path)).toEqual(["file"]);
});

test("the probe of a file system says that nothing can be written, and leaves nothing behind when it is stopped", async () => {
  expect(await probeFolder("/proc", "/proc", NOW_MS, SIGNAL).catch(asFault)).toMatchObject({
    code: "DISK_REFUSED",
  });
  const folder = await makeFolder();
  await expect(probeFolder(folder, folder, NOW_MS, AbortSignal.abort())).rejects.toMatchObject({
    code: "STOPPED",
  });
  expect(await readdir(folder)).toEqual([]);
  const stop = new AbortController();
  const probing = probeFolder(folder, folder, NOW_MS, stop.signal);
  const ended = expect(probing).rejects.toMatchObject({ code: "STOPPED" });
  await expect.poll(() => readdir(folder)).toHaveLength(1);
  stop.abort();
  await ended;
  expect(await readdir(folder)).toEqual([]);
});
