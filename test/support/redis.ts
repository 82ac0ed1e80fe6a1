/**
 * A real Redis, on a port of its own, that ends with the test: what the machine has, or Debian's package. Without
 * persistence: a restart forgets everything.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { Redis } from "ioredis";
import { onTestFinished } from "vitest";
import { type DebianProgram, findProgram } from "./debian.ts";
import { makeFolder } from "./program.ts";

const PACKAGES = ["redis-server", "redis-tools", "libjemalloc2", "liblzf1", "libatomic1"];

export interface TestRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** For looking at it, and for FLUSHALL. */
  readonly client: Redis;
  /** SIGKILL, as a power cut would. */
  kill(): Promise<void>;
  /** Again on the same port, empty. */
  start(): Promise<void>;
}

export async function startRedis(options: readonly string[] = []): Promise<TestRedis> {
  const program = await findProgram("valkey-server", PACKAGES).catch(() =>
    findProgram("redis-server", PACKAGES),
  );
  const [folder, port] = await Promise.all([makeFolder(), freePort()]);
  let server = await launch(program, port, folder, options);
  const client = new Redis({ port, maxRetriesPerRequest: null, retryStrategy: () => 100 });
  client.on("error", () => {});
  const kill = async () => {
    if (server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, "exit");
    server.kill("SIGKILL");
    await gone;
  };
  onTestFinished(async () => {
    client.disconnect();
    await kill();
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    get pid() {
      return server.pid ?? 0;
    },
    client,
    kill,
    async start() {
      server = await launch(program, port, folder, options);
    },
  };
}

async function launch(
  { path, env }: DebianProgram,
  port: number,
  folder: string,
  options: readonly string[],
): Promise<ChildProcess> {
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "", ...options];
  const server = spawn(path, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.stdout.on("data", (chunk: Buffer) => {
    said += chunk.toString();
    if (said.includes("Ready to accept connections")) resolve();
  });
  server.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  server.once("error", reject).once("exit", () => reject(new Error(`Redis ended: ${said}`)));
  await promise;
  return server;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
