/** Whose files are trusted on file systems that cannot be mounted here. */
import type { Stats } from "node:fs";
import { expect, test } from "vitest";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import { findExposures } from "../../../src/inbox/exposure.ts";

const [INLET, OTHER] = [15_000, 16_000];
const TRUSTED = { work: "/srv/inbox/.inlet", state: "/var/lib/inlet", files: [] };

/** The exposures with the inbox on a share that is mounted with these owners and modes, as docs/samba.md says. */
function exposuresOn(kind: string, uid: number, folder: number) {
  const mounts = `1 0 0:1 / / rw - ext4 /dev/sda rw\n2 1 0:2 / /srv/inbox rw - ${kind} //server/transfers rw\n`;
  const stat = async (path: string) => {
    const isShare = path.startsWith("/srv/inbox");
    return {
      uid: isShare ? uid : INLET,
      gid: 0,
      mode: isShare ? folder : 0o700,
      isDirectory: () => true,
    } as Stats;
  };
  const readFile = async (path: string) => (path === "/proc/self/mountinfo" ? mounts : "");
  const mkdir = () => Promise.reject(new Error("EACCES"));
  const files = { ...systemMachine.files, stat, mkdir, readFile, realpath: async (path: string) => path };
  const machine = { ...systemMachine, files } as unknown as typeof systemMachine;
  return onMachine(machine, () => findExposures(TRUSTED, INLET));
}

test("a share that is mounted as docs/samba.md says is fine", async () => {
  expect(await exposuresOn("cifs", INLET, 0o750)).toEqual([]);
});

test("on a share, the owner is not known, which is only reported; elsewhere it is refused", async () => {
  for (const [kind, what, isRefused] of [
    ["cifs", "the owner of /srv/inbox/.inlet cannot be seen from here", false],
    ["ext4", "/srv/inbox/.inlet belongs to user 16000", true],
  ] as const)
    expect(await exposuresOn(kind, OTHER, 0o755)).toMatchObject([{ what, isRefused }]);
});

test("a share that every user may write is refused", async () => {
  const found = await exposuresOn("cifs", INLET, 0o777);
  expect(found.map(({ what, isRefused }) => [what, isRefused])).toEqual([
    ["every user may write to /srv/inbox/.inlet", true],
    ["every user may write to /srv/inbox", true],
  ]);
});
