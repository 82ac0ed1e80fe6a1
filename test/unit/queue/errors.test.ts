import { EventEmitter } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import type { RedisClient } from "../../../src/queue/bullmq-connection.ts";
import { faultOfRedis } from "../../../src/queue/bullmq-errors.ts";
import { RedisWatch } from "../../../src/queue/bullmq-watch.ts";

const REPLIES = [
  ["OOM command not allowed when used memory > 'maxmemory'. script: 1, on @user_script:57.", "it is full"],
  ["MISCONF Redis is configured to save RDB snapshots, but it cannot persist", "it cannot save its data"],
  ["READONLY You can't write against a read only replica.", "it is read-only"],
  ["LOADING Redis is loading the dataset in memory", 'it answers "LOADING"'],
  ["CLUSTERDOWN The cluster is down", 'it answers "CLUSTERDOWN"'],
  ["BUSY Redis is busy running a script.", 'it answers "BUSY"'],
  ["NOPERM this user has no permissions to run the 'xadd' command", "may not use the command XADD"],
  ["NOPERM User inlet has no permissions to run the 'config|get' command", "the command CONFIG|GET"],
  ["NOPERM No permissions to access a key", "may not use all keys"],
  ["ERR The user executing the script can't run this command or subcommand script: 1", "may not do all"],
  ["WRONGTYPE Operation against a key holding the wrong kind of value", "a key holds a value"],
  ["ERR user_script:85: attempt to compare nil with number script: 1", "a key holds a value"],
  ["ERR unknown command 'AUTH', with args beginning with: 's3cret'", 'it answers "ERR"'],
];

test.each(REPLIES)("%s", (message, words) => {
  const error = Object.assign(new Error(message), { name: "ReplyError" });
  const fault = faultOfRedis(error, "redis:6379");
  expect(fault).toMatchObject({ code: "QUEUE_REFUSED", message: expect.stringContaining(words) });
  expect(fault?.message).toContain("redis:6379: ");
  expect(fault?.message).not.toContain("s3cret");
});

test("an error that BullMQ wraps, or that fails a transaction, has the cause of the command", () => {
  const oom = Object.assign(new Error("OOM command not allowed"), { name: "ReplyError" });
  const wrapped = new Error(`Failed to add repeatable job for next iteration: ${oom.message}`);
  const aborted = Object.assign(new Error("EXECABORT Transaction discarded"), { previousErrors: [oom] });
  for (const error of [wrapped, aborted]) expect(faultOfRedis(error, "")?.message).toContain("it is full");
});

test("a connection that fails is unreachable, with the code of the system", () => {
  const error = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  expect(faultOfRedis(error, "redis:6379")).toMatchObject({
    code: "QUEUE_UNREACHABLE",
    message: expect.stringContaining("redis:6379 (ECONNREFUSED)"),
  });
});

test.each([
  Object.assign(new Error("Missing lock for job 1. moveToFinished"), { code: -2 }),
  new Error("Connection is closed."),
  new Fault("STOPPED"),
  "text",
])("not an error of Redis: %s", (error) => {
  expect(faultOfRedis(error, "")).toBeUndefined();
});

test("work whose connection is closed meanwhile could not reach Redis", async () => {
  const redis = { prefix: "p", sentinels: [], cluster: [], url: new URL("redis://redis") };
  const options = { redis, waitForRedis: false, signal: new AbortController().signal };
  const watch = new RedisWatch(new EventEmitter() as unknown as RedisClient, options as never);
  onTestFinished(() => watch.close());
  const closed = () => Promise.reject(new Error("Connection is closed."));
  await expect(watch.reach(closed)).rejects.toMatchObject({ code: "QUEUE_UNREACHABLE" });
});
