/** The state of the outbox as it can be seen without a daemon. */
import { writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { peekHandoffs } from "../../../src/handoff/peek.ts";
import { EMPTY_ENTRY, type Entry, formatEntry, outboxIn } from "../../../src/model/outbox.ts";
import { makeHandoff } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { recordOf } from "./bench.ts";

const WAITING = 60_000;
const HANDOFF = () => makeHandoff({ command: ["true"] });
const FAILED = { command: { state: "failed", attempts: 9, error: "no" } } as const;

test("folders that wait are counted without reading anything of them", async () => {
  const work = await prepare();
  for (let at = 0; at < WAITING; at++) {
    writeFileSync(join(outboxIn(work), `t${at}.ab~1.wait`), "not to be read");
  }
  const readEnd = () => Promise.reject(new Error("not to be read"));
  expect(await peekHandoffs(work, HANDOFF, readEnd)).toMatchObject({
    waiting: WAITING,
    oldestMs: undefined,
    troubled: 0,
    troubles: [],
  });
});

test("failed and overdue deliveries are listed, from the folders that they really have", async () => {
  const work = await prepare({
    "t1.ab~1.json": FAILED,
    "t2.ab~1.json": { reported: true, folder: "m/t2-2" },
    "t3.ab~1.json": { ...FAILED, pickedUpAt: "2026-03-01T09:00:00.000Z" },
    "t4.ab~1.json": { command: { state: "pending", attempts: 0 } },
    "open.ab~1.json": FAILED,
    "t6.ab~1.kept": { pickedUpAt: "2026-03-01T09:00:00.000Z" },
  });
  await writeFile(join(outboxIn(work), "bad.ab~1.json"), "{");
  const readEnd = async (name: string, round: number) =>
    name === "open.ab" ? undefined : recordOf(name.replace(".ab", ""), { round, steps: ["command"] });
  const summary = await peekHandoffs(work, HANDOFF, readEnd);
  expect(summary).toMatchObject({
    waiting: 3,
    oldestMs: Date.parse("2026-03-01T08:00:00.000Z"),
    troubled: 3,
  });
  const troubles = summary.troubles.map(
    ({ trackingId, folder, failed, isOverdue }) => `${trackingId} ${folder} ${failed.length} ${isOverdue}`,
  );
  expect(troubles.toSorted()).toEqual(["t1 m/t1 1 false", "t2 m/t2-2 0 true", "t3 m/t3 1 false"]);
  expect(troubles.at(-1)).toBe("t2 m/t2-2 0 true");
});

async function prepare(entries: Readonly<Record<string, Partial<Entry>>> = {}): Promise<string> {
  const work = await makeFolder();
  await mkdir(outboxIn(work), { recursive: true });
  for (const [name, facts] of Object.entries(entries)) {
    await writeFile(join(outboxIn(work), name), formatEntry({ ...EMPTY_ENTRY, ...facts }));
  }
  return work;
}
