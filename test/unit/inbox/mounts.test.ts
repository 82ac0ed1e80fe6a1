import { describe, expect, test } from "vitest";
import { describeWeakness, findMountOf, parseMounts } from "../../../src/inbox/mounts.ts";

const LIST = `
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:25 / /srv rw,nosuid - tmpfs tmpfs rw,size=1024k
31 22 0:26 /export /srv/in\\040box rw,relatime master:1 - nfs4 server:/export rw,vers=4.2,hard,local_lock=none
32 22 0:27 / /srv/in\\040box ro - cifs //server/share rw,nobrl
not a mount
`;

describe("mounts", () => {
  test("are read from the kernel's list: names with spaces, options of both kinds, optional fields", () => {
    expect(parseMounts(LIST)).toEqual([
      { kind: "ext4", point: "/", options: ["rw", "relatime", "discard"] },
      { kind: "tmpfs", point: "/srv", options: ["rw", "nosuid", "size=1024k"] },
      {
        kind: "nfs4",
        point: "/srv/in box",
        options: ["rw", "relatime", "vers=4.2", "hard", "local_lock=none"],
      },
      { kind: "cifs", point: "/srv/in box", options: ["ro", "rw", "nobrl"] },
    ]);
  });

  test("the one that a path stands on is found, through links", async () => {
    expect(await findMountOf("/proc/self/root/proc")).toMatchObject({ kind: "proc", point: "/proc" });
  });

  test.each([
    ["ext4", ["rw", "relatime"], undefined],
    ["xfs", ["rw"], undefined],
    ["btrfs", ["rw"], undefined],
    ["nfs4", ["rw", "hard", "local_lock=none"], undefined],
    ["ext4", ["rw", "nobarrier"], "without barriers"],
    ["nfs4", ["rw", "local_lock=all"], "without locks between machines"],
    ["nfs4", ["rw", "soft"], "mounted soft"],
    ["nfs", ["rw"], "use version 4"],
    ["cifs", ["rw", "nobrl"], "without locks between machines"],
    ["cifs", ["rw"], "how its server treats"],
    ["tmpfs", ["rw"], "kept in memory"],
    ["overlay", ["rw"], "mount a volume"],
    ["fuse.sshfs", ["rw"], "a program handles"],
    ["vfat", ["rw"], "no journal"],
  ])("%s mounted %j: %s", (kind, options, why) => {
    const weakness = describeWeakness({ kind, options, point: "/srv" });
    if (why === undefined) expect(weakness).toBeUndefined();
    else expect(weakness).toContain(why);
  });
});
