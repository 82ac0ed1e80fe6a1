/** The address of the console: sockets and connections. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, statSync, writeFileSync } from "node:fs";
import { readdir, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { startListening } from "../../../src/console/listen.ts";
import { makeFolder } from "../../support/program.ts";

/** What is at the path whenever a mode is set. */
const seen = vi.hoisted(() => ({ path: "", modes: [] as (number | undefined)[] }));

vi.mock("node:fs/promises", async (original) => {
  const real = await original<typeof import("node:fs/promises")>();
  return {
    ...real,
    async chmod(...args: Parameters<typeof real.chmod>) {
      seen.modes.push(statSync(seen.path, { throwIfNoEntry: false })?.mode);
      return real.chmod(...args);
    },
  };
});

test("a Unix socket appears with its mode, whatever the umask is", async () => {
  const folder = await makeFolder();
  const path = join(folder, "console.sock");
  seen.path = path;
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
  const opened = Promise.withResolvers<void>();
  const door = { mode: 0o660, find: async () => ({ path }), failed() {} };
  const close = startListening(createServer(), { ...door, opened: () => opened.resolve() });
  await opened.promise;
  // It was not there yet when it got its mode.
  expect(seen.modes).toEqual([undefined]);
  expect((await stat(path)).mode & 0o777).toBe(0o660);
  expect(await readdir(folder)).toEqual(["console.sock"]);
  await close();
  expect(await readdir(folder)).toEqual([]);
});

test("a file at the address of the socket is left alone, and a server that is closed during a retry does not listen afterwards", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const folder = await makeFolder();
  const path = join(folder, "console.sock");
  await writeFile(path, "not ours");
  const failed = Promise.withResolvers<unknown>();
  const server = createServer();
  const close = startListening(server, {
    mode: 0o660,
    find: async () => ({ path }),
    opened() {},
    failed: (_error, reason, address) => failed.resolve({ reason, address }),
  });
  expect(await failed.promise).toEqual({ reason: "EEXIST", address: `unix:${path}` });
  expect((await stat(path)).size).toBe(8);
  await rm(path);
  await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1));
  vi.advanceTimersByTime(30_000);
  await close();
  expect([server.listening, await readdir(folder)]).toEqual([false, []]);
  await new Promise((resolve) => setImmediate(resolve));
  expect([server.listening, await readdir(folder)]).toEqual([false, []]);
});

test("a socket whose file is removed is reported, and made again within a minute", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const path = join(await makeFolder(), "console.sock");
  const told: string[] = [];
  const close = startListening(createServer(), {
    mode: 0o660,
    find: async () => ({ path }),
    opened: () => void told.push("opened"),
    failed: (_error, reason) => void told.push(reason),
  });
  for (const expected of [["opened"], ["opened", "ENOENT", "opened"]]) {
    await vi.waitFor(() => expect([told, vi.getTimerCount()]).toEqual([expected, 1]));
    rmSync(path);
    vi.advanceTimersByTime(30_000);
  }
  await vi.waitFor(() => expect(told.filter((it) => it === "opened")).toHaveLength(3));
  const socket = connect(path);
  await once(socket, "connect");
  socket.destroy();
  expect((await stat(path)).mode & 0o777).toBe(0o660);
  await close();
  expect(told.slice(-2)).toEqual(["ENOENT", "opened"]);
});

test("what another process puts at the address once this one listens no more is left alone", async () => {
  const path = join(await makeFolder(), "console.sock");
  const opened = Promise.withResolvers<void>();
  const server = createServer();
  const door = { mode: 0o660, find: async () => ({ path }), failed() {} };
  const close = startListening(server, { ...door, opened: () => opened.resolve() });
  await opened.promise;
  server.once("close", () => {
    rmSync(path, { force: true });
    writeFileSync(path, "another's");
  });
  await close();
  expect((await stat(path)).size).toBe(9);
});

test("the socket of a process that is too busy to accept is not taken for one that a crash left", async () => {
  const path = join(await makeFolder(), "console.sock");
  const busy = `require("net").createServer().listen({ path: ${JSON.stringify(path)}, backlog: 1 }, () => {
    require("fs").writeSync(1, "ready");
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  });`;
  const child = spawn(process.execPath, ["-e", busy], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  // Until the queue is full.
  for (let error: unknown; error === undefined; ) {
    const socket = connect(path);
    onTestFinished(() => void socket.destroy());
    error = await once(socket, "connect").then(
      () => undefined,
      (failed: unknown) => failed,
    );
  }
  const failed = Promise.withResolvers<string>();
  const close = startListening(createServer(), {
    mode: 0o660,
    find: async () => ({ path }),
    opened: () => failed.resolve("opened"),
    failed: (_error, reason) => failed.resolve(reason),
  });
  expect(await failed.promise).toBe("EEXIST");
  await close();
});
