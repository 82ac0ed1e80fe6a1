/**
 * A real Redis, the machine's or Debian's, without persistence: a restart loses everything. This file needs no test runner:
 * the caller kills the server.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { findProgram } from "./debian.ts";

export const REDIS_PACKAGES = ["redis-server", "redis-tools", "libjemalloc2", "liblzf1", "libatomic1"];
const READY = /Ready to accept connections|Sentinel ID is/;

export interface RedisServer {
  readonly pid: number;
  /** With SIGKILL, like a power cut. */
  kill(): Promise<void>;
}

/** `options`: of its command line. `folder`: for its files. */
export async function launchRedis(folder: string, options: readonly string[]): Promise<RedisServer> {
  const { path, env } = await findProgram("valkey-server", REDIS_PACKAGES).catch(() =>
    findProgram("redis-server", REDIS_PACKAGES),
  );
  const server = spawn(path, options, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  for (const stream of [server.stdout, server.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      output = `${output}${chunk}`.slice(-10_000);
      if (READY.test(output)) resolve();
    });
  }
  server.once("error", reject).once("exit", () => reject(new Error(`Redis ended: ${output}`)));
  await promise;
  return {
    pid: server.pid ?? 0,
    async kill() {
      if (server.exitCode !== null || server.signalCode !== null) return;
      const gone = once(server, "exit");
      server.kill("SIGKILL");
      await gone;
    },
  };
}

/** Options of a single server on a port of this machine. */
export function singleServer(port: number): string[] {
  return ["--port", String(port), "--bind", "127.0.0.1", "--save", ""];
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
