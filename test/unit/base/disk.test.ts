import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { OpenFolders } from "../../../src/base/disk.ts";
import { makeFolder } from "../../support/program.ts";

test("a folder that could not be opened is opened anew for the next sync", async () => {
  const folder = join(await makeFolder(), "later");
  const folders = new OpenFolders();
  await expect(folders.sync(folder)).rejects.toMatchObject({ code: "ENOENT" });
  await mkdir(folder);
  await folders.sync(folder);
  await folders.sync(folder);
  await folders.close();
});

test("folders are opened again after they were closed", async () => {
  const folder = await makeFolder();
  const folders = new OpenFolders();
  await folders.sync(folder);
  await folders.close();
  await rm(folder, { recursive: true });
  await expect(folders.sync(folder)).rejects.toMatchObject({ code: "ENOENT" });
});
