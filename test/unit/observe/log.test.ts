import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { createLog } from "../../../src/observe/log.ts";

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
