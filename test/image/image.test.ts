// @module-tag system
/** The image of the Dockerfile, built and run like an orchestrator does: read-only, without root, without capabilities. */
import { chown, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { packagesInLicenses, packagesInSbom } from "../support/package.ts";
import { makeFolder, runCommand } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { listen } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, PASSWORD } from "../support/settings.ts";
import { buildImage, openPodman, type Podman } from "./podman.ts";

const USER = 1000;
/** As the release workflow sets them. */
const [VERSION, REVISION, SOURCE] = ["1.2.3", "0123456789abcdef", "https://inlet.example/inlet.git"];
const LABELS = {
  "org.opencontainers.image.version": VERSION,
  "org.opencontainers.image.revision": REVISION,
  "org.opencontainers.image.source": SOURCE,
};
const SENDER = "anna@supplier.example";
const HARDENED = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"];
/** Podman mounts a tmpfs at /run by itself. */
const AS_DOCKER = ["--read-only-tmpfs=false", "--tmpfs=/run/inlet"];

const folder = await mkdtemp(join(tmpdir(), "inlet-image-"));
let podman: Podman | undefined;

afterAll(() => rm(folder, { recursive: true, force: true }));

test("delivers, answers health checks, stops on SIGTERM, and delivers nothing twice after a restart", async () => {
  podman = await openPodman(folder);
  const args = { VERSION, REVISION, SOURCE };
  const image = await buildImage(podman, folder, args);
  const { volumes, inbox, simulator } = await setUp();

  await start(podman, "inlet-first", ...volumes, image);
  await expect.poll(() => deliveries(inbox)).toEqual(["t1"]);
  await expect.poll(() => podman?.run("healthcheck", "run", "inlet-first").then((it) => it.exitCode)).toBe(0);
  const status = await podman.run("exec", "inlet-first", "inlet", "status");
  expect(status).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Recently delivered") });
  await podman.run("stop", "--time", "30", "inlet-first");
  expect(await podman.ended("inlet-first")).toBe(0);

  await start(podman, "inlet-second", ...volumes, image);
  simulator.addTransfer(transferPlan({ trackingId: "t2" }));
  await expect.poll(() => deliveries(inbox)).toEqual(["t1", "t2"]);
  await podman.run("kill", "--signal", "KILL", "inlet-second");
  expect(await podman.ended("inlet-second")).toBe(137);
  await start(podman, "inlet-third", ...volumes, image);
  simulator.addTransfer(transferPlan({ trackingId: "t3" }));
  await expect.poll(() => deliveries(inbox)).toEqual(["t1", "t2", "t3"]);
  await podman.run("stop", "--time", "30", "inlet-third");
  expect(await podman.ended("inlet-third")).toBe(0);
  // The container has ended, so everything is written. After the kill, the end of t2 may be written twice.
  expect([...new Set(await journal(inbox))]).toEqual(["t1", "t2", "t3"]);
});

test.each([
  ["open", {}],
  ["token", {}],
  ["token-for-all", {}],
  ["open", { listen: false }],
])(
  "its health check asks the daemon on its socket, and nothing at the port that another program has: http.read %s, %o",
  async (read, more) => {
    if (podman === undefined) throw new Error("there is no image");
    // No answer of the taker is good.
    const asked: IncomingHttpHeaders[] = [];
    const url = await listen(
      createServer(({ headers }, response) => {
        asked.push(headers);
        response.writeHead(503).end('{"ready":false,"reasons":["taken"]}');
      }),
    );
    const token = "Visitors-Token:1-of-16";
    const { volumes } = await setUp({ listen: new URL(url).host, read, token, ...more });
    await start(podman, "inlet-health", ...AS_DOCKER, ...volumes, "inlet");
    const health = () => podman?.run("healthcheck", "run", "inlet-health").then((it) => it.exitCode);
    await expect.poll(health).toBe(0);
    // Before the socket was there, it asked the port, without a token.
    expect(asked.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
    asked.length = 0;
    const { stderr } = await podman.run("exec", "inlet-health", "inlet", "status", "--health");
    expect(stderr).toContain('{"ready":true');
    const status = await podman.run("exec", "inlet-health", "inlet", "status");
    expect(status).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("All is well") });
    expect(asked).toEqual([]);
    await podman.run("kill", "--signal", "STOP", "inlet-health");
    expect(await health()).not.toBe(0);
    await podman.run("kill", "--signal", "KILL", "inlet-health");
  },
);

test("is small, without root, and without build tools", async () => {
  if (podman === undefined) throw new Error("there is no image");
  const { stdout } = await podman.run("image", "inspect", "inlet");
  const [{ Config: config, Healthcheck: check }] = JSON.parse(stdout);
  expect(check.Test.slice(-2)).toEqual(["status", "--health"]);
  expect(config).toMatchObject({
    User: "1000:1000",
    StopSignal: "SIGTERM",
    Entrypoint: ["/usr/local/bin/node", "/opt/inlet/bin/inlet.cjs"],
    Cmd: ["run"],
    Volumes: { "/etc/inlet": {}, "/srv/inbox": {}, "/var/lib/inlet": {} },
    Labels: {
      "org.opencontainers.image.title": "Inlet",
      "org.opencontainers.image.base.name": "localhost/inlet-test-base",
      ...LABELS,
    },
  });
  const list = ["--network", "none", "--entrypoint", "/usr/local/bin/node", "inlet", "-e"];
  const script = `
    const { readdirSync, statSync } = require("node:fs");
    const all = readdirSync("/opt/inlet", { recursive: true });
    const bytes = all.reduce((sum, name) => sum + statSync("/opt/inlet/" + name).size, 0);
    console.log(JSON.stringify({ names: readdirSync("/opt/inlet"), bytes }));`;
  const { names, bytes } = JSON.parse((await podman.runContainer(...list, script)).stdout);
  expect(names.toSorted()).toEqual(["LICENSE", "bin", "config", "dist", "package.json"]);
  expect(bytes).toBeLessThan(10_000_000);
});

test("contains Node, the authorities of certificates and its schema, but no package manager, in no layer", async () => {
  if (podman === undefined) throw new Error("there is no image");
  const shell = ["--network", "none", "--entrypoint", "/bin/sh", "inlet", "-c"];
  const managers = "command -v npm npx corepack yarn; ls -d /usr/local/lib/node_modules /opt/yarn*";
  expect(await podman.runContainer(...shell, managers)).toMatchObject({ stdout: "" });
  const others = "node --version; head -1 /etc/ssl/certs/ca-certificates.crt; inlet config schema | head -1";
  const { stdout } = await podman.runContainer(...shell, others);
  expect(stdout).toBe(`${process.version}\n-----BEGIN CERTIFICATE-----\n{\n`);
  const saved = join(folder, "saved");
  await podman.run("save", "--format", "docker-dir", "--output", saved, "inlet");
  const layers = (await readdir(saved)).filter((name) => /^[0-9a-f]{64}$/.test(name));
  const lists = layers.map((name) => runCommand("sh", ["-c", `tar -tf ${join(saved, name)} 2>/dev/null`]));
  const paths = (await Promise.all(lists)).map((list) => list.stdout).join("");
  expect(paths).toContain("usr/local/bin/node\n");
  expect(paths).not.toContain("node_modules/npm");
});

test("contains a list of its packages", async () => {
  if (podman === undefined) throw new Error("there is no image");
  const print = ["--network", "none", "--entrypoint", "/bin/cat", "inlet"];
  const sbom = await podman.runContainer(...print, "/opt/inlet/dist/sbom.cdx.json");
  const licenses = await podman.runContainer(...print, "/opt/inlet/dist/THIRD-PARTY-LICENSES");
  expect(packagesInSbom(sbom.stdout)).toEqual(packagesInLicenses(licenses.stdout));
  expect(packagesInSbom(sbom.stdout)).toContain(`undici ${packageJson.devDependencies.undici}`);
});

test("reports a missing configuration", async () => {
  if (podman === undefined) throw new Error("there is no image");
  const { exitCode, stdout } = await podman.runContainer(...HARDENED, "--network", "none", "inlet");
  expect([exitCode, stdout]).toEqual([2, expect.stringContaining("/etc/inlet/inlet.yaml")]);
});

async function start(by: Podman, name: string, ...args: readonly string[]): Promise<void> {
  onTestFinished(async () => {
    await by.run("rm", "--force", "--time", "0", name);
  });
  await by.startContainer(name, "--network", "host", ...HARDENED, ...args);
}

async function setUp(http: object = {}) {
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const home = await makeFolder();
  const [config, inbox, state] = [join(home, "config"), join(home, "inbox"), join(home, "state")];
  for (const path of [config, inbox, state]) {
    await mkdir(path);
    await chown(path, USER, USER);
  }
  const settings = {
    service: { baseUrl: simulator.url, clientId: simulator.clientId },
    inbox: "/srv/inbox",
    limits: { minFreeSpace: "1KiB" },
    // The container shares the network of this machine.
    http: { listen: `127.0.0.1:${await freePort()}`, ...http },
    mailboxes: [{ email: MAILBOX, poll: "500ms", passwords: [{ sender: "*", password: PASSWORD }] }],
  };
  await writeFile(join(config, "inlet.yaml"), JSON.stringify(settings), { mode: 0o600 });
  await chown(join(config, "inlet.yaml"), USER, USER);
  const volumes = [
    ...["--volume", `${config}:/etc/inlet:ro`],
    ...["--volume", `${inbox}:/srv/inbox`],
    ...["--volume", `${state}:/var/lib/inlet`],
  ];
  return { simulator, inbox, volumes };
}

async function deliveries(inbox: string): Promise<string[]> {
  return (await readdir(join(inbox, MAILBOX, SENDER)).catch(() => [])).toSorted();
}

async function journal(inbox: string): Promise<string[]> {
  const place = join(inbox, ".inlet/journal");
  const texts = await Promise.all((await readdir(place)).map((name) => readFile(join(place, name), "utf8")));
  const lines = texts.join("").trim().split("\n");
  const all = lines.map((line) => JSON.parse(line) as { trackingId: string; state: string });
  return all.filter(({ state }) => state === "delivered").map(({ trackingId }) => trackingId);
}
