/** The journal: what is on the disk when, and what its readers see. */
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Journal } from "../../../src/ledger/journal.ts";
import { readJournal } from "../../../src/operate/history.ts";
import { watchCalls } from "../../support/open-files.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

const NOTICE = { type: "settle", keys: ["k"] };

test("an end counts as written when the file and its name are synced", async () => {
  const { journal } = await makeJournal();
  const steps: string[] = [];
  watchCalls("sync", async () => void steps.push("sync"));
  journal.add(makeRecord({ state: "gone" }), () => steps.push("written"));
  await journal.flush();
  expect(steps).toEqual(["sync", "sync", "written"]);
  journal.add(makeRecord({ state: "gone" }), () => steps.push("written"));
  await journal.flush();
  expect(steps.slice(3)).toEqual(["sync", "written"]);
});

test("lines whose sync failed are written again, and passed on once meanwhile", async () => {
  const { journal, work } = await makeJournal();
  const batches: (readonly string[])[] = [];
  journal.onBatch = (refused) => batches.push(refused);
  const sync = watchCalls("sync", () => Promise.reject(new Error("EIO")));
  let written = 0;
  journal.add(makeRecord({ trackingId: "t1", state: "gone" }), () => written++);
  await journal.flush();
  journal.addNotice(NOTICE);
  await journal.flush();
  expect([written, journal.isStuck]).toEqual([0, true]);
  sync.restore();
  await journal.flush();
  expect([written, journal.isStuck]).toEqual([1, false]);
  const kinds = batches.map((refused) =>
    refused.map((line) => ("notice" in JSON.parse(line) ? "notice" : "t1")),
  );
  expect(kinds).toEqual([["t1"], ["notice"], []]);
  expect((await read(work)).map(({ trackingId }) => trackingId)).toEqual(["t1"]);
});

test("lines that no disk accepts are kept up to a limit, and each is passed on", async () => {
  const { journal, folder } = await makeJournal();
  await rm(folder, { recursive: true });
  await writeFile(folder, "");
  let [passedOn, dropped] = [0, 0];
  journal.onBatch = (refused) => {
    passedOn += refused.length;
  };
  for (let at = 0; at < 10_010; at++) journal.add(makeRecord({ trackingId: `t${at}` }), () => dropped++);
  await journal.flush();
  expect([passedOn, dropped]).toEqual([10_010, 10]);
  await rm(folder);
  await mkdir(folder);
  await journal.flush();
  const [name = ""] = await readdir(folder);
  expect((await readFile(join(folder, name), "utf8")).split("\n")).toHaveLength(10_001);
});

test("a line has what a notice needs, with a message of bounded length, only if a person has to know", async () => {
  const { journal, folder } = await makeJournal();
  const facts = { message: "m".repeat(5_000), expires: "2026-04-01T00:00:00.000Z" };
  journal.add(makeRecord({ ...facts, state: "waiting", reason: "retry" }));
  journal.add(makeRecord({ ...facts, state: "waiting", reason: "retry", needsPerson: true }));
  journal.add(makeRecord({ ...facts, state: "quarantined" }));
  journal.add(makeRecord({ ...facts, state: "gone", acknowledged: true }));
  await journal.flush();
  const [name = ""] = await readdir(folder);
  const lines = (await readFile(join(folder, name), "utf8")).trim().split("\n");
  const { expires } = facts;
  const message = "m".repeat(1_000);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    expect.not.objectContaining({ expires }),
    { message, expires, needsPerson: true },
    { message, expires },
    { message, expires, acknowledged: true },
  ]);
});

test("history skips lines of notices, and counts only damaged ones as damaged", async () => {
  const { journal, folder, work } = await makeJournal();
  journal.add(makeRecord({ trackingId: "t1" }));
  journal.addNotice(NOTICE);
  journal.addAct({ id: "i", act: "retry", who: "w", from: "f", mailbox: "m", trackingId: "t1" });
  await journal.flush();
  const counts = async (kind: "acts" | "transfers") => {
    const { entries, damaged } = await readJournal(work, kind, { limit: 9 });
    return [entries.length, ...damaged.map(({ lines }) => lines)];
  };
  expect([await counts("transfers"), await counts("acts")]).toEqual([[1], [1]]);
  const [name = ""] = await readdir(folder);
  await appendFile(join(folder, name), '{"at":"2026-03-01T08:00:00.000Z","noti');
  journal.addNotice(NOTICE);
  await journal.flush();
  expect(await counts("transfers")).toEqual([1, 1]);
});

async function makeJournal() {
  const work = await makeFolder();
  const folder = join(work, "journal");
  await mkdir(folder);
  return { work, folder, journal: new Journal(folder, undefined, { now: Date.now }) };
}

async function read(work: string) {
  return (await readJournal(work, "transfers", { limit: 9 })).entries;
}
