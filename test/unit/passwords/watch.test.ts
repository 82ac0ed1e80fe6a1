import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchDropFolder } from "../../../src/passwords/stored.ts";
import { useUpWatches } from "../../support/no-watches.ts";
import { makeFolder } from "../../support/program.ts";

test.each([
  ["can be watched", false],
  ["has no watches left", true],
])("a dropped password is noticed where the folder %s", async (_case, isRefused) => {
  if (isRefused) useUpWatches();
  const state = await makeFolder();
  await mkdir(join(state, "passwords"));
  const dropped: string[] = [];
  const said: string[] = [];
  const watching = await watchDropFolder(
    state,
    (trackingId) => void dropped.push(trackingId),
    ({ code }) => void said.push(code),
  );
  onTestFinished(() => watching.close());
  await watching.ready;
  await writeFile(join(state, "passwords", "20240524-192513-3n2yqVIW"), "secret");
  await expect.poll(() => dropped).toContain("20240524-192513-3n2yqVIW");
  expect(said).toEqual(isRefused ? ["WATCH_REFUSED"] : []);
});
