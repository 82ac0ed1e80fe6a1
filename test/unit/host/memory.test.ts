import { mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { clearTemporaries } from "../../../src/base/durable.ts";
import { asFault } from "../../../src/base/faults.ts";
import {
  findClientId,
  keepClientId,
  loadConf,
  loadTokenStores,
  makeClientId,
  TEMPORARY_TOKEN,
} from "../../../src/host/memory.ts";
import { makeFolder } from "../../support/program.ts";
import { whileUnread } from "../../support/unread.ts";

const TOKEN = { token: "secret", obtained: 1 };

test("processes that start at the same time agree on one client id", async () => {
  const state = await makeFolder();
  const kept = await Promise.all(Array.from({ length: 8 }, () => keepClientId(state)));
  const ids = new Set(kept.map(({ clientId }) => clientId.reveal()));
  expect([...ids]).toEqual([(await findClientId(state))?.reveal()]);
  expect(kept.filter(({ isNew }) => isNew)).toHaveLength(1);
  expect(await readdir(state)).toEqual(["client-id"]);
  expect((await stat(join(state, "client-id"))).mode & 0o777).toBe(0o600);
});

test("a file that holds no client id is replaced, and one that the disk does not give is not", async () => {
  const state = await makeFolder();
  await writeFile(join(state, "client-id"), "none\n");
  const { clientId, isNew } = await keepClientId(state);
  expect(isNew).toBe(true);
  await expect(whileUnread("client-id", () => keepClientId(state))).rejects.toMatchObject({
    code: "DISK_UNREADABLE",
  });
  expect((await keepClientId(state)).clientId.reveal()).toBe(clientId.reveal());
});

test("tokens of different mailboxes are independent", async () => {
  const folder = await makeFolder();
  const open = await loadTokenStores();
  const [daemon, person] = [open(folder), open(folder)];
  expect(daemon.read("a")).toBeUndefined();
  await Promise.all([daemon.write("a", TOKEN), person.write("b", { ...TOKEN, validUntil: 2 })]);
  expect([person.read("a"), daemon.read("b")]).toEqual([TOKEN, { ...TOKEN, validUntil: 2 }]);
  expect((await readdir(folder)).toSorted()).toEqual(["a.json", "b.json"]);
});

test.each(["", "{", "[]", "{}", '{"token":1,"obtained":1}'])(
  "a damaged token counts as none, and can be replaced: %s",
  async (text) => {
    const folder = await makeFolder();
    const store = (await loadTokenStores())(folder);
    await writeFile(join(folder, "a.json"), text);
    expect(store.read("a")).toBeUndefined();
    expect(await readFile(join(folder, "a.json"), "utf8")).toBe(text);
    await store.write("a", TOKEN);
    expect(store.read("a")).toEqual(TOKEN);
  },
);

test("a token is not written through a link", async () => {
  const folder = await makeFolder();
  const store = (await loadTokenStores())(folder);
  await mkdir(join(folder, "elsewhere"));
  await writeFile(join(folder, "elsewhere/file"), "theirs");
  await symlink(join(folder, "elsewhere/file"), join(folder, "a.json"));
  await store.write("a", TOKEN);
  expect(store.read("a")).toEqual(TOKEN);
  expect(await readFile(join(folder, "elsewhere/file"), "utf8")).toBe("theirs");
});

test("a disk error on writing a token is reported", async () => {
  const store = (await loadTokenStores())(join(await makeFolder(), "x".repeat(300)));
  expect(await store.write("a", TOKEN).catch(asFault)).toMatchObject({ code: "DISK_REFUSED" });
});

test("a half-written token of a killed process is removed later", async () => {
  const folder = await makeFolder();
  const name = "a.json.tmp-1234567890abcdef";
  await writeFile(join(folder, name), "{");
  await clearTemporaries(folder, Date.now(), TEMPORARY_TOKEN);
  expect(await readdir(folder)).toEqual([name]);
  await utimes(join(folder, name), 0, 0);
  await clearTemporaries(folder, Date.now(), TEMPORARY_TOKEN);
  expect(await readdir(folder)).toEqual([]);
});

test("a signal reaches the process once", async () => {
  const before = process.listenerCount("SIGTERM");
  await loadConf();
  expect(process.listenerCount("SIGTERM")).toBe(before);
});

test("a client id has the form that services accept", () => {
  expect(makeClientId().reveal()).toMatch(/^[0-9a-f]{80}$/);
});
