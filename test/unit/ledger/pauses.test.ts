/** The files of operators' pauses. */
import { mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createPause, readPauses, removePause, withPauses } from "../../../src/ledger/pauses.ts";
import { makeFolder } from "../../support/program.ts";
import { OPERATOR } from "../../support/settings.ts";

const AT = "2026-03-01T08:00:00.000Z";
const MAILBOXES = ["One", "two"].map((name) => ({ name, paused: false }));

test("a pause applies to every spelling of its mailbox, and the first one stays until it is removed", async () => {
  const work = await makeFolder();
  expect(await readPauses(work)).toEqual(new Map());
  await createPause(work, "ONE", OPERATOR, AT);
  await createPause(work, "one", { who: "late", from: "elsewhere" }, "2026-03-02T08:00:00.000Z");
  const [file = ""] = await readdir(join(work, "pauses"));
  expect(JSON.parse(await readFile(join(work, "pauses", file), "utf8"))).toEqual({
    mailbox: "ONE",
    ...OPERATOR,
    at: AT,
  });
  expect(withPauses(MAILBOXES, await readPauses(work))).toEqual([
    { name: "One", paused: true, pause: { ...OPERATOR, at: AT } },
    { name: "two", paused: false },
  ]);
  await removePause(work, "one");
  await removePause(work, "one");
  expect(withPauses(MAILBOXES, await readPauses(work))).toEqual(MAILBOXES);
  expect(await readdir(join(work, "new"))).toEqual([]);
});

test.each([
  ["torn", '{"who":'],
  ["without a time", JSON.stringify({ mailbox: "one", ...OPERATOR })],
  ["with a wrong time", JSON.stringify({ mailbox: "one", ...OPERATOR, at: "yesterday" })],
])("a file that is %s still pauses its mailbox, since it was written", async (_name, text) => {
  const work = await makeFolder();
  await createPause(work, "one", OPERATOR, AT);
  const [file = ""] = await readdir(join(work, "pauses"));
  await writeFile(join(work, "pauses", file), text);
  await utimes(join(work, "pauses", file), new Date(AT), new Date(AT));
  const [one] = withPauses(MAILBOXES, await readPauses(work));
  expect(one).toMatchObject({ paused: true, pause: { who: "unknown", at: AT } });
});

test("names that could hide text are replaced, and foreign files are ignored, also one in the place of the folder", async () => {
  const work = await makeFolder();
  await writeFile(join(work, "pauses"), "x");
  expect(await readPauses(work)).toEqual(new Map());
  await rm(join(work, "pauses"));
  await createPause(work, "one", OPERATOR, AT);
  const folder = join(work, "pauses");
  const [file = ""] = await readdir(folder);
  await writeFile(
    join(folder, file),
    JSON.stringify({ mailbox: "one", who: "a\u202eb\n", from: "", at: AT }),
  );
  await writeFile(join(folder, "README"), "x");
  await writeFile(join(folder, ".0123456789ab.part"), "{}");
  await mkdir(join(folder, "two.json"));
  expect([...(await readPauses(work)).values()]).toEqual([{ who: "a?b?", from: "", at: AT }]);
});
