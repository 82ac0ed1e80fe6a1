/** Real Redis servers on free ports, which end with the test. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Redis } from "ioredis";
import { expect, onTestFinished } from "vitest";
import { makeFolder } from "./program.ts";
import { freePort, launchRedis, type RedisServer, singleServer } from "./redis-server.ts";

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  readonly client: Redis;
  /** With SIGKILL, like a power cut. */
  kill(): Promise<void>;
  /** Stops it without closing its connections, as SIGSTOP does, or lets it go on. */
  signal(name: "SIGSTOP" | "SIGCONT"): void;
  /** Starts it again on the same port, empty. */
  start(): Promise<void>;
}

export async function startRedis(options: readonly string[] = []): Promise<TestRedis> {
  const [folder, port] = await Promise.all([makeFolder(), freePort()]);
  const all = [...singleServer(port), ...options];
  let server = await launch(folder, all);
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    client: connectTo(port),
    kill: () => server.kill(),
    signal: (name) => void process.kill(server.pid, name),
    async start() {
      server = await launch(folder, all);
    },
  };
}

export interface TestSentinel {
  /** Of the sentinel. */
  readonly port: number;
  readonly master: TestRedis;
}

/** A master, a replica, and a sentinel with a password, which promotes the replica when the master is gone. */
export async function startSentinel(name: string, password: string): Promise<TestSentinel> {
  const master = await startRedis();
  const replica = await startRedis(["--replicaof", "127.0.0.1", String(master.port)]);
  await expect.poll(() => replica.client.info("replication")).toContain("master_link_status:up");
  const [folder, port] = await Promise.all([makeFolder(), freePort()]);
  const config = join(folder, "sentinel.conf");
  const lines = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${folder}`,
    `requirepass ${password}`,
    `sentinel monitor ${name} 127.0.0.1 ${master.port} 1`,
    `sentinel down-after-milliseconds ${name} 500`,
    `sentinel failover-timeout ${name} 3000`,
  ];
  await writeFile(config, `${lines.join("\n")}\n`);
  await launch(folder, [config, "--sentinel"]);
  const client = connectTo(port, password);
  await expect.poll(() => client.call("SENTINEL", "REPLICAS", name)).toHaveLength(1);
  return { port, master };
}

/** A way to keep Redis from working, and the trouble that follows. */
interface RedisCause {
  readonly because: string;
  readonly code: string;
  readonly words: string;
  begin(redis: TestRedis): unknown;
  lift(redis: TestRedis): unknown;
}

export const REDIS_CAUSES: readonly RedisCause[] = [
  {
    because: "Redis is full",
    ...refusing("it is full"),
    begin: ({ client }) => client.config("SET", "maxmemory", "1"),
    lift: ({ client }) => client.config("SET", "maxmemory", "0"),
  },
  {
    because: "Redis is read-only",
    ...refusing("it is read-only"),
    begin: ({ client }) => client.call("REPLICAOF", "127.0.0.1", "1"),
    lift: ({ client }) => client.call("REPLICAOF", "NO", "ONE"),
  },
  ...["zadd", "xadd", "bzpopmin", "evalsha"].map((name) => ({
    because: `Redis does not permit ${name}`,
    ...refusing(`the command ${name.toUpperCase()}`),
    begin: (redis: TestRedis) => permit(redis, `-${name}`),
    lift: (redis: TestRedis) => permit(redis, `+${name}`),
  })),
  {
    because: "Redis does not permit its keys",
    ...refusing("may not use all keys"),
    begin: (redis) => permit(redis, "resetkeys", "~other:*"),
    lift: (redis) => permit(redis, "allkeys"),
  },
  {
    because: "Redis is stopped",
    code: "QUEUE_UNREACHABLE",
    words: "no answer",
    begin: (redis) => redis.signal("SIGSTOP"),
    lift: (redis) => redis.signal("SIGCONT"),
  },
  {
    because: "Redis is killed",
    code: "QUEUE_UNREACHABLE",
    words: "could not be reached",
    begin: (redis) => redis.kill(),
    lift: (redis) => redis.start(),
  },
];

function refusing(words: string) {
  return { code: "QUEUE_REFUSED", words };
}

function permit({ client }: TestRedis, ...rules: readonly string[]): Promise<unknown> {
  return client.call("ACL", "SETUSER", "default", ...rules);
}

const SLOTS = 16_384;

/** Three masters that share the slots, without replicas. */
export async function startCluster(): Promise<readonly TestRedis[]> {
  const nodes = await Promise.all([startNode(), startNode(), startNode()]);
  const share = Math.ceil(SLOTS / nodes.length);
  const [first] = nodes;
  for (const [at, { client }] of nodes.entries()) {
    await client.call("CLUSTER", "ADDSLOTSRANGE", at * share, Math.min((at + 1) * share, SLOTS) - 1);
    if (first !== undefined && at > 0) {
      await client.call("CLUSTER", "MEET", "127.0.0.1", first.port, first.busPort);
    }
  }
  for (const { client } of nodes) {
    await expect.poll(() => client.call("CLUSTER", "INFO")).toContain("cluster_state:ok");
  }
  return nodes;
}

async function startNode() {
  const busPort = await freePort();
  const node = await startRedis(["--cluster-enabled", "yes", "--cluster-port", String(busPort)]);
  return { ...node, busPort };
}

async function launch(folder: string, options: readonly string[]): Promise<RedisServer> {
  const server = await launchRedis(folder, options);
  onTestFinished(() => server.kill());
  return server;
}

function connectTo(port: number, password = ""): Redis {
  const client = new Redis({ port, password, maxRetriesPerRequest: null, retryStrategy: () => 100 });
  client.on("error", () => {});
  onTestFinished(() => client.disconnect());
  return client;
}
