import { writeFile } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Fault } from "../../../src/base/faults.ts";
import { loadSettings } from "../../../src/config/load.ts";
import type { Settings } from "../../../src/config/settings.ts";
import { followSettings } from "../../../src/config/watch.ts";
import { useUpWatches } from "../../support/no-watches.ts";
import { SMALLEST, writeConfig } from "./stage.ts";

test("a change counts also when it was made before anybody watched", async () => {
  const { path, heard, follow } = await setUp(SMALLEST);
  await writeFile(path, SMALLEST.replace("/srv/inbox", "/srv/other"));
  await follow();
  expect(heard).toEqual(["/srv/other"]);
});

test.each([
  ["as it was", SMALLEST],
  ["as it was, with a mark for the byte order", `\ufeff${SMALLEST}`],
])("a file that is %s is not read again", async (_, text) => {
  const { path, heard, follow } = await setUp(text);
  await follow();
  await writeFile(path, text);
  await writeFile(path, text.replace("/srv/inbox", "/srv/other"));
  await expect.poll(() => heard).toEqual(["/srv/other"]);
});

test("a change is noticed also where the system has no watches left, which is said once", async () => {
  useUpWatches();
  const { path, heard, follow } = await setUp(SMALLEST);
  await follow();
  expect(heard).toEqual(["WATCH_REFUSED"]);
  await writeFile(path, SMALLEST.replace("/srv/inbox", "/srv/other"));
  await expect.poll(() => heard).toEqual(["WATCH_REFUSED", "/srv/other"]);
});

async function setUp(text: string) {
  const path = await writeConfig(text);
  const options = { path, env: {} };
  const settings = await loadSettings(options);
  const heard: string[] = [];
  const watch = {
    changed: async (next: Settings) => void heard.push(next.inbox),
    refused: ({ message }: Error) => void heard.push(message),
    unwatchable: ({ code }: Fault) => void heard.push(code),
  };
  const follow = async () => {
    const followed = await followSettings(path, settings.digest, options, watch);
    onTestFinished(() => followed.close());
  };
  return { path, heard, follow };
}
