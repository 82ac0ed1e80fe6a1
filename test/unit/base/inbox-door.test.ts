/** I5 no escape: the door opens the folders of an inbox one by one, and follows no link below the inbox's root. */
import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import { mkdir, readdir, rename, rm, rmdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Disk, FolderSyncs, systemDisk } from "../../../src/base/disk.ts";
import { InboxDoor, type InboxFolder, isPlainName } from "../../../src/base/inbox-door.ts";
import { makeFolder } from "../../support/program.ts";

const PATH = "a/b/c";
const DEPTHS = ["a", "a/b", "a/b/c"];

describe("a folder of an inbox", () => {
  test.each(DEPTHS)("is refused if %s is a link, to a folder or to nothing, or a file", async (depth) => {
    const { inbox, outside, door, actions, entries } = await setUp();
    const expectRefused = async (what: string) => {
      const message = expect.stringContaining(`${inbox}/${depth} is a ${what}`);
      await expectRefusal(actions(door), { code: "TARGET_UNSAFE", message });
      await rm(join(inbox, depth));
    };
    await rm(join(inbox, depth), { recursive: true });
    for (const target of [outside, inbox, "nowhere"]) {
      await symlink(target, join(inbox, depth));
      await expectRefused("link");
    }
    await writeFile(join(inbox, depth), "");
    await expectRefused("file");
    expect(entries()).toEqual([]);
  });

  test.each(DEPTHS)(
    "stays the folder that was opened if %s is replaced with a link before the work",
    async (depth) => {
      const { inbox, outside, door, entries } = await setUp();
      await mkdir(join(outside, "b/c"), { recursive: true });
      const before = entries();
      const swap = async () => {
        await rename(join(inbox, depth), join(inbox, "moved"));
        await symlink(outside, join(inbox, depth));
      };
      await door.inMadeFolder(inbox, PATH, make, async (folder) => {
        await swap();
        await writeFile(folder.at("new"), "");
        await rename(folder.at("new"), folder.at("renamed"));
        await mkdir(folder.at("folder"));
        await rmdir(folder.at("folder"));
        await folder.sync();
      });
      expect(entries()).toEqual(before);
      const moved = join(inbox, "moved", PATH.slice(depth.length));
      expect(await readdir(moved)).toEqual(["renamed"]);
    },
  );

  test.each(DEPTHS)(
    "is not reached through %s if that is replaced with a link while the way is opened",
    async (depth) => {
      const { inbox, outside, entries } = await setUp();
      await mkdir(join(outside, "b/c"), { recursive: true });
      const before = entries();
      let opened = 0;
      // Right after the folder itself was opened: its path leads elsewhere from then on.
      const disk: Disk = {
        ...systemDisk,
        async openFolder(path, link) {
          const folder = await systemDisk.openFolder(path, link);
          if (opened++ === DEPTHS.indexOf(depth) + 1) {
            await rename(join(inbox, depth), join(inbox, "moved"));
            await symlink(outside, join(inbox, depth));
          }
          return folder;
        },
      };
      await new InboxDoor(disk).inFolder(inbox, PATH, (folder) => writeFile(folder.at("new"), ""));
      expect(entries()).toEqual(before);
      expect(await readdir(join(inbox, "moved", PATH.slice(depth.length)))).toEqual(["new"]);
    },
  );

  test("may be in an inbox that is reached through links", async () => {
    const { inbox, outside, door } = await setUp();
    await symlink(inbox, join(outside, "link"));
    await door.inFolder(join(outside, "link"), PATH, (folder) => writeFile(folder.at("new"), ""));
    await door.inFolder(join(outside, "link"), "", (folder) => writeFile(folder.at("new"), ""));
    expect(await readdir(join(inbox, PATH))).toEqual(["new"]);
    expect((await readdir(inbox)).toSorted()).toEqual(["a", "new"]);
  });

  test("is made with the folders above it, and again if a consumer removes them during the work, some times", async () => {
    const { inbox, door } = await setUp();
    let runs = 0;
    const work = (removals: number) => async (folder: InboxFolder) => {
      if (runs++ < removals) await rm(join(inbox, "d"), { recursive: true });
      await writeFile(folder.at("new"), "");
    };
    await door.inMadeFolder(inbox, "d/e/f", make, work(3));
    expect([runs, await readdir(join(inbox, "d/e/f"))]).toEqual([4, ["new"]]);
    const endless = door.inMadeFolder(inbox, "d/e", make, work(Number.POSITIVE_INFINITY));
    await expect(endless).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("that another process makes at the same time is used, unless it made a link or a file", async () => {
    const { inbox, outside, door } = await setUp();
    const meanwhile = (create: (path: string) => Promise<unknown>) => async (path: string) => {
      await create(path);
      await make(path);
    };
    const enter = (name: string, create: (path: string) => Promise<unknown>) =>
      door.inMadeFolder(inbox, name, meanwhile(create), (folder) => writeFile(folder.at("new"), ""));
    await enter("folder", (path) => mkdir(path));
    const refusal = { code: "TARGET_UNSAFE" };
    await expect(enter("link", (path) => symlink(outside, path))).rejects.toMatchObject(refusal);
    await expect(enter("file", (path) => writeFile(path, ""))).rejects.toMatchObject(refusal);
    expect([await readdir(join(inbox, "folder")), await readdir(outside)]).toEqual([["new"], []]);
  });

  test("that is missing is left alone, and a missing inbox is a fault", async () => {
    const { inbox, door, actions } = await setUp();
    expect(await door.inFolder(inbox, "a/x/y", async () => expect.unreachable())).toBeUndefined();
    expect(await readdir(join(inbox, "a"))).toEqual(["b"]);
    await rename(inbox, `${inbox}-away`);
    await expectRefusal(actions(door), { code: "INBOX_MISSING" });
  });

  test("has entries with plain names only", async () => {
    const { inbox, outside, door, entries } = await setUp();
    for (const name of ["", ".", "..", "../x", "x/y", "/", "x\0"]) {
      expect(isPlainName(name)).toBe(false);
      const work = async (folder: InboxFolder) => folder.at(name);
      await expect(door.inFolder(inbox, PATH, work)).rejects.toMatchObject({ code: "TARGET_UNSAFE" });
    }
    const climb = door.inMadeFolder(inbox, "a/../../outside", make, async () => expect.unreachable());
    await expect(climb).rejects.toMatchObject({ code: "TARGET_UNSAFE" });
    expect([entries(), lstatSync(outside).isDirectory()]).toEqual([[], true]);
  });

  test("is not used where /proc does not lead to open folders", async () => {
    const { actions } = await setUp();
    const disk: Disk = {
      ...systemDisk,
      async openFolder(path, link) {
        const folder = await systemDisk.openFolder(path, link);
        return { ...folder, at: (name) => join("/nowhere", name) };
      },
    };
    await expectRefusal(actions(new InboxDoor(disk)), { code: "PROC_MISSING" });
  });

  test("is closed after the work, and after every failure", async () => {
    const { inbox, outside, door, actions } = await setUp();
    await symlink(outside, join(inbox, "link"));
    const fail = async () => expect.unreachable();
    const refuse = async () => Promise.reject(Object.assign(new Error("refused"), { code: "EACCES" }));
    const disk: Disk = {
      ...systemDisk,
      openFolder: async (path, link) => ({ ...(await systemDisk.openFolder(path, link)), sync: refuse }),
    };
    const noProc: Disk = { ...systemDisk, kindOf: refuse };
    await Promise.allSettled([
      ...actions(door),
      ...actions(new InboxDoor(disk)),
      ...actions(new InboxDoor(noProc)),
      door.inFolder(inbox, PATH, fail),
      door.inFolder(inbox, "a/link/c", fail),
      door.inFolder(inbox, "link", fail),
      door.inFolder(inbox, "a/x/y", fail),
      door.inFolder(inbox, "a/../b", fail),
      door.inMadeFolder(inbox, "a/x/y", refuse, fail),
      door.inMadeFolder(inbox, "a/z", make, fail),
    ]);
    const open = readdirSync("/proc/self/fd").map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return "";
      }
    });
    expect(open.filter((path) => path.startsWith(inbox))).toEqual([]);
  });
});

test("syncs of one folder are shared, whichever opening they come through", async () => {
  const folder = await makeFolder();
  const syncs = new FolderSyncs(systemDisk);
  let [running, runs] = [0, 0];
  const openings = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const open = await systemDisk.openFolder(folder);
      const sync = async () => {
        runs++;
        expect(++running).toBe(1);
        await open.sync();
        running--;
      };
      return { ...open, sync };
    }),
  );
  // Each closes its own as soon as its sync is done.
  await Promise.all(openings.map((open) => syncs.syncOpen(open).finally(() => open.close())));
  expect(runs).toBeLessThan(4);
});

const make = (path: string) => systemDisk.makeFolder(path, 0o750);

async function expectRefusal(actions: readonly Promise<unknown>[], refusal: object): Promise<void> {
  await Promise.all(actions.map((action) => expect(action).rejects.toMatchObject(refusal)));
}

async function setUp() {
  const folder = await makeFolder();
  const [inbox, outside] = [join(folder, "inbox"), join(folder, "outside")];
  await mkdir(join(inbox, PATH), { recursive: true });
  await mkdir(outside);
  const work = (open: InboxFolder) => writeFile(open.at("new"), "");
  return {
    inbox,
    outside,
    door: new InboxDoor(systemDisk),
    /** Both ways in. */
    actions: (door: InboxDoor) => [
      door.inFolder(inbox, PATH, work),
      door.inMadeFolder(inbox, PATH, make, work),
    ],
    /** All that is outside. */
    entries: () => readdirSync(outside, { recursive: true }).map(String).toSorted(),
  };
}
