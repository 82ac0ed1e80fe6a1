import { mkdir, rm, writeFile } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Fault } from "../../../src/base/faults.ts";
import { loadSettings } from "../../../src/config/load.ts";
import type { Settings } from "../../../src/config/settings.ts";
import { followSettings } from "../../../src/config/watch.ts";
import { SMALLEST, writeConfig } from "./stage.ts";

test("a change before the watch starts is noticed", async () => {
  const { path, events, follow } = await setUp(SMALLEST);
  await writeFile(path, SMALLEST.replace("/srv/inbox", "/srv/other"));
  await follow();
  expect(events).toEqual(["/srv/other"]);
});

test.each([
  ["unchanged", SMALLEST],
  ["unchanged, with a byte order mark", `\ufeff${SMALLEST}`],
])("a file that is %s is not reloaded", async (_, text) => {
  const { path, events, follow } = await setUp(text);
  await follow();
  await writeFile(path, text);
  await writeFile(path, text.replace("/srv/inbox", "/srv/other"));
  await expect.poll(() => events).toEqual(["/srv/other"]);
});

test("a file that has become unreadable is reported, and a readable one is used again", async () => {
  const { path, events, follow } = await setUp(SMALLEST);
  await rm(path);
  await mkdir(path);
  await follow();
  expect(events).toEqual([expect.stringContaining("EISDIR")]);
  await rm(path, { recursive: true });
  await writeFile(path, SMALLEST.replace("/srv/inbox", "/srv/other"));
  await expect.poll(() => events).toContain("/srv/other");
});

async function setUp(text: string) {
  const path = await writeConfig(text);
  const options = { path, env: {} };
  const settings = await loadSettings(options);
  const events: string[] = [];
  const watch = {
    changed: async (next: Settings) => void events.push(next.inbox),
    refused: ({ message }: Error) => void events.push(message),
    unwatchable: ({ code }: Fault) => void events.push(code),
  };
  const follow = async () => {
    const followed = await followSettings(path, settings.digest, options, watch);
    onTestFinished(() => followed.close());
  };
  return { path, events, follow };
}
