import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Stage } from "../../../src/ledger/port.ts";
import type { Contents } from "../../../src/model/manifest.ts";
import { copyContents } from "../../../src/transfer/reuse.ts";
import type { Run } from "../../../src/transfer/run.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";

test("content of a second attempt replaces that of a first one, which could not be proven", async () => {
  const root = await makeFolder();
  const [first, second, folder] = ["first", "second", "stage"].map((name) => join(root, name));
  for (const path of [first, second, folder]) await mkdir(path ?? "");
  await writeFile(join(first ?? "", "a.txt"), "spoilt");
  await writeFile(join(second ?? "", "a.txt"), "Hello");
  const file = { name: "a.txt", originalName: "a.txt", size: 5, sha256: "", verified: true };
  const contents: Contents = { message: "none", files: [file] };
  const stage = { folder, isNew: true } as Stage;
  const inbox = { reserve: async () => ({ release() {} }) };
  const run = { tools: { inbox }, handoff: { fileMode: 0o640 }, signal: SIGNAL } as unknown as Run;
  for (const from of [first, second]) await copyContents(run, stage, { folder: from ?? "", contents });
  expect(await readdir(folder ?? "")).toEqual(["a.txt"]);
  expect(await readFile(join(folder ?? "", "a.txt"), "utf8")).toBe("Hello");
});
