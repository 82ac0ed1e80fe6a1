/** The address of the console: sockets and connections. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { limitConnections } from "../../../src/console/connections.ts";
import { startListening } from "../../../src/console/listen.ts";
import type { DaemonEvent } from "../../../src/model/events.ts";
import { makeFolder } from "../../support/program.ts";

/** Prints every mode that the file has had until the input ends. */
const WATCHER = `
const { statSync } = require("node:fs");
const seen = new Set();
let isOver = false;
process.stdin.on("end", () => { isOver = true; }).resume();
const look = () => {
  for (let at = 0; at < 2000; at++) {
    const found = statSync(process.argv[1], { throwIfNoEntry: false });
    if (found !== undefined) seen.add((found.mode & 0o777).toString(8));
  }
  if (isOver) console.log([...seen].join(" "));
  else setImmediate(look);
};
console.error("ready");
look();
`;

test("a Unix socket never has another mode than 0660, whatever the umask is", async () => {
  const folder = await makeFolder();
  const path = join(folder, "console.sock");
  const watcher = spawn(process.execPath, ["-e", WATCHER, path]);
  await once(watcher.stderr, "data");
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
  for (let times = 0; times < 5; times++) {
    const opened = Promise.withResolvers<void>();
    const close = startListening(createServer(), { path }, ({ type }) => {
      if (type === "console-opened") opened.resolve();
    });
    await opened.promise;
    expect((await stat(path)).mode & 0o777).toBe(0o660);
    expect(await readdir(folder)).toEqual(["console.sock"]);
    await close();
    expect(await readdir(folder)).toEqual([]);
  }
  watcher.stdin.end();
  expect((await text(watcher.stdout)).trim()).toBe("660");
});

test("a file at the address of the socket is left alone", async () => {
  const path = join(await makeFolder(), "console.sock");
  await writeFile(path, "not ours");
  const failed = Promise.withResolvers<DaemonEvent>();
  const close = startListening(createServer(), { path }, (event) => failed.resolve(event));
  expect(await failed.promise).toMatchObject({ type: "console-failed", reason: "EEXIST" });
  await close();
  expect((await stat(path)).size).toBe(8);
});

test("idle connections do not make the server unreachable", async () => {
  const server = createServer((_request, response) => void response.end("alive"));
  limitConnections(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets = Array.from({ length: 300 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.closeAllConnections();
    server.close();
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect").catch(() => {})));
  for (let times = 0; times < 3; times++) {
    expect(await (await fetch(`http://127.0.0.1:${port}/healthz`)).text()).toBe("alive");
  }
  await expect
    .poll(() => new Promise((resolve) => server.getConnections((_, count) => resolve(count))))
    .toBeLessThanOrEqual(101);
});
