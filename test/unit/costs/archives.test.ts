/** I8 bounded: the work for many archives in one transfer grows with their number, not with its square. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { onMachine, systemMachine } from "../../../src/base/machine.ts";
import type { Sum } from "../../../src/base/sums.ts";
import type { Contents } from "../../../src/model/manifest.ts";
import type { Run } from "../../../src/transfer/run.ts";
import { unpackZip } from "../../../src/transfer/unpack.ts";
import { unpackArchives } from "../../../src/transfer/unpack-archives.ts";
import { makeFolder } from "../../support/program.ts";
import { makeRecord } from "../../support/record.ts";
import { countTurns } from "../../support/turns.ts";
import { writeZip } from "../../support/zip-writer.ts";
import { wish } from "../transfer/unpacking.ts";

const ARCHIVES = 50;

test("the names of all unpacked files are chosen together", async () => {
  const folder = await makeFolder();
  const zip = writeZip([{ name: "a.txt", content: "x" }]);
  const names = Array.from({ length: ARCHIVES }, (_, at) => `${at}.zip`);
  for (const name of names) await writeFile(join(folder, name), zip);
  const unpack = async () =>
    unpackArchives(makeRun(folder), {
      message: "none",
      files: names.map((name) => ({
        name,
        originalName: name,
        size: zip.length,
        sha256: "" as Sum,
        verified: true,
      })),
    });
  let unpacked: Contents | undefined;
  const turns = await countTurns(async () => {
    unpacked = await unpack();
  });
  expect(unpacked?.files.map(({ name }) => name)).toEqual([...names, ...names.map((_, at) => `${at}_a.txt`)]);
  // A turn is several items. Each archive is listed and unpacked, and each name is compared.
  expect(turns).toBeLessThan(ARCHIVES);
});

test("the files of a damaged archive are removed a few at a time", async () => {
  const folder = await makeFolder();
  const zipPath = join(await makeFolder(), "a.zip");
  const wanted = Array.from({ length: ARCHIVES }, (_, at) => wish(`${at}`, "x", `${at}`));
  const entries = wanted.map(({ originalName: name }) => ({ name, content: "x" }));
  await writeFile(zipPath, writeZip([...entries.slice(1), { name: "0", content: "y" }]));
  let [removing, most, removed] = [0, 0, 0];
  const rm: typeof systemMachine.files.rm = async (...args) => {
    most = Math.max(most, ++removing);
    await systemMachine.files.rm(...args);
    removing--;
    removed++;
  };
  const machine = { ...systemMachine, files: { ...systemMachine.files, rm } };
  const { signal } = new AbortController();
  const unpacked = onMachine(machine, () => unpackZip(zipPath, wanted, folder, { fileMode: 0o600 }, signal));
  await expect(unpacked).rejects.toMatchObject({ code: "CHECKSUM_MISMATCH" });
  expect(removed).toBeGreaterThan(ARCHIVES / 2);
  expect(most).toBeLessThan(20);
});

/** The parts of a run that unpacking needs. */
function makeRun(folder: string): Run {
  const limits = { maxFiles: 10 * ARCHIVES, maxTransferBytes: 2 ** 40 };
  const inbox = { reserve: async () => ({ release() {} }) };
  const run = {
    record: makeRecord(),
    key: "NAME",
    handoff: { unpack: "beside", fileMode: 0o600 },
    signal: new AbortController().signal,
    tools: { limits, inbox, emit() {} },
    openStage: async () => ({ folder }),
    contents: undefined as Contents | undefined,
  };
  return run as unknown as Run;
}
