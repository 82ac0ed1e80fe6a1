/** I3 no burnt transfers: a disk that refuses a slot costs no attempt, because nothing was sent. */
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { asFault } from "../../../src/base/faults.ts";
import { FileAttempts } from "../../../src/ledger/attempts.ts";
import { type LedgerPaths, ledgerPaths } from "../../../src/ledger/paths.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import { makeFolder } from "../../support/program.ts";

const OF = { serviceId: "https://transfer.example.com", trackingId: "t1" };
const OWNER = { name: "m-t1", round: 1, at: "2026-03-01T08:00:00.000Z" };
const BUDGET = 2;

test.each(["write", "close", "syncFolder"] as const)(
  "a full disk that refuses %s costs no attempt, however often",
  async (step) => {
    const root = await makeFolder();
    const paths = ledgerPaths(join(root, ".inlet"));
    mkdirSync(paths.attempts, { recursive: true });
    let isFull = true;
    const attempts = openAttempts(paths, root, step, () => isFull);
    for (let tries = 0; tries < 5; tries++) {
      expect(await attempts.take(OF, OWNER, BUDGET).catch(asFault)).toMatchObject({ code: "DISK_FULL" });
      expect(readdirSync(paths.attempts)).toEqual([]);
    }
    isFull = false;
    const slot = await attempts.take(OF, OWNER, BUDGET);
    expect(await slot?.others()).toMatchObject({ spent: 0 });
  },
);

function openAttempts(
  paths: LedgerPaths,
  root: string,
  step: "write" | "close" | "syncFolder",
  isFull: () => boolean,
): FileAttempts {
  const refuse = async (name: string) => {
    if (name !== step || !isFull()) return;
    throw Object.assign(new Error("no space left on device"), {
      code: "ENOSPC",
      syscall: name,
      path: "file",
    });
  };
  const disk: Disk = {
    ...systemDisk,
    async create(path, mode) {
      const file = await systemDisk.create(path, mode);
      return {
        ...file,
        write: (text) => refuse("write").then(() => file.write(text)),
        close: () => file.close().then(() => refuse("close")),
      };
    },
    syncFolder: (path) => refuse("syncFolder").then(() => systemDisk.syncFolder(path)),
  };
  const rounds = new Rounds({ disk, paths, root, folderMode: () => 0o750 });
  return new FileAttempts(rounds);
}
