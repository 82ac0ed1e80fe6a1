import { readdirSync } from "node:fs";
import { mkdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { Quarantine } from "../../../src/ledger/quarantine.ts";
import type { Contents } from "../../../src/model/manifest.ts";
import { nextRound, type TransferRecord } from "../../../src/model/record.ts";
import { ledgerIn } from "../../support/ledger.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { whileUnread } from "../../support/unread.ts";

const T1 = makeRecord();
const CONTENTS: Contents = {
  message: "present",
  messageFile: { name: "message.eml", size: 7, sha256: "" },
  files: [{ name: "a.txt", originalName: "a.txt", size: 5, sha256: "", verified: false }],
};

describe("a quarantined transfer", () => {
  test("is found for its next round while everything of it is there", async () => {
    const { kept, find } = await quarantined(CONTENTS);
    expect(await find()).toEqual({ folder: kept, contents: CONTENTS, code: "CHECKSUM_MISMATCH" });
    await truncate(join(kept, "a.txt"), 4);
    expect(await find()).toBeUndefined();
    await writeFile(join(kept, "a.txt"), "Hello");
    await rm(join(kept, "message.eml"));
    expect(await find()).toBeUndefined();
    await mkdir(join(kept, "message.eml"));
    expect(await find()).toBeUndefined();
  });

  test.each(["a.txt", "reason.json"])(
    "is not taken for lost while the disk does not give its %s",
    async (name) => {
      const { find } = await quarantined(CONTENTS);
      await expect(whileUnread(name, find)).rejects.toMatchObject({ code: "DISK_UNREADABLE" });
      expect(await find()).toBeDefined();
    },
  );

  test.each([undefined, "", "null", "{", '{"contents":{"files":[]}}'])(
    "is not found where its reason is %j",
    async (text) => {
      const { kept, find } = await quarantined(CONTENTS);
      const path = join(kept, "reason.json");
      await (text === undefined ? rm(path) : writeFile(path, text));
      expect(await find()).toBeUndefined();
    },
  );

  test("is not found where only a part of it was received", async () => {
    const { find } = await quarantined(undefined);
    expect(await find()).toBeUndefined();
  });

  test("leaves the quarantine when a later round is delivered, also where a crash came before that", async () => {
    const { folder, ledger } = await quarantined(CONTENTS);
    const next = nextRound(T1);
    await ledger.begin(next, "release", "anna");
    const stage = await ledger.stages.openStage(next);
    const end: TransferRecord = { ...next, state: "delivered", folder: "m/t1" };
    await ledger.stages.seal(stage);
    expect(await ledger.stages.endWith(stage, end)).toBe(true);
    const quarantine = () => readdirSync(join(folder, ".inlet/quarantine"));
    expect(quarantine()).toHaveLength(1);
    const restarted = await ledgerIn(folder);
    expect(await restarted.recover((_path, error) => expect.unreachable(String(error)))).toMatchObject([
      { state: "delivered", folder: "m/t1" },
    ]);
    await restarted.close();
    expect(quarantine()).toEqual([]);
  });

  test("keeps its content when a late process ends an earlier round", async () => {
    const { folder } = await quarantined(CONTENTS);
    const quarantine = new Quarantine(join(folder, ".inlet"));
    const [{ name, round } = { name: "", round: 0 }] = await quarantine.list();
    await quarantine.clear(name, round);
    expect(await quarantine.list()).toHaveLength(1);
    await quarantine.clear(name, round - 1);
    expect(await quarantine.list()).toHaveLength(1);
    await quarantine.clear(name, round + 1);
    expect(await quarantine.list()).toEqual([]);
  });
});

/** A transfer whose first round has ended in quarantine. */
async function quarantined(contents: Contents | undefined) {
  const folder = await makeFolder();
  const ledger = await ledgerIn(folder);
  await ledger.discover(T1);
  const stage = await ledger.stages.openStage(T1);
  await writeFile(join(stage.folder, "a.txt"), "Hello");
  await writeFile(join(stage.folder, "message.eml"), "Subject");
  await ledger.stages.sealForQuarantine(stage, {
    at: "2026-03-01T08:00:00.000Z",
    mailbox: "m",
    trackingId: "t1",
    sender: "a@example.org",
    code: "CHECKSUM_MISMATCH",
    message: "The file differs.",
    advice: "Ask the sender.",
    contents,
  });
  const end: TransferRecord = { ...T1, state: "quarantined" };
  await ledger.stages.endWith(stage, end);
  await ledger.place(end, stage);
  await ledger.flush();
  const find = () => ledger.findInQuarantine(nextRound(T1));
  return { folder, kept: join(folder, ".inlet/quarantine", `${stage.name}~1`), ledger, find };
}
