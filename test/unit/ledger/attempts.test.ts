/** I3 no burnt transfers: the slots of attempts, on a disk that refuses them, and as an earlier version wrote them. */
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type Disk, systemDisk } from "../../../src/base/disk.ts";
import { asFault } from "../../../src/base/faults.ts";
import { FileAttempts } from "../../../src/ledger/attempts.ts";
import { type LedgerPaths, ledgerPaths, nameOf, oldAttemptsKey } from "../../../src/ledger/paths.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const TRACKING_ID = "t1";
const NAME = nameOf({ mailbox: "box@example.com", trackingId: TRACKING_ID });
const OWNER = { name: NAME, round: 1, at: "2026-03-01T08:00:00.000Z" };
const BUDGET = 2;

test.each(["write", "close", "syncFolder"] as const)(
  "a full disk that refuses %s costs no attempt, however often",
  async (step) => {
    const root = await makeFolder();
    const paths = ledgerPaths(join(root, ".inlet"));
    mkdirSync(paths.slots, { recursive: true });
    let isFull = true;
    const attempts = openAttempts(paths, root, step, () => isFull);
    for (let tries = 0; tries < 5; tries++) {
      expect(await attempts.take(TRACKING_ID, OWNER, BUDGET).catch(asFault)).toMatchObject({
        code: "DISK_FULL",
      });
      expect(readdirSync(paths.slots)).toEqual([]);
    }
    isFull = false;
    const slot = await attempts.take(TRACKING_ID, OWNER, BUDGET);
    expect(await slot?.others()).toMatchObject({ spent: 0 });
  },
);

describe("slots of an earlier version, whose key had the address of the service in it, count at every service", () => {
  const [FIRST, SECOND, GONE] = ["https://service.example", "https://198.51.100.7", "https://gone.example"];
  const unanswered = JSON.stringify(OWNER);
  const slotOf = (fingerprint: string | undefined = "f", trackingId = TRACKING_ID) =>
    JSON.stringify({ ...OWNER, name: nameOf({ mailbox: "box@example.com", trackingId }), fingerprint });

  test.each<[string, Record<string, string>, number, string[]]>([
    ["of two spellings", { [`${FIRST} 1`]: slotOf(), [`${SECOND} 1`]: slotOf("g") }, 2, ["f", "g"]],
    ["of a spelling that is not configured any more", { [`${GONE} 2`]: slotOf() }, 1, ["f"]],
    ["emptied by a power cut", { [`${FIRST} 1`]: "" }, 1, []],
    ["emptied beside another one", { [`${GONE} 1`]: "", [`${GONE} 2`]: slotOf() }, 2, ["f"]],
    ["without a verdict", { [`${FIRST} 1`]: unanswered }, 1, []],
    ["of another transfer", { [`${FIRST} 1 t2`]: slotOf("f", "t2") }, 0, []],
  ])("%s", async (_, files, spent, fingerprints) => {
    const root = await makeFolder();
    const paths = ledgerPaths(join(root, ".inlet"));
    for (const folder of [paths.slots, paths.oldSlots]) mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) {
      const [service = "", number, of = TRACKING_ID] = file.split(" ");
      writeFileSync(join(paths.oldSlots, `${oldAttemptsKey(service, of)}.${number}.json`), text);
    }
    const before = readdirSync(paths.oldSlots);
    // Each time as after a restart.
    const open = () => new FileAttempts(roundsOf(systemDisk, paths, root), () => [FIRST, SECOND]);
    const take = () => open().take(TRACKING_ID, OWNER, BUDGET);
    const counted = await open().spent(TRACKING_ID, NAME, BUDGET);
    expect([counted.spent, counted.fingerprints.toSorted()]).toEqual([spent, fingerprints]);
    const taken = [await take(), await take(), await take()];
    expect(taken.filter((slot) => slot !== undefined)).toHaveLength(BUDGET - spent);
    // A mailbox with a smaller budget counts all of them too.
    expect(await open().spent(TRACKING_ID, NAME, 1)).toMatchObject({ spent: BUDGET });
    await open().grant(TRACKING_ID, OWNER, 1);
    expect(await (await take())?.others()).toMatchObject({ spent: BUDGET });
    expect(await take()).toBeUndefined();
    expect(readdirSync(paths.oldSlots)).toEqual(before);
  });

  test("until the transfer is delivered", async () => {
    const root = await makeFolder();
    const ledger = await ledgerIn(root);
    const { oldSlots } = ledgerPaths(join(root, ".inlet"));
    mkdirSync(oldSlots);
    for (const number of [1, 2]) {
      const path = join(oldSlots, `${oldAttemptsKey(GONE, TRACKING_ID)}.${number}.json`);
      writeFileSync(path, slotOf(`f${number}`));
    }
    expect(await ledger.attempts.take(TRACKING_ID, OWNER, BUDGET)).toBeUndefined();
    await ledger.end(makeRecord({ mailbox: "box@example.com", trackingId: TRACKING_ID, state: "delivered" }));
    const slot = await ledger.attempts.take(TRACKING_ID, OWNER, BUDGET);
    expect(await slot?.others()).toMatchObject({ spent: 0, fingerprints: ["f1", "f2"] });
  });
});

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
  return new FileAttempts(roundsOf(disk, paths, root));
}

function roundsOf(disk: Disk, paths: LedgerPaths, root: string): Rounds {
  return new Rounds({ disk, paths, root, folderMode: () => 0o750 });
}
