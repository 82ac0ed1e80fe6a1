/** The state of the outbox as it can be seen without a daemon. */
import { writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { deliveryOf } from "../../../src/handoff/delivery.ts";
import { peekHandoffs, Summary } from "../../../src/handoff/peek.ts";
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

test("I8 bounded: a change of a delivery replaces what is known of it, and further troubles are only counted", () => {
  const summary = new Summary({ handoffOf: HANDOFF });
  const delivery = deliveryOf("t1.ab~1", recordOf("t1", { steps: ["command"] }));
  const failed = { ...EMPTY_ENTRY, ...FAILED } as const;
  for (let at = 0; at < 700; at++) summary.add(`t${at}.ab~1`, failed, delivery);
  expect([summary.troubles.length, summary.troubled, summary.failing]).toEqual([500, 700, 700]);
  summary.note("t1.ab~1", { ...EMPTY_ENTRY, command: { state: "done", attempts: 2 } }, delivery);
  summary.note("t2.ab~1", failed, delivery);
  expect([summary.troubles.length, summary.troubled, summary.failing]).toEqual([499, 699, 699]);
});

test("no outbox means that nothing waits", async () => {
  expect(await peekHandoffs(await makeFolder(), HANDOFF, async () => undefined)).toMatchObject({
    waiting: 0,
  });
});

async function prepare(entries: Readonly<Record<string, Partial<Entry>>> = {}): Promise<string> {
  const work = await makeFolder();
  await mkdir(outboxIn(work), { recursive: true });
  for (const [name, facts] of Object.entries(entries)) {
    await writeFile(join(outboxIn(work), name), formatEntry({ ...EMPTY_ENTRY, ...facts }));
  }
  return work;
}
