import { appendFile, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { Journal } from "../../../src/ledger/journal.ts";
import { JournalFile, readLinesBackward } from "../../../src/ledger/lines.ts";
import type { JournalKind } from "../../../src/model/queries.ts";
import type { State } from "../../../src/model/record.ts";
import type { JournalQuery, RecordedAct } from "../../../src/model/views.ts";
import { readJournal, tallyHistory } from "../../../src/operate/history.ts";
import { watchCalls } from "../../support/open-files.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";

let work = "";
beforeEach(async () => {
  work = await makeWork();
});

const STATES = ["discovered", "downloading", "delivering", "delivered"] as const;

describe("history", () => {
  test("shows each transfer once, by its last change of state, the newest first over all months", async () => {
    await deliver("march", "2026-03-31T23:59:50");
    await deliver("april", "2026-04-01T00:00:00");
    await deliver("may", "2026-05-09T10:00:00");
    expect(await ids()).toEqual(["may", "april", "march"]);
    expect(await ids({ limit: 2 })).toEqual(["may", "april"]);
    const [newest] = (await read()).entries;
    expect(newest).toMatchObject({ state: "delivered", folder: "m/may", mailbox: "m", round: 1 });
  });

  test("finds the newest of several long files, and the newest entry of a transfer that moved between them", async () => {
    for (const [at, writer] of ["a", "b", "c"].entries()) {
      await writeJournal(
        `2026-03.${writer}`,
        Array.from({ length: 5_000 }, (_, line) => lineOf(`${writer}${line}`, 3 * line + at)),
      );
    }
    await appendFile(join(work, "journal/2026-03.a.jsonl"), `${lineOf("moved", 15_001)}\n`);
    await appendFile(join(work, "journal/2026-03.b.jsonl"), `${lineOf("moved", 15_002)}\n`);
    const newest = ["moved", ...Array.from({ length: 999 }, (_, at) => nth(14_999 - at))];
    const { entries } = await read({ limit: 1_000 });
    expect(idsOf(entries)).toEqual(newest);
    expect(entries[0]?.at).toBe(momentOf(15_002));
  });

  test("shows transfers whose record holds more than a line can", async () => {
    for (const [at, text] of ["x", "\u0001", "👍"].entries()) {
      await note(`t${at}`, "discovered", `2026-03-01T08:00:0${at}`, { sender: text.repeat(70_000) });
    }
    const { entries, damaged } = await read();
    expect([idsOf(entries), damaged]).toEqual([["t2", "t1", "t0"], []]);
    expect(entries.map(({ sender }) => sender.length)).toEqual([1_001, 1_001, 1_001]);
  });

  test("shows the end of a round once, though a crash made the journal repeat it", async () => {
    await deliver("t1", "2026-03-01T08:00:00");
    await deliver("t2", "2026-03-01T09:00:00");
    await note("t1", "delivered", "2026-03-01T08:59:00");
    await note("t1", "delivered", "2026-03-01T10:00:00", { round: 2 });
    expect(await ids()).toEqual(["t1", "t2"]);
    const changes = (await read({}, "changes")).entries;
    expect(changes.map(({ trackingId, state, round }) => `${trackingId} ${state} ${round}`)).toEqual([
      "t1 delivered 2",
      ...STATES.toReversed().map((state) => `t2 ${state} 1`),
      ...STATES.toReversed().map((state) => `t1 ${state} 1`),
    ]);
  });

  test("selects transfers that entered a state, whatever followed, also in another month", async () => {
    await deliver("t1", "2026-03-31T08:00:00");
    await note("t1", "picked-up", "2026-04-02T08:00:00");
    expect((await read()).entries).toMatchObject([{ state: "picked-up" }]);
    expect((await read({ state: "delivered" })).entries).toMatchObject([
      { trackingId: "t1", state: "delivered" },
    ]);
    expect(await ids({ state: "quarantined" })).toEqual([]);
  });

  test("selects by time, sender, mailbox and text", async () => {
    await deliver("t1", "2026-03-01T08:00:00", { sender: "Anna@Supplier.example" });
    await deliver("t2", "2026-03-02T08:00:00", { sender: "lab@clinic.example", mailbox: "lab" });
    await deliver("t3", "2026-03-03T08:00:00");
    expect(await ids({ sinceMs: Date.parse("2026-03-02") })).toEqual(["t3", "t2"]);
    expect(await ids({ untilMs: Date.parse("2026-03-02") })).toEqual(["t1"]);
    expect(await ids({ sinceMs: Date.parse("2026-04-01") })).toEqual([]);
    expect(await ids({ sender: "*@supplier.EXAMPLE" })).toEqual(["t1"]);
    expect(await ids({ sender: "*@supplier.ex\u200bample." })).toEqual(["t1"]);
    expect(await ids({ sender: "lab" })).toEqual([]);
    expect(await ids({ mailbox: "lab" })).toEqual(["t2"]);
    expect(await ids({ text: "CLINIC" })).toEqual(["t2"]);
    expect(await ids({ text: "m/t3" })).toEqual(["t3"]);
    expect(await ids({ text: "t1", sender: "lab*" })).toEqual([]);
  });

  test("counts damaged lines, and shows the rest", async () => {
    const file = join(work, "journal/2026-03.jsonl");
    await deliver("t1", "2026-03-01T08:00:00");
    await appendFile(file, `{"at":"2026-03-01T09:00\n\n"text"\n${JSON.stringify({ at: "soon" })}\n`);
    await appendFile(file, `${"x".repeat(300_000)}\n`);
    // A power cut can leave zeros; the next start appends a whole line to them.
    await appendFile(file, Buffer.alloc(5_000));
    await deliver("t2", "2026-03-01T10:00:00");
    await appendFile(file, '{"at":"2026-03-01T11:00:00.000Z","mail');
    const { entries, damaged } = await read();
    expect(idsOf(entries)).toEqual(["t2", "t1"]);
    expect(damaged).toEqual([{ path: file, lines: 6 }]);
    expect((await read({ state: "picked-up" })).damaged).toEqual(damaged);
  });

  test("shows an entry that was appended to a torn line", async () => {
    const file = join(work, "journal/2026-03.jsonl");
    await note("t1", "discovered", "2026-03-01T08:00:00");
    await appendFile(file, '{"at":"2026-03-01T11:00:00.000Z","mail');
    await note("t2", "discovered", "2026-03-01T12:00:00");
    const { entries, damaged } = await read();
    expect(idsOf(entries)).toEqual(["t2", "t1"]);
    expect(damaged).toEqual([{ path: file, lines: 1 }]);
    expect((await read({ state: "picked-up" })).damaged).toEqual(damaged);
    expect(await ids({ state: "discovered" })).toEqual(["t2", "t1"]);
  });

  test("stops at lines that are too old, whatever their state is", async () => {
    const days = Array.from({ length: 28 }, (_, day) =>
      Array.from({ length: 500 }, (_, at) => lineOf(`d${day}-${at}`, day * 86_400 + at)),
    );
    await writeJournal("2026-03", days.flat());
    const reads = watchCalls("read");
    expect(await ids({ state: "gone", sinceMs: Date.UTC(2026, 2, 28) })).toEqual([]);
    expect(reads.count).toBeLessThan(6);
  });

  test("reads no month that the query is not about", async () => {
    await deliver("t1", "2026-04-01T08:00:00");
    await writeFile(join(work, "journal/2026-03.jsonl"), "damaged\n");
    await writeFile(join(work, "journal/notes.txt"), "not ours\n");
    expect((await read({ limit: 1 })).damaged).toEqual([]);
    expect((await read({ sinceMs: Date.parse("2026-04-01") })).damaged).toEqual([]);
    expect((await read()).damaged).toHaveLength(1);
  });

  test("reads a few blocks from the end of a month with 20,000 lines", async () => {
    const lines = Array.from({ length: 20_000 }, (_, at) => lineOf(`t${at}`, at));
    await writeJournal("2026-03", ["damaged", ...lines]);
    const { entries, damaged } = await read({ limit: 50 });
    expect(idsOf(entries)).toEqual(Array.from({ length: 50 }, (_, at) => `t${19_999 - at}`));
    expect(damaged).toEqual([]);
    expect(await countReads({ limit: 50 })).toBeLessThanOrEqual(2);
  });

  test("stops a day before the time that is asked for, so that a clock set back by less loses nothing", async () => {
    const hour = 3_600;
    const old = Array.from({ length: 20_000 }, (_, at) => lineOf(`old${at}`, 0));
    const newer = [lineOf("t1", 100 * hour), lineOf("set-back", 80 * hour), lineOf("t2", 101 * hour)];
    await writeJournal("2026-03", [...old, ...newer]);
    const sinceMs = Date.parse(momentOf(99 * hour));
    expect(await ids({ sinceMs })).toEqual(["t2", "t1"]);
    expect(await countReads({ sinceMs })).toBeLessThanOrEqual(2);
    expect(await ids({ sinceMs: Date.parse(momentOf(70 * hour)) })).toEqual(["t2", "t1", "set-back"]);
  });

  test("sorts lines that a clock, set back by a little, put out of order", async () => {
    // Each line may be up to 20 seconds off.
    const lines = Array.from({ length: 20_000 }, (_, at) => lineOf(`t${at}`, at + ((at * 7919) % 21)));
    await writeJournal("2026-03", lines);
    const { entries } = await read({ limit: 100 });
    const times = entries.map(({ at }) => at);
    expect(times).toEqual(times.toSorted().reverse());
    const newest = Array.from({ length: 20_000 }, (_, at) => momentOf(at + ((at * 7919) % 21)))
      .toSorted()
      .reverse();
    expect(times).toEqual(newest.slice(0, 100));
  });

  test("passes over a month that retention removes meanwhile", async () => {
    const file = new JournalFile(join(await makeWork(), "journal/2026-03.jsonl"), {
      kind: "change",
      signal: undefined,
    });
    expect([await file.readBlock(), file.isOver]).toEqual([[], true]);
  });

  test("is empty without a journal, says what it may not read, and stops when it is told to", async () => {
    expect(await ids()).toEqual([]);
    await rm(join(work, "journal"), { recursive: true });
    expect(await ids()).toEqual([]);
    await mkdir(join(work, "journal"));
    await deliver("t1", "2026-03-01T08:00:00");
    const history = readJournal(work, "transfers", { limit: 50 }, AbortSignal.abort());
    await expect(history).rejects.toMatchObject({ code: "STOPPED" });
    await rm(join(work, "journal"), { recursive: true });
    await writeFile(join(work, "journal"), "not a folder");
    await expect(read()).rejects.toMatchObject({ code: "DISK_UNREADABLE" });
  });
});

describe("a tally", () => {
  const DAY_MS = 24 * 3_600_000;
  const FROM_MS = Date.UTC(2026, 1, 27);
  const ENDS = ["delivered", "quarantined", "gone"] as const;

  async function tally(slotMs = 40 * DAY_MS) {
    return tallyHistory(work, { sinceMs: FROM_MS, untilMs: FROM_MS + 40 * DAY_MS, slotMs });
  }

  test("counts each end once, though crashes made the journal repeat ends, in any file and month", async () => {
    const end = fc.record({
      trackingId: fc.constantFrom("t1", "t2", "t3"),
      mailbox: fc.constantFrom("m1", "m2"),
      round: fc.integer({ min: 1, max: 3 }),
      state: fc.constantFrom(...ENDS),
      writer: fc.constantFrom("", ".a", ".b"),
      // From February to April.
      atMs: fc.integer({ min: FROM_MS, max: FROM_MS + 40 * DAY_MS - 1 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(end, { maxLength: 40 }), async (ends) => {
        work = await makeWork();
        const sorted = ends.toSorted((a, b) => a.atMs - b.atMs);
        for (const { atMs, writer, ...facts } of sorted) {
          const at = new Date(atMs).toISOString();
          const line = JSON.stringify({ at, ...facts, sender: "s", bytes: 5 });
          await appendFile(join(work, `journal/${at.slice(0, 7)}${writer}.jsonl`), `${line}\n`);
        }
        const keys = ends.map(({ mailbox, trackingId, round, state }) =>
          [mailbox, trackingId, round, state].join(),
        );
        const count = (state: string) => [...new Set(keys)].filter((key) => key.endsWith(state)).length;
        const [delivered, quarantined, gone] = ENDS.map(count);
        expect(await tally()).toEqual([{ delivered, quarantined, gone, bytes: 5 * (delivered ?? 0) }]);
      }),
      { numRuns: 50 },
    );
  });

  test("counts the last line of a repeated end, as the history shows it", async () => {
    await writeJournal("2026-03", [lineOf("t1", 0), lineOf("t2", 0), lineOf("t1", 86_400)]);
    const slots = await tally(DAY_MS);
    expect(slots.slice(1, 5).map(({ delivered }) => delivered)).toEqual([0, 1, 1, 0]);
  });

  test("I8 bounded: remembers some of the ends, and still counts each of 60,000 once that two processes wrote", async () => {
    const lines = Array.from({ length: 60_000 }, (_, at) => lineOf(`t${at}`, at));
    for (const writer of ["a", "b"]) await writeJournal(`2026-03.${writer}`, lines);
    expect(await tally()).toMatchObject([{ delivered: 60_000 }]);
  });
});

test("lines from the end of a file are those from its beginning, reversed, wherever blocks begin", async () => {
  const path = join(await makeFolder(), "lines");
  const piece = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom("\n", "ä", "👍", "\0", "x") },
    fc.string({ unit: "binary", maxLength: 12 }),
  );
  const content = fc.oneof(
    fc.array(piece, { maxLength: 40 }).map((pieces) => Buffer.from(pieces.join(""))),
    fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes)),
  );
  await fc.assert(
    fc.asyncProperty(
      content,
      fc.integer({ min: 1, max: 16 }),
      fc.integer({ min: 0, max: 20 }),
      async (bytes, blockBytes, maxBytes) => {
        await writeFile(path, bytes);
        const batches = await Array.fromAsync(readLinesBackward(path, { maxBytes, blockBytes }));
        expect(batches.flat()).toEqual(splitForward(bytes, maxBytes).reverse());
      },
    ),
    { numRuns: 500 },
  );
});

test("lines from the end of a file leave out what was appended after the first block", async () => {
  const path = join(await makeFolder(), "lines");
  await writeFile(path, "one\ntwo\n");
  const lines = readLinesBackward(path, { maxBytes: 100, blockBytes: 5 });
  expect((await lines.next()).value).toEqual(["two"]);
  await appendFile(path, "three\n");
  expect((await lines.next()).value).toEqual(["one"]);
});

describe("operators' acts", () => {
  const ABOUT = { mailbox: "m", trackingId: "t1", sender: "s" };
  const ACT = { act: "retry", id: "1", who: "anna", from: "desk", ...ABOUT } as const;

  test("are shown apart from changes of state, newest first, each once", async () => {
    await deliver("t1", "2026-03-01T08:00:00");
    await record(ACT, "2026-03-01T09:00:00");
    await record({ ...ACT, id: "2", act: "password" }, "2026-04-01T09:00:00");
    await record(ACT, "2026-04-02T09:00:00");
    const reload = { id: "3", act: "reload", who: "/etc/inlet.yaml", from: "h", keys: ["limits"] } as const;
    await record(reload, "2026-04-03T09:00:00");
    expect((await acts()).entries.map(({ id, at }) => `${id} ${at.slice(0, 10)}`)).toEqual([
      "3 2026-04-03",
      "1 2026-04-02",
      "2 2026-04-01",
    ]);
    const { entries, damaged } = await read({}, "changes");
    expect([idsOf(entries), damaged]).toEqual([["t1", "t1", "t1", "t1"], []]);
  });

  test.each([
    [{ transfer: { mailbox: "M", trackingId: "t1" } }, ["1"]],
    [{ transfer: { mailbox: "other", trackingId: "t1" } }, []],
    [{ text: "ANNA" }, ["1"]],
    [{ text: "t2" }, ["2"]],
    [{ sender: "*@x" }, ["2"]],
    [{ mailbox: "n" }, ["2"]],
    [{ sinceMs: Date.parse("2026-03-01T09:30:00Z") }, ["2"]],
    [{ untilMs: Date.parse("2026-03-01T09:30:00Z") }, ["1"]],
  ])("are selected by %j", async (query, found) => {
    await record(ACT, "2026-03-01T09:00:00");
    const other = { mailbox: "n", trackingId: "t2", sender: "b@x", who: "bob" };
    await record({ ...ACT, ...other, id: "2" }, "2026-03-01T10:00:00");
    expect((await acts(query)).entries.map(({ id }) => id)).toEqual(found);
  });

  test("by an operator whose name would hide text are shown in one line", async () => {
    const at = "2026-03-01T09:00:00.000Z";
    const lines = [{ ...ACT, who: "a\u202eb\nc" }, { act: "unknown" }];
    const texts = lines.map((line) => JSON.stringify({ at, ...line }));
    await writeJournal("2026-03", texts);
    const { entries, damaged } = await acts();
    expect([entries, damaged]).toMatchObject([[{ who: "a?b?c" }], [{ lines: 1 }]]);
  });
});

async function record(act: RecordedAct, at: string): Promise<void> {
  const journal = new Journal(join(work, "journal"), undefined, { now: () => Date.parse(`${at}Z`) });
  journal.addAct(act);
  await journal.flush();
}

function acts(query: object = {}) {
  return readJournal(work, "acts", { limit: 50, ...query });
}

function splitForward(bytes: Buffer, maxBytes: number): (string | undefined)[] {
  const lines: (string | undefined)[] = [];
  for (let rest = bytes; rest.length > 0; ) {
    const end = rest.indexOf("\n");
    const line = end < 0 ? rest : rest.subarray(0, end);
    lines.push(line.length > maxBytes ? undefined : line.toString());
    rest = end < 0 ? Buffer.alloc(0) : rest.subarray(end + 1);
  }
  return lines;
}

async function makeWork(): Promise<string> {
  const work = await makeFolder();
  await mkdir(join(work, "journal"));
  return work;
}

interface Facts {
  readonly sender?: string;
  readonly mailbox?: string;
  readonly round?: number;
  readonly writer?: string;
}

/** The four lines of a transfer that goes well, a second apart. */
async function deliver(trackingId: string, at: string, facts: Facts = {}): Promise<void> {
  for (const [second, state] of STATES.entries()) {
    const moment = new Date(Date.parse(`${at}Z`) + second * 1000).toISOString();
    await note(trackingId, state, moment.slice(0, 19), facts);
  }
}

async function note(
  trackingId: string,
  state: State,
  at: string,
  { writer, ...facts }: Facts = {},
): Promise<void> {
  const journal = new Journal(join(work, "journal"), writer, { now: () => Date.parse(`${at}Z`) });
  const isPlaced = state === "delivering" || state === "delivered";
  const folder = isPlaced ? `m/${trackingId}` : undefined;
  journal.add(makeRecord({ trackingId, state, folder, at: {}, ...facts }));
  await journal.flush();
}

async function writeJournal(name: string, lines: readonly string[]): Promise<void> {
  await writeFile(join(work, `journal/${name}.jsonl`), `${lines.join("\n")}\n`);
}

function lineOf(trackingId: string, second: number): string {
  const at = momentOf(second);
  return JSON.stringify({ at, mailbox: "m", trackingId, sender: "s", state: "delivered", round: 1 });
}

function momentOf(second: number): string {
  return new Date(Date.UTC(2026, 2, 1) + second * 1000).toISOString();
}

/** Of three files whose lines alternate. */
function nth(second: number): string {
  return `${"abc"[second % 3]}${Math.floor(second / 3)}`;
}

function read(query: Partial<JournalQuery> = {}, kind: Exclude<JournalKind, "acts"> = "transfers") {
  return readJournal(work, kind, { limit: 50, ...query });
}

async function ids(query: Partial<JournalQuery> = {}): Promise<string[]> {
  return idsOf((await read(query)).entries);
}

function idsOf(entries: readonly { readonly trackingId: string }[]): string[] {
  return entries.map(({ trackingId }) => trackingId);
}

async function countReads(query: Partial<JournalQuery>): Promise<number> {
  const reads = watchCalls("read");
  await read(query);
  return reads.count;
}
