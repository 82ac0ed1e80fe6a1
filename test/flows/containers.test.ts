/**
 * The configurations that ship for Compose and Kubernetes, run by real daemons on a simulated service: they deliver,
 * answer the probes, and the console opens where the files say.
 */
import { once } from "node:events";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { findProgram } from "../support/debian.ts";
import {
  FLEET,
  inletOf,
  ONE_POD,
  placeSecrets,
  podOf,
  readCompose,
  readManifests,
} from "../support/manifests.ts";
import { logOf, makeFolder, runProgram, startCommand, startProgram } from "../support/program.ts";
import { freePort, REDIS_PACKAGES } from "../support/redis-server.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const REDIS_PASSWORD = "a-password-of-redis";
const METRICS = { status: 200, body: expect.stringMatching(/^inlet_build_info/m) };
const PAGE = { status: 200, body: expect.stringMatching(/<title>/) };

describe.each([ONE_POD, FLEET])("%s", (file) => {
  const manifests = readManifests(file);
  const { startupProbe, livenessProbe, readinessProbe } = inletOf(manifests);
  const [deployment, redis] = manifests.of("Deployment");
  const [service] = manifests.of("Service");
  const shell = redis === undefined ? undefined : podOf(redis).containers[0]?.command;

  test("delivers once, and answers probes and Prometheus", {
    tags: shell === undefined ? [] : ["system"],
  }, async () => {
    const replicas = Math.min(deployment?.spec?.replicas ?? 0, 2);
    const { ports, deliveries, health } = await run(manifests.configuration, replicas, shell);
    for (const port of ports) {
      for (const probe of [startupProbe, livenessProbe, readinessProbe]) {
        const path = probe?.httpGet?.path ?? "";
        await expect.poll(async () => (await get(port, path, "10.0.0.7")).status).toBe(200);
      }
      const { "prometheus.io/path": path = "" } = service?.metadata?.annotations ?? {};
      const names = ["10.0.0.7", service?.metadata?.name ?? "", "localhost"];
      for (const name of names) {
        expect(await get(port, path, name)).toEqual(METRICS);
        expect(await get(port, "/", name)).toEqual(PAGE);
      }
      expect((await get(port, "/", "attacker.example")).status).toBe(421);
    }
    await expect.poll(deliveries).toEqual(["t1"]);
    expect(await health(["status", "--health", "alive"])).toEqual(ports.map(() => 0));
  });
});

describe.each(["config/compose.sidecar.yaml", "config/compose.fleet.yaml"])("%s", (file) => {
  const { compose, configuration } = readCompose(file);
  const { inlet, redis } = compose.services;

  test("delivers once, and the console opens at the published address and for Prometheus", {
    tags: redis === undefined ? [] : ["system"],
  }, async () => {
    const replicas = Math.min(inlet?.deploy?.replicas ?? 1, 2);
    const shell = redis?.command?.map((word) => word.replaceAll("$$", "$"));
    const { ports, deliveries, health } = await run(configuration, replicas, shell);
    // The image's own check, unless the file has another one.
    const check = inlet?.healthcheck?.test.slice(2) ?? ["status", "--health"];
    await expect.poll(() => health(check)).toEqual(ports.map(() => 0));
    for (const port of ports) {
      expect(await get(port, "/", "127.0.0.1")).toEqual(PAGE);
      expect(await get(port, "/metrics", "inlet")).toEqual(METRICS);
    }
    await expect.poll(deliveries).toEqual(["t1"]);
  });
});

/** Starts as many daemons, and Redis with the given command, if there is one. */
async function run(configuration: string, replicas: number, redis: readonly string[] | undefined) {
  const folder = await makeFolder();
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const secrets = { "client-id": simulator.clientId, redis: REDIS_PASSWORD };
  const placed = await placeSecrets(configuration, folder, secrets);
  const redisPort = await freePort();
  if (redis !== undefined) await startRedis(redis, folder, redisPort);
  const own = placed
    .replace("https://transfer.example.com", simulator.url)
    .replace(/redis:\/\/[\w-]+:6379/, `redis://127.0.0.1:${redisPort}`)
    .replace("/srv/inbox", join(folder, "inbox"));
  await mkdir(join(folder, "inbox"));
  const common = { STATE_DIRECTORY: join(folder, "state"), INLET_LIMITS__MINFREESPACE: "1KiB" };
  const daemons: { port: number; config: string; env: typeof common }[] = [];
  for (let at = 0; at < replicas; at++) {
    const [port, config] = [await freePort(), join(folder, `inlet-${at}.yaml`)];
    await writeFile(config, own.replace(":8460", `:${port}`), { mode: 0o600 });
    // Each container has its own.
    const env = { ...common, RUNTIME_DIRECTORY: join(folder, `run-${at}`) };
    const daemon = startProgram(["run", "--config", config], { env });
    daemon.stdout?.resume();
    daemon.stderr?.resume();
    daemons.push({ port, config, env });
  }
  const inbox = /^inbox: (.*)$/m.exec(own)?.[1] ?? "";
  return {
    ports: daemons.map(({ port }) => port),
    deliveries: () => readdir(join(inbox, MAILBOX, "anna@supplier.example")).catch(() => []),
    /** The exit code of a command, for each daemon. */
    health: (command: readonly string[]) =>
      Promise.all(
        daemons.map(async ({ config, env }) => {
          return (await runProgram([...command, "--config", config], { env })).exitCode;
        }),
      ),
  };
}

/** As the file starts it, with the secret, the port and the program of this machine. */
async function startRedis(command: readonly string[], folder: string, port: number): Promise<void> {
  const { path, env } = await findProgram("redis-server", REDIS_PACKAGES);
  const [shell = "", ...args] = command.map((word) =>
    word
      .replace(/\/[\w/-]+\/redis\b/, join(folder, "secrets/redis"))
      .replace("redis-server", `${path} --port ${port} --bind 127.0.0.1 --dir ${folder}`),
  );
  const logged = logOf(startCommand(shell, args, { env }));
  await expect.poll(logged).toContain("Ready to accept connections");
}

/** `name`: the host that the client connects to. */
async function get(port: number, path: string, name: string): Promise<{ status: number; body: string }> {
  const asked = request({ host: "127.0.0.1", port, path, headers: { host: `${name}:8460` } }).end();
  try {
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    return { status: response.statusCode ?? 0, body: await text(response) };
  } catch {
    return { status: 0, body: "" };
  }
}
