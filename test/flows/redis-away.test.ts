// @module-tag system
/** The program while its Redis is away: signals work, and nothing waits for ever. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { listOrders } from "../../src/ledger/orders.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { end, logOf, runProgram, startProgram } from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

test("a reload takes effect, and a stop ends it", async () => {
  const { daemon, redis, rewrite, queue, logged } = await setUp();
  await expect.poll(logged).toContain('"msg":"waiting"');
  await redis.kill();
  await expect.poll(logged).toContain("the queue does not work");
  await rewrite({ queue, mailboxes: [mailboxKeys(MAILBOX), mailboxKeys("other@example.com")] });
  await expect.poll(logged).toContain("the configuration was reloaded");
  await end(daemon);
});

test("a stop ends it although an order waits for the queue, and the next start carries the order out", async () => {
  const { daemon, redis, folder, config, logged } = await setUp();
  await expect.poll(logged).toContain('"msg":"waiting"');
  await redis.kill();
  await expect.poll(logged).toContain("the queue does not work");
  const { exitCode, stderr } = await runProgram(["retry", "t1", "--timeout", "5s", "--config", config]);
  expect([exitCode, stderr]).toEqual([4, expect.stringContaining("t1 has not been tried yet")]);
  await end(daemon);
  const orders = () => listOrders(join(folder, "inbox/.inlet"));
  expect(await orders()).toHaveLength(1);
  await redis.start();
  startProgram(["run", "--config", config]).stdout?.resume();
  // Its end is noticed by the next look at the orders.
  await expect.poll(orders, { timeout: 90_000 }).toEqual([]);
});

test("SIGHUP does not end a daemon that waits for Redis at its start, and takes effect later", async () => {
  const { daemon, redis, logged } = await setUp(false);
  await expect.poll(logged).toContain("the queue does not work");
  daemon.kill("SIGHUP");
  await redis.start();
  await expect.poll(logged).toContain("the configuration was reloaded");
  await expect.poll(logged).toContain('"msg":"waiting"');
  expect(logged()).not.toContain('"msg":"stopping"');
  await end(daemon);
});

/** With one transfer that waits for a password. */
async function setUp(isThere = true) {
  const redis = await startRedis();
  if (!isThere) await redis.kill();
  const { url: queue } = redis;
  const transfers = [transferPlan({ trackingId: "t1", password: "unknown-Pass:9" })];
  const installed = await install({ transfers }, { queue });
  const daemon = startProgram(["run", "--config", installed.config]);
  return { ...installed, redis, queue, daemon, logged: logOf(daemon) };
}
