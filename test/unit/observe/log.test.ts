import { fstatSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { createLog, isJournal, type LogOutput } from "../../../src/observe/log.ts";
import { makeFolder } from "../../support/program.ts";

const HOSTILE = "a\u009b2J\u202Eb\u2028c\u001b[2Jd\u{e0041}";

test.each([true, false])("a sender's text cannot control the terminal; terminal: %s", async (isTTY) => {
  const output = Object.assign(new PassThrough(), { isTTY });
  const log = createLog(output, "info");
  log.info({ sender: HOSTILE, list: [{ name: HOSTILE }] }, "discovered");
  output.end();
  const written = await text(output);
  expect(written.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\u2028\u2029]/u);
  expect(written).toContain("a\\u009b2J\\u202eb\\u2028c\\u001b[2Jd\\udb40\\udc41");
  if (!isTTY) expect(JSON.parse(written)).toMatchObject({ sender: HOSTILE, list: [{ name: HOSTILE }] });
});

test("a terminal shows a fault in lines of its own, and its text neither controls the terminal nor looks like a log line", async () => {
  const output = Object.assign(new PassThrough(), { isTTY: true });
  const fault = new Fault("ALGORITHM_UNKNOWN", { detail: `${HOSTILE}\n12:00:00 delivered` });
  createLog(output, "info").error({ fault }, "stuck");
  output.end();
  const [first, ...others] = (await text(output)).trimEnd().split("\n");
  expect(first).toMatch(/^\d\d:\d\d:\d\d ERROR stuck$/);
  expect(others).toHaveLength(3);
  for (const line of others) expect(line).toMatch(/^ {2}[^\p{Cc}\p{Cf}\u2028\u2029]+$/u);
});

test("each line names its level: in words, for the journal by its priority, and on a terminal where it matters", async () => {
  const words = await write({}, false);
  expect(words.map((line) => JSON.parse(line).level)).toEqual(["debug", "info", "warn", "error", "fatal"]);
  const journal = await write({}, true);
  expect(journal.map((line) => line.slice(0, 3))).toEqual(["<7>", "<6>", "<4>", "<3>", "<2>"]);
  for (const line of journal) JSON.parse(line.slice(3));
  const terminal = await write({ isTTY: true }, true);
  const pattern = /^\d\d:\d\d:\d\d (debug |WARN |ERROR |FATAL )?line {2}at=1$/;
  const shown = ["debug ", undefined, "WARN ", "ERROR ", "FATAL "];
  expect(terminal.map((line) => pattern.exec(line)?.[1])).toEqual(shown);
});

test("a stream is connected to the journal if JOURNAL_STREAM names its device and inode", async () => {
  const file = await open(join(await makeFolder(), "log"), "w");
  const other = await open(join(await makeFolder(), "other"), "w");
  try {
    const { dev, ino } = fstatSync(file.fd);
    const streamOf = (fd: number | undefined) => ({ fd }) as LogOutput;
    expect(isJournal(streamOf(file.fd), `${dev}:${ino}`)).toBe(true);
    expect(isJournal(streamOf(other.fd), `${dev}:${ino}`)).toBe(false);
    for (const wrong of [undefined, "", "1:2"]) expect(isJournal(streamOf(file.fd), wrong)).toBe(false);
    expect(isJournal(streamOf(undefined), `${dev}:${ino}`)).toBe(false);
    expect(isJournal(streamOf(9_999), `${dev}:${ino}`)).toBe(false);
  } finally {
    await Promise.all([file.close(), other.close()]);
  }
});

/** The lines of a log that has one of each level. */
async function write(stream: { readonly isTTY?: boolean }, journal: boolean): Promise<string[]> {
  const output = Object.assign(new PassThrough(), stream);
  const log = createLog(output, "debug", journal);
  for (const level of ["debug", "info", "warn", "error", "fatal"] as const) log[level]({ at: 1 }, "line");
  output.end();
  return (await text(output)).trimEnd().split("\n");
}
