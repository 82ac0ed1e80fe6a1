/** All kinds of Redis connections in a configuration, with real servers and the real program. */
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { install } from "../support/installation.ts";
import { runProgram } from "../support/program.ts";
import { startCluster, startRedis, startSentinel } from "../support/redis.ts";
import { freePort } from "../support/redis-server.ts";
import { CA, FOLDER as TLS } from "../support/tls.ts";

const SECRET = "p@ss/w%rd#1";

describe("TLS, user and password, database and prefix", { tags: ["system"] }, () => {
  test("are used: the user's permissions are enough", async () => {
    const { port, client } = await startSecureRedis();
    const { exitCode, stderr, config } = await runWith({
      queue: `rediss://orders@localhost:${port}/3`,
      redis: { password: SECRET, ca: join(TLS, "ca.crt"), prefix: "orders" },
    });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("1 delivered")]);
    expect(await client.keys("*")).toEqual([]);
    await client.select(3);
    const keys = await client.keys("*");
    expect(keys.length).toBeGreaterThan(0);
    expect(keys.filter((key) => !key.startsWith("orders:"))).toEqual([]);
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
  });

  test.each([
    ["a certificate of an unknown authority", {}, SECRET, "SELF_SIGNED_CERT_IN_CHAIN"],
    ["a wrong password", { ca: join(TLS, "ca.crt") }, "Wr0ng", "WRONGPASS"],
  ])("%s is an error that names the cause, and no secret", async (_name, redis, password, cause) => {
    const { port } = await startSecureRedis();
    const { exitCode, stderr } = await runWith({
      queue: `rediss://orders@localhost:${port}/3`,
      redis: { ...redis, password, prefix: "orders" },
    });
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining(`localhost:${port} (${cause})`)]);
    for (const secret of [SECRET, "Wr0ng"]) expect(stderr).not.toContain(secret);
  });

  test("an unencrypted connection to a server with TLS is an error too, without a wait", async () => {
    const { port } = await startSecureRedis();
    const { exitCode, stderr } = await runWith({ queue: `redis://127.0.0.1:${port}` });
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining(`127.0.0.1:${port}`)]);
  });
});

describe("Sentinel", { tags: ["system"] }, () => {
  test("resolves the master by its name", async () => {
    const { port, master } = await startSentinel("orders", SECRET);
    const { exitCode, stderr } = await runWith({
      queue: "redis://",
      redis: {
        sentinels: [`127.0.0.1:${port}`],
        sentinelName: "orders",
        sentinelPassword: SECRET,
      },
    });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("1 delivered")]);
    expect((await master.client.keys("inlet:*")).length).toBeGreaterThan(0);
  });
});

describe("Cluster", () => {
  test("all keys are on one node, transfers are delivered, and a node that may evict jobs is reported", {
    tags: ["system"],
  }, async () => {
    const nodes = await startCluster();
    const { exitCode, stderr, config } = await runWith({
      queue: "redis://",
      redis: { cluster: nodes.slice(0, 2).map(({ port }) => `127.0.0.1:${port}`) },
    });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("1 delivered")]);
    await nodes[2]?.client.config("SET", "maxmemory-policy", "allkeys-lru");
    const again = await runProgram(["once", "--config", config]);
    expect([again.exitCode, again.stderr]).toEqual([0, expect.stringContaining("allkeys-lru")]);
    const keys = await Promise.all(nodes.map(({ client }) => client.dbsize()));
    expect(keys.filter((count) => count > 0)).toHaveLength(1);
  });

  test("whose nodes are down is an error that names them", async () => {
    const [port, other] = [await freePort(), await freePort()];
    const cluster = [`127.0.0.1:${port}`, `127.0.0.1:${other}`];
    const { exitCode, stderr } = await runWith({ queue: "redis://", redis: { cluster } });
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining(cluster.join(", "))]);
  });
});

/** TLS only, with one user who may use one prefix. */
async function startSecureRedis() {
  const port = await freePort();
  await startRedis([
    ...["--port", "0", "--tls-port", String(port), "--tls-auth-clients", "no"],
    ...["--tls-cert-file", join(TLS, "server.crt"), "--tls-key-file", join(TLS, "server.key")],
    ...["--tls-ca-cert-file", join(TLS, "ca.crt")],
    ...["--user", "orders", "on", `>${SECRET}`, "~orders:*", "&*", "+@all"],
  ]);
  const client = new Redis({ port, host: "localhost", tls: { ca: CA }, maxRetriesPerRequest: null });
  onTestFinished(() => client.disconnect());
  return { port, client };
}

/** Runs the program once, for one transfer. */
async function runWith(queue: Readonly<Record<string, unknown>>) {
  const { config } = await install(undefined, queue);
  return { ...(await runProgram(["once", "--config", config])), config };
}
