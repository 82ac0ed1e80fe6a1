// @module-tag system
/**
 * I2 once, I3 no burnt transfers, I8 bounded: three daemons on one inbox and one Redis are killed and suspended, and Redis
 * is restarted, flushed and cut off.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { observeInbox } from "../support/inbox-observer.ts";
import { readRecords } from "../support/ledger.ts";
import { makeFolder, startChild } from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import { Random } from "../world/ground/random.ts";

const TRANSFERS = 300;
const LOCK_MS = 2_000;
const BUDGET = 2;
/** Decides what happens when: `INLET_SEED=7 npx vitest run test/flows/fleet.test.ts` for another sequence. */
const SEED = Number(process.env["INLET_SEED"] ?? 1);
const SENDER = "anna@supplier.example";
/** Keys of an idle queue: counters, schedules and the last events. */
const MAX_KEYS = 20;
const MAX_GROWTH_BYTES = 4 * 1024 ** 2;

test("every transfer is delivered once, whatever happens to daemons and Redis", async () => {
  const names = Array.from({ length: TRANSFERS }, (_, at) => `t${String(at).padStart(3, "0")}`);
  const closed = ["closed1", "closed2", "closed3"];
  const simulator = await openTestSimulator({
    transfers: [
      ...names.map((trackingId) => transferPlan({ trackingId })),
      ...closed.map((trackingId) => transferPlan({ trackingId, password: "Unknown-Secret:7" })),
    ],
  });
  simulator.addFault({ on: "file", times: "always", does: { kind: "drip", bytes: 4, pauseMs: 10 } });
  const redis = await startRedis();
  const proxy = await openTcpProxy(redis.port);
  const folder = await makeFolder();
  const inbox = join(folder, "inbox");
  const observer = observeInbox(inbox, 20);
  const { url, clientId } = simulator;
  const direct = { url, clientId, folder, redis: redis.url, lockMs: LOCK_MS };
  const start = (behindProxy = false) => {
    const task = behindProxy ? { ...direct, redis: `redis://127.0.0.1:${proxy.port}` } : direct;
    const daemon = startChild(task);
    // A process whose log is not read could not end.
    daemon.stdout?.resume();
    daemon.stderr?.resume();
    return daemon;
  };
  // The last one reaches Redis through a proxy that can be cut.
  const fleet = [start(), start(), start(true)];
  const delivered = () => readNames(join(inbox, MAILBOX, SENDER));
  const reaches = (count: number) =>
    expect.poll(() => delivered().length, { timeout: 240_000 }).toBeGreaterThanOrEqual(count);
  const random = new Random(SEED);
  const anyOf = () => random.int(fleet.length);
  const disturbances = {
    async kill() {
      const victim = anyOf();
      await kill(fleet[victim], "SIGKILL");
      fleet[victim] = start(victim === fleet.length - 1);
    },
    async stop() {
      const victim = fleet[anyOf()];
      victim?.kill("SIGSTOP");
      await pause((1.5 + random.next()) * LOCK_MS);
      victim?.kill("SIGCONT");
    },
    async restartRedis() {
      await redis.kill();
      await pause(random.next() * 1_000);
      await redis.start();
    },
    async cutTheLine() {
      proxy.cut();
      await pause((1.5 + random.next()) * LOCK_MS);
      proxy.mend();
    },
    async flush() {
      await redis.client.flushall();
    },
  };
  const order = shuffle(Object.keys(disturbances) as (keyof typeof disturbances)[], random);
  process.stdout.write(`fleet, seed ${SEED}: ${order.join(", ")}\n`);
  await reaches(20);
  const before = await usedMemory(redis);
  for (const [at, name] of order.entries()) {
    await disturbances[name]();
    await reaches(20 + Math.ceil(((at + random.next()) * (TRANSFERS - 40)) / order.length));
  }
  const missing = () => {
    const there = new Set(delivered());
    const isMissing = ({ trackingId }: { trackingId: string }) =>
      names.includes(trackingId) && !there.has(trackingId);
    return readRecords(join(inbox, ".inlet"))
      .filter(isMissing)
      .map(({ trackingId, state, reason, message }) => [trackingId, state, reason, message].join(" "));
  };
  await expect.poll(() => delivered().length >= TRANSFERS || missing(), { timeout: 240_000 }).toBe(true);
  await expect.poll(() => closed.filter((id) => simulator.refusedPasswords(id).length === 0)).toEqual([]);
  await expect.poll(async () => (await redis.client.keys("inlet:download-*:t*")).length).toBe(0);
  // Transfers without a known password may still be running.
  await expect.poll(async () => (await redis.client.keys("*")).length).toBeLessThanOrEqual(MAX_KEYS);
  const after = await usedMemory(redis);
  for (const daemon of fleet) await kill(daemon, "SIGTERM");
  observer.close();

  expect(observer.problems).toEqual([]);
  expect(delivered()).toEqual(names);
  expect(countDeliveries(join(inbox, ".inlet/journal"))).toEqual(
    Object.fromEntries(names.map((name) => [name, 1])),
  );
  for (const id of closed) expect(simulator.refusedPasswords(id).length).toBeLessThanOrEqual(BUDGET);
  for (const name of names) expect(simulator.refusedPasswords(name)).toEqual([]);
  expect(after - before).toBeLessThan(MAX_GROWTH_BYTES);
});

function shuffle<Item>(items: readonly Item[], random: Random): Item[] {
  return items
    .map((item) => [random.next(), item] as const)
    .toSorted(([a], [b]) => a - b)
    .map(([, item]) => item);
}

async function kill(daemon: ChildProcess | undefined, signal: NodeJS.Signals): Promise<void> {
  if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
  daemon.kill(signal);
  await once(daemon, "exit");
}

/** The number of deliveries of each transfer in the journals; lines with the same folder count once. */
function countDeliveries(folder: string): Record<string, number> {
  const lines = readNames(folder).flatMap((name) =>
    readFileSync(join(folder, name), "utf8").trim().split("\n"),
  );
  const delivered = lines.map((line) => JSON.parse(line)).filter(({ state }) => state === "delivered");
  const folders = new Map<string, Set<string>>();
  for (const { trackingId, folder: target } of delivered) {
    folders.set(trackingId, (folders.get(trackingId) ?? new Set()).add(target));
  }
  return Object.fromEntries([...folders].toSorted().map(([id, targets]) => [id, targets.size]));
}

async function usedMemory({ client }: Awaited<ReturnType<typeof startRedis>>): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]);
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}

/** A TCP proxy that can drop all data without closing the connections, like a cut line. */
async function openTcpProxy(targetPort: number) {
  const pairs = new Set<readonly [Socket, Socket]>();
  let isCut = false;
  const server = createServer((near) => {
    const far = connect(targetPort, "127.0.0.1");
    const pair = [near, far] as const;
    pairs.add(pair);
    for (const [from, to] of [pair, [far, near] as const]) {
      from.on("data", (chunk) => {
        if (!isCut) to.write(chunk);
      });
      from
        .on("error", () => {})
        .on("close", () => {
          to.destroy();
          pairs.delete(pair);
        });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const [near, far] of pairs) [near, far].map((socket) => socket.destroy());
    server.close();
  });
  return {
    port: (server.address() as AddressInfo).port,
    cut() {
      isCut = true;
    },
    /** Dropped data stays lost, so both ends get a closed connection. */
    mend() {
      isCut = false;
      for (const [near, far] of pairs) [near, far].map((socket) => socket.destroy());
    },
  };
}
