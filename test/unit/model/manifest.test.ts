import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  type Contents,
  deliveryId,
  digestOf,
  formatManifest,
  formatSums,
  manifestBound,
  readDeliveryId,
  readManifest,
  readSums,
  verifiedOf,
} from "../../../src/model/manifest.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const FILE = { name: "a.txt", originalName: "a.txt", size: 5, sha256: "a".repeat(64), verified: true };
const CONTENTS: Contents = {
  subject: "Order",
  message: "present",
  messageFile: { name: "message.eml", size: 7, sha256: "b".repeat(64) },
  files: [{ ...FILE, checksum: "abc", algorithm: "SHA-1" }],
  missing: [{ originalName: "b.txt", size: 2, cause: "It has a virus." }],
};

test("a manifest and its sums are read as they were written", async () => {
  const released = { by: "anna", at: "2026-03-01T08:00:00Z", reason: "SIZE_MISMATCH", message: "too few" };
  const recipients = { to: ["a@example.org", "b@example.org"], cc: [], more: 2 };
  const folder = await write(
    [...formatManifest(makeRecord({ released, recipients, round: 2 }), "NAME", CONTENTS)].join(""),
  );
  await writeFile(join(folder, "SHA256SUMS"), formatSums(CONTENTS));
  expect(await digestOf(await readManifest(folder, manifestBound()))).toBe(await digestOf(CONTENTS));
  expect(await digestOf({ ...CONTENTS, files: [] })).not.toBe(await digestOf(CONTENTS));
  expect(await readManifest(folder, manifestBound())).toEqual({
    version: 2,
    deliveryId: deliveryId("NAME", 2),
    mailbox: "m",
    sender: "a@example.org",
    trackingId: "t1",
    transferId: "x",
    recipients,
    securityMode: "ONE_TIME_PASSWORD",
    received: "2026-03-01T08:00:00.000Z",
    verified: "some",
    released,
    ...CONTENTS,
  });
  expect([...(await readSums(folder, 2))]).toEqual([
    ["a.txt", "a".repeat(64)],
    ["message.eml", "b".repeat(64)],
  ]);
});

test("a character that reorders text is escaped in a manifest, and its value stays", async () => {
  const originalName = "gnp\u202etxt.exe";
  const contents = { ...CONTENTS, subject: "\u2066a", files: [{ ...FILE, originalName }] };
  const text = [...formatManifest(makeRecord(), "NAME", contents)].join("");
  expect(text).toMatch(/^[\n -~]*$/);
  expect(await readManifest(await write(text), manifestBound())).toMatchObject(contents);
});

test("a delivery is verified as far as its files are", () => {
  const of = (...files: boolean[]) =>
    verifiedOf({ message: "none", files: files.map((verified) => ({ ...FILE, verified })) });
  expect([of(), of(false), of(true, false), of(true, true)]).toEqual(["none", "none", "some", "all"]);
});

test("the id of a delivery is read from its manifest, whatever else a consumer changed there", async () => {
  expect(await readDeliveryId(await write('{"deliveryId":"d1"}'), manifestBound())).toEqual({ id: "d1" });
  for (const text of ['{"deliveryId":1}', '{"subject":"\\"deliveryId\\": \\"d1\\""}', "null", "{"]) {
    expect([text, await readDeliveryId(await write(text), manifestBound())]).toEqual([
      text,
      { id: undefined },
    ]);
  }
  const folder = await write('{"deliveryId":"d1"}');
  await rm(join(folder, "transfer.json"));
  expect(await readDeliveryId(folder, manifestBound())).toEqual({ id: undefined });
  await symlink(join(await write('{"deliveryId":"d1"}'), "transfer.json"), join(folder, "transfer.json"));
  expect(await readDeliveryId(folder, manifestBound())).toEqual({
    id: undefined,
    problem: "transfer.json is a link",
  });
  await rm(join(folder, "transfer.json"));
  await mkdir(join(folder, "transfer.json"));
  expect(await readDeliveryId(folder, manifestBound())).toEqual({
    id: undefined,
    problem: "transfer.json is not a plain file",
  });
});

async function write(manifest: string): Promise<string> {
  const folder = await makeFolder();
  await writeFile(join(folder, "transfer.json"), manifest);
  return folder;
}
