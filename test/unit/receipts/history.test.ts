import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { type HistoryQuery, readHistory } from "../../../src/receipts/history.ts";
import { appendToJournal } from "../../../src/receipts/journal.ts";
import { makeFolder } from "../../support/program.ts";
import { makeReceipt } from "../../support/receipt.ts";

const STATES = ["discovered", "collecting", "delivering", "delivered"] as const;

describe("history", () => {
  test("tells of each transfer once, by its last change of state, the newest first over all months", async () => {
    const work = await makeWork();
    await deliver(work, "march", "2026-03-31T23:59:50");
    await deliver(work, "april", "2026-04-01T00:00:00");
    await deliver(work, "may", "2026-05-09T10:00:00");
    expect(await ids(work)).toEqual(["may", "april", "march"]);
    expect(await ids(work, { limit: 2 })).toEqual(["may", "april"]);
    const [newest] = (await read(work)).entries;
    expect(newest).toMatchObject({ state: "delivered", folder: "m/a@example.org/may", mailbox: "m" });
  });

  test("merges the journals that several hosts write", async () => {
    const work = await makeWork();
    await deliver(work, "t1", "2026-03-01T08:00:00", "host-a");
    await deliver(work, "t2", "2026-03-01T09:00:00", "host-b");
    await deliver(work, "t3", "2026-03-01T10:00:00", "host-a");
    expect(await ids(work)).toEqual(["t3", "t2", "t1"]);
  });

  test("tells also of a transfer whose receipt holds more than a line can", async () => {
    const work = await makeWork();
    for (const [at, text] of ["x", "\u0001", "👍"].entries()) {
      const sender = text.repeat(70_000);
      await note(work, `t${at}`, "discovered", `2026-03-01T08:00:0${at}`, undefined, { sender });
    }
    const { entries, damaged } = await read(work);
    expect([entries.map(({ trackingId }) => trackingId), damaged]).toEqual([["t2", "t1", "t0"], []]);
    expect(entries.map(({ sender }) => sender.length)).toEqual([1_001, 1_001, 1_001]);
  });

  test("passes over lines that a crash made the journal repeat", async () => {
    const work = await makeWork();
    await deliver(work, "t1", "2026-03-01T08:00:00");
    await deliver(work, "t2", "2026-03-01T09:00:00");
    await note(work, "t1", "delivered", "2026-03-01T08:00:03");
    expect(await ids(work)).toEqual(["t2", "t1"]);
    const changes = await read(work, { changes: true });
    expect(changes.entries.map(({ trackingId, state }) => `${trackingId} ${state}`)).toEqual(
      ["t2", "t1"].flatMap((id) => STATES.toReversed().map((state) => `${id} ${state}`)),
    );
  });

  test("says what came to be a state, whatever came after it, also in another month", async () => {
    const work = await makeWork();
    await deliver(work, "t1", "2026-03-31T08:00:00");
    await note(work, "t1", "collected", "2026-04-02T08:00:00");
    expect((await read(work)).entries).toMatchObject([{ state: "collected" }]);
    expect((await read(work, { state: "delivered" })).entries).toMatchObject([
      { trackingId: "t1", state: "delivered" },
    ]);
    expect(await ids(work, { state: "quarantined" })).toEqual([]);
  });

  test("selects by time, sender, mailbox and text", async () => {
    const work = await makeWork();
    await deliver(work, "t1", "2026-03-01T08:00:00", undefined, { sender: "Anna@Supplier.example" });
    await deliver(work, "t2", "2026-03-02T08:00:00", undefined, {
      sender: "lab@clinic.example",
      mailbox: "lab",
    });
    await deliver(work, "t3", "2026-03-03T08:00:00");
    expect(await ids(work, { sinceMs: Date.parse("2026-03-02") })).toEqual(["t3", "t2"]);
    expect(await ids(work, { untilMs: Date.parse("2026-03-02") })).toEqual(["t1"]);
    expect(await ids(work, { sinceMs: Date.parse("2026-04-01") })).toEqual([]);
    expect(await ids(work, { sender: "*@supplier.EXAMPLE" })).toEqual(["t1"]);
    expect(await ids(work, { sender: "lab" })).toEqual([]);
    expect(await ids(work, { mailbox: "lab" })).toEqual(["t2"]);
    expect(await ids(work, { search: "CLINIC" })).toEqual(["t2"]);
    expect(await ids(work, { search: "m/a@example.org/t3" })).toEqual(["t3"]);
    expect(await ids(work, { search: "t1", sender: "lab*" })).toEqual([]);
  });

  test("counts damaged lines, and tells the rest", async () => {
    const work = await makeWork();
    const file = join(work, "journal/2026-03.jsonl");
    await deliver(work, "t1", "2026-03-01T08:00:00");
    await appendFile(file, `{"at":"2026-03-01T09:00\n\n"text"\n${JSON.stringify({ at: "soon" })}\n`);
    await appendFile(file, `${"x".repeat(300_000)}\n`);
    // What a power cut can leave: zeros, and after the next start a whole line.
    await appendFile(file, Buffer.alloc(5_000));
    await deliver(work, "t2", "2026-03-01T10:00:00");
    await appendFile(file, '{"at":"2026-03-01T11:00:00.000Z","mail');
    const { entries, damaged } = await read(work);
    expect(entries.map(({ trackingId }) => trackingId)).toEqual(["t2", "t1"]);
    expect(damaged).toEqual([[file, 6]]);
  });

  test("reads no month that the question is not about", async () => {
    const work = await makeWork();
    await deliver(work, "t1", "2026-04-01T08:00:00");
    await writeFile(join(work, "journal/2026-03.jsonl"), "damaged\n");
    await writeFile(join(work, "journal/notes.txt"), "not ours\n");
    expect((await read(work, { limit: 1 })).damaged).toEqual([]);
    expect((await read(work, { sinceMs: Date.parse("2026-04-01") })).damaged).toEqual([]);
    expect((await read(work)).damaged).toHaveLength(1);
  });

  test("keeps no more than was asked for, however long the journal is, in whatever order its lines stand", async () => {
    const work = await makeWork();
    const lines = Array.from({ length: 20_000 }, (_, at) => {
      const second = new Date(Date.UTC(2026, 2, 1) + ((at * 7919) % 20_000) * 1000).toISOString();
      return JSON.stringify({
        at: second,
        mailbox: "m",
        trackingId: second,
        sender: "s",
        state: "delivered",
      });
    });
    await writeFile(join(work, "journal/2026-03.jsonl"), `${lines.join("\n")}\n`);
    const newest = Array.from({ length: 5 }, (_, at) =>
      new Date(Date.UTC(2026, 2, 1) + (19_999 - at) * 1000).toISOString(),
    );
    expect(await ids(work, { limit: 5 })).toEqual(newest);
  });

  test("is empty where nothing was ever collected, and says what it may not read", async () => {
    expect(await ids(await makeFolder())).toEqual([]);
    const work = await makeFolder();
    await writeFile(join(work, "journal"), "not a folder");
    await expect(read(work)).rejects.toMatchObject({ code: "DISK_UNREADABLE" });
  });
});

async function makeWork(): Promise<string> {
  const work = await makeFolder();
  await mkdir(join(work, "journal"));
  return work;
}

/** The four lines of a transfer that goes well, a second apart. */
async function deliver(
  work: string,
  trackingId: string,
  at: string,
  writer?: string,
  facts: { sender?: string; mailbox?: string } = {},
): Promise<void> {
  for (const [second, state] of STATES.entries()) {
    const moment = new Date(Date.parse(`${at}Z`) + second * 1000).toISOString();
    await note(work, trackingId, state, moment, writer, facts);
  }
}

async function note(
  work: string,
  trackingId: string,
  state: (typeof STATES)[number] | "collected",
  at: string,
  writer?: string,
  facts: { sender?: string; mailbox?: string } = {},
): Promise<void> {
  const moment = at.endsWith("Z") ? at : `${at}.000Z`;
  const folder =
    state.startsWith("d") && state !== "discovered" ? `m/a@example.org/${trackingId}` : undefined;
  const receipt = makeReceipt({ trackingId, state, folder, at: { [state]: moment }, ...facts });
  await appendToJournal(join(work, "journal"), receipt, writer);
}

async function read(work: string, query: Partial<HistoryQuery> = {}) {
  const damaged: [string, number][] = [];
  const history = readHistory(work, { limit: 50, ...query }, (...facts) => void damaged.push(facts));
  return { entries: await Array.fromAsync(history), damaged };
}

async function ids(work: string, query: Partial<HistoryQuery> = {}): Promise<string[]> {
  return (await read(work, query)).entries.map(({ trackingId }) => trackingId);
}
