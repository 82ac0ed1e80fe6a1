/** The inbox that an end record names: on the disk relative to the work folder, in memory absolute. */
import { mkdir, readdir, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { systemDisk } from "../../../src/base/disk.ts";
import { type EndRecord, Inboxes } from "../../../src/ledger/format.ts";
import { ledgerPaths, nameOf } from "../../../src/ledger/paths.ts";
import { Rounds } from "../../../src/ledger/rounds.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const DELIVERED: EndRecord = makeRecord({ state: "delivered", folder: "m/t1" });
const path = fc
  .array(fc.constantFrom("a", "b", ".inlet", "ä ö"), { minLength: 1, maxLength: 4 })
  .map((parts) => `/${parts.join("/")}`);

function inboxesIn(work: string, common: string): Inboxes {
  return new Inboxes(ledgerPaths(work), common);
}

describe("the recorded inbox of a delivery", () => {
  test("is the same when it is read again, and missing for the common one", () => {
    fc.assert(
      fc.property(path, path, path, (work, common, inbox) => {
        fc.pre(common !== work && inbox !== work);
        const inboxes = inboxesIn(work, common);
        const end = { ...DELIVERED, inbox };
        const read = inboxes.fromStored(inboxes.toStored(end), "record");
        expect(read.inbox).toBe(inbox === common ? undefined : inbox);
        expect(inboxes.rootOf(read)).toBe(inbox);
        const ofCommon = inboxes.fromStored(inboxes.toStored(DELIVERED), "record");
        expect([ofCommon.inbox, inboxes.rootOf(ofCommon)]).toEqual([undefined, common]);
      }),
    );
  });

  test("stays the same when another inbox is the common one", () => {
    fc.assert(
      fc.property(path, path, path, (work, before, after) => {
        fc.pre(before !== work && after !== work);
        const stored = inboxesIn(work, before).toStored(DELIVERED);
        const now = inboxesIn(work, after);
        expect(now.rootOf(now.fromStored(stored, "record"))).toBe(before);
      }),
    );
  });

  test("moves with the mount that holds it and the work folder", () => {
    const stored = inboxesIn("/srv/inbox/.inlet", "/srv/inbox").toStored({
      ...DELIVERED,
      inbox: "/srv/sales",
    });
    const moved = inboxesIn("/mnt/disk/inbox/.inlet", "/mnt/disk/inbox");
    expect(moved.rootOf(moved.fromStored(stored, "record"))).toBe("/mnt/disk/sales");
  });

  test.each(["", ".", "staging", "../work/ledger", "outbox/x", "a\0b"])(
    "cannot be one of our own folders: %j",
    (inbox) => {
      const read = () => inboxesIn("/work", "/inbox").fromStored({ ...DELIVERED, inbox }, "record");
      expect(read).toThrow("record: inbox should be outside our own folders");
    },
  );

  test("is not recorded for a round that ended without a delivery", () => {
    const end: EndRecord = makeRecord({ state: "quarantined" });
    expect(inboxesIn("/work", "/inbox").toStored(end)).toEqual(end);
  });
});

test("a ledger with two inboxes claims the same folder in each of them, and places each delivery where its record says", async () => {
  const { folder, own, stage } = await setUp();
  const ledger = await ledgerIn(folder);
  const [one, two] = [makeRecord({ trackingId: "t1" }), makeRecord({ trackingId: "t2" })];
  const claim = (name: string, root?: string) =>
    ledger.placements.claim({ name, round: 1 }, ["m/F"], { mailbox: "m" }, root);
  expect(await claim(nameOf(one))).toBe(true);
  expect(await claim(nameOf(two), own)).toBe(true);
  expect(await claim(nameOf(one), own)).toBe(false);
  await stage(ledger, { ...one, inbox: undefined });
  await stage(ledger, { ...two, inbox: own });
  expect(await readdir(join(folder, "m"))).toEqual(["F"]);
  expect(await readdir(join(own, "m"))).toEqual(["F"]);
  expect(await readFile(join(own, "m/F/id"), "utf8")).toBe("t2");
  await ledger.close();
});

test.each(["m/F", "F"])(
  "a ledger with two inboxes does not create a missing inbox, and says so: %s",
  async (wanted) => {
    const { folder, own, stage } = await setUp();
    const ledger = await ledgerIn(folder);
    const record = makeRecord({ trackingId: "t1" });
    await rename(own, `${own}-away`);
    if (wanted !== "F") {
      const id = { name: nameOf(record), round: 1 };
      await expect(ledger.placements.claim(id, [wanted], { mailbox: "m" }, own)).rejects.toMatchObject({
        code: "INBOX_MISSING",
      });
    }
    const placing = stage(ledger, { ...record, inbox: own, folder: wanted });
    await expect(placing).rejects.toMatchObject({
      code: "INBOX_MISSING",
      message: expect.stringContaining(own),
    });
    await rename(`${own}-away`, own);
    await ledger.close();
    // The common inbox is another one now, and the mailbox's inbox is no longer configured.
    const rounds = new Rounds({
      disk: systemDisk,
      paths: ledgerPaths(join(folder, ".inlet")),
      root: `${folder}-other`,
      folderMode: () => 0o750,
    });
    const recovered = await rounds.recover((_, error) => expect.unreachable(String(error)));
    expect(recovered.map(({ inbox, folder }) => [inbox, folder])).toEqual([[own, wanted]]);
    expect(await rounds.recover(() => {})).toEqual([]);
    expect(await readFile(join(own, wanted, "id"), "utf8")).toBe("t1");
    expect((await rounds.readEnd(nameOf(record), 1))?.inbox).toBe(own);
  },
);

async function setUp() {
  const above = await makeFolder();
  const [folder, own] = [join(above, "inbox"), join(above, "own")];
  for (const path of [folder, own]) await mkdir(path);
  const stage = async (ledger: Awaited<ReturnType<typeof ledgerIn>>, record: EndRecord) => {
    const opened = await ledger.stages.openStage(record);
    await (await systemDisk.create(join(opened.folder, "id"), 0o600)).close();
    const file = await systemDisk.truncate(join(opened.folder, "id"));
    await file.write(record.trackingId);
    await file.close();
    await ledger.stages.seal(opened);
    const end: EndRecord = { ...record, state: "delivered", folder: record.folder ?? "m/F" };
    expect(await ledger.stages.endWith(opened, end)).toBe(true);
    return ledger.place(end, opened);
  };
  return { folder, own, stage };
}
