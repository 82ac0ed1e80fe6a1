/** Commands trust a socket only where nobody but root and the daemon's user can have put it. */
import { once } from "node:events";
import { chmod, chown, lchown, mkdir, rename, symlink } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname, join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { proveOwned } from "../../../src/host/socket.ts";
import { makeFolder } from "../../support/program.ts";

const DAEMON = 1_000;
const STRANGER = 65_534;

test("a socket of this user in its own folder is proven, by its real path, below a sticky folder as well", async () => {
  const { path, folder } = await openSocket();
  expect(await proveOwned(path)).toBe(path);
  await chmod(dirname(folder), 0o1777);
  expect(await proveOwned(path)).toBe(path);
  await chmod(folder, 0o1777);
  expect(await proveOwned(path)).toBe(path);
  const link = join(await makeFolder(), "run");
  await symlink(folder, link);
  expect(await proveOwned(join(link, "s.sock"))).toBe(path);
});

test.each([0o770, 0o702, 0o2777])("a folder that others may write is refused: mode %o", async (mode) => {
  const { path, folder } = await openSocket();
  await chmod(folder, mode);
  const refused = { code: "SOCKET_UNSAFE", message: expect.stringContaining(`chmod go-w ${folder}`) };
  await expect(proveOwned(path)).rejects.toMatchObject(refused);
  await chmod(folder, 0o700);
  await chmod(dirname(folder), mode);
  await expect(proveOwned(path)).rejects.toMatchObject({ code: "SOCKET_UNSAFE" });
});

test("a link in the place of the socket is refused", async () => {
  const { path } = await openSocket();
  await rename(path, `${path}.other`);
  await symlink(`${path}.other`, path);
  await expect(proveOwned(path)).rejects.toMatchObject({ code: "SOCKET_UNSAFE" });
});

test("a missing socket is no unsafe one", async () => {
  await expect(proveOwned(join(await makeFolder(), "s.sock"))).rejects.toMatchObject({ code: "ENOENT" });
});

test("a socket of another user is the daemon's only if that user is named, as each folder above is", {
  tags: ["system"],
}, async () => {
  const { path, folder } = await openSocket();
  for (const each of [folder, path]) await chown(each, DAEMON, DAEMON);
  const refused = { code: "SOCKET_UNSAFE", message: expect.stringContaining("belongs to user 1000") };
  const others = async () => [DAEMON];
  await expect(proveOwned(path)).rejects.toMatchObject(refused);
  expect(await proveOwned(path, others)).toBe(path);
  // A stranger's socket in the daemon's folder, and the daemon's socket in a stranger's folder.
  await chown(path, STRANGER, STRANGER);
  await expect(proveOwned(path, others)).rejects.toMatchObject({ code: "SOCKET_UNSAFE" });
  await chown(path, DAEMON, DAEMON);
  await lchown(folder, STRANGER, STRANGER);
  await expect(proveOwned(path, others)).rejects.toMatchObject({ code: "SOCKET_UNSAFE" });
});

async function openSocket() {
  const folder = join(await makeFolder(), "run");
  await mkdir(folder, { mode: 0o700 });
  const path = join(folder, "s.sock");
  const server = createServer().listen(path);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { folder, path };
}
