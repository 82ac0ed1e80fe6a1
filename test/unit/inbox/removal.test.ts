import { existsSync } from "node:fs";
import { mkdir, readdir, rename, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { removeDelivered } from "../../../src/inbox/removal.ts";
import { makeFolder } from "../../support/program.ts";

const MANIFEST = JSON.stringify({ version: 1, trackingId: "t1", transferId: "x", files: [] }, null, 2);
const DELIVERY = { id: "d1", folder: "m/t1", trackingId: "t1", transferId: "x" };

describe("a delivered folder", () => {
  test("is removed whole, and a second time there is nothing left to do", async () => {
    const { root, staging } = await prepare();
    await mkdir(join(root, "m/t1/sub"));
    for (const _ of [1, 2]) expect(await removeDelivered(root, staging, DELIVERY)).toBe("removed");
    expect([await readdir(join(root, "m")), await readdir(staging)]).toEqual([[], []]);
  });

  test("is removed to the end where a crash came after it was moved aside", async () => {
    const { root, staging } = await prepare();
    await rename(join(root, "m/t1"), join(staging, "d1.removed"));
    expect(await removeDelivered(root, staging, DELIVERY)).toBe("removed");
    expect(await readdir(staging)).toEqual([]);
  });

  test.each([
    ["is another transfer's", { trackingId: "t2" }],
    ["is another recipient's", { transferId: "y" }],
    ["only quotes the ids", { trackingId: 't1",\n  "transferId": "x' }],
  ])("is left alone where what stands there %s", async (_why, other) => {
    const { root, staging } = await prepare();
    expect(await removeDelivered(root, staging, { ...DELIVERY, ...other })).toBe("foreign");
    expect(existsSync(join(root, "m/t1/transfer.json"))).toBe(true);
  });

  test("is left alone where a link leads elsewhere: in its place, above it, or to its manifest", async () => {
    const { root, staging } = await prepare();
    const elsewhere = await prepare();
    const target = join(elsewhere.root, "m/t1");
    await symlink(target, join(root, "m/link"));
    await symlink(join(elsewhere.root, "m"), join(root, "n"));
    await mkdir(join(root, "m/t3"));
    await symlink(join(target, "transfer.json"), join(root, "m/t3/transfer.json"));
    for (const folder of ["m/link", "n/t1", "m/t3"]) {
      expect(await removeDelivered(root, staging, { ...DELIVERY, folder })).toBe("foreign");
    }
    expect(existsSync(join(target, "transfer.json"))).toBe(true);
  });
});

async function prepare() {
  const folder = await makeFolder();
  const [root, staging] = [join(folder, "inbox"), join(folder, "staging")];
  await mkdir(join(root, "m/t1"), { recursive: true });
  await mkdir(staging);
  await writeFile(join(root, "m/t1/transfer.json"), MANIFEST);
  return { root, staging };
}
