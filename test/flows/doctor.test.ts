/** `inlet doctor`: its findings in good and bad surroundings; it leaves nothing behind. */
import { once } from "node:events";
import { chmod, chown, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { inspectQueue } from "../../src/queue/bullmq-connection.ts";
import { callCommand } from "../support/command.ts";
import { findProgram } from "../support/debian.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import {
  LAUNCHER,
  makeFolder,
  runCommand,
  runOnTerminal,
  runProgram,
  startProgram,
} from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { listen, openWitness } from "../support/servers.ts";
import { openTestSimulator, SIGNAL, transferPlan } from "../support/service.ts";
import { MAILBOX, PASSWORD, redisSettings } from "../support/settings.ts";
import { SERVER, FOLDER as TLS_FOLDER } from "../support/tls.ts";

interface Finding {
  readonly area: string;
  readonly check: string;
  readonly status: string;
  readonly detail: string;
  readonly advice?: string;
}

describe("a healthy installation", () => {
  test("is reported line by line, and nothing is left behind before the first start", async () => {
    const { config, folder, simulator } = await install();
    const { exitCode, stdout, stderr } = await runOnTerminal(["doctor", "--config", config]);
    expect([exitCode, stderr]).toEqual([0, ""]);
    const isTroubled = /warning +kind:/.test(stdout);
    expect(stdout).toContain(isTroubled ? "Inlet can run, with 1 warning." : "All is well");
    for (const area of ["configuration", "folders", "file system", "queue", "service", "daemon"]) {
      expect(stdout).toContain(area);
    }
    expect(stdout).not.toMatch(/failed|skipped/);
    for (const secret of [PASSWORD, simulator.clientId]) expect(stdout).not.toContain(secret);
    expect(await readdir(folder)).toEqual(["inlet.yaml"]);
    expect(simulator.mails()).toEqual([]);
  });

  test("runs beside a daemon, names the process that uses the inbox, and uses the stored token", async () => {
    const { config, inbox, state, simulator } = await install();
    const daemon = startProgram(["run", "--config", config]);
    const done = ["notes", "staging"].map((name) => join(inbox, ".inlet", name));
    await expect
      .poll(() => readdir(join(inbox, MAILBOX, "anna@supplier.example")).catch(() => []))
      .toEqual(["t1"]);
    for (const folder of done) await expect.poll(() => readdir(folder)).toEqual([]);
    const before = await tree(inbox);
    const tokens = simulator.totals()["verification-token"];
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("fine");
    expect(find(findings, "queue", "inbox").detail).toContain(`1 process uses it: process ${daemon.pid} on `);
    expect(await tree(inbox)).toEqual(before);
    expect(simulator.totals()["verification-token"]).toBe(tokens);
    expect(await readdir(join(state, "tokens"))).toHaveLength(1);
    daemon.kill("SIGTERM");
    expect(await once(daemon, "exit")).toEqual([0, null]);
    const after = await examine(config);
    expect(find(after.findings, "queue", "inbox").detail).toBe("no process uses it now");
  });

  test("keeps a token that it obtains for the daemon, as the owner of the state folder", {
    tags: ["system"],
  }, async () => {
    const { config, state, folder } = await install();
    await chmod(folder, 0o755);
    await mkdir(state, { mode: 0o700 });
    await chown(state, 65_534, 65_534);
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("fine");
    expect(find(findings, "folders", "user")).toMatchObject({
      status: "warning",
      advice: expect.stringContaining("sudo -u '#65534' inlet doctor"),
    });
    const [token = ""] = await readdir(join(state, "tokens"));
    for (const name of ["tokens", join("tokens", token)]) {
      expect(await stat(join(state, name))).toMatchObject({ uid: 65_534, gid: 65_534 });
    }
    expect(process.geteuid?.()).toBe(0);
  });

  test("as root, does not follow a link in another user's state folder", { tags: ["system"] }, async () => {
    const { config, state, folder } = await install();
    const target = join(folder, "root-only");
    await chmod(folder, 0o755);
    await mkdir(target, { mode: 0o700 });
    await mkdir(state, { mode: 0o700 });
    await symlink(target, join(state, "tokens"));
    await chown(state, 65_534, 65_534);
    const { findings } = await examine(config);
    expect(find(findings, "service", MAILBOX)).toMatchObject({ status: "failed" });
    expect(await readdir(target)).toEqual([]);
  });
});

test.each([
  [["/no/such/program"], "failed", "/no/such/program is not an executable program"],
  [["no-such-program"], "failed", "no-such-program is not in PATH"],
  [["/etc/passwd"], "failed", "/etc/passwd is not an executable program"],
  [["true"], "ok", "is executable"],
])("checks that the hand-off command is executable: %s", async (command, status, detail) => {
  const { config } = await install(undefined, { handoff: { command } });
  expect(find((await examine(config)).findings, "configuration", "handoff.command")).toMatchObject({
    status,
    detail: expect.stringContaining(detail),
  });
});

test("checks the hand-off of each mailbox too", async () => {
  const secret = { command: ["false"] };
  const handoff = { command: ["/no/such/import"], webhook: { url: "http://127.0.0.1:1/", secret } };
  const mailboxes = [{ ...mailboxKeys(MAILBOX), handoff }];
  const { config } = await install(undefined, { mailboxes });
  const { findings } = await examine(config);
  expect(find(findings, "configuration", "handoff.command")).toMatchObject({
    status: "failed",
    detail: "/no/such/import is not an executable program",
  });
  expect(findings).toContainEqual(
    expect.objectContaining({ status: "failed", detail: expect.stringContaining("command false") }),
  );
});

test("checks that the check is executable, and the program that limits its memory", async () => {
  const check = { command: ["/no/such/scanner"], memory: "1GiB" };
  const { config } = await install(undefined, { check });
  const { findings } = await examine(config);
  expect(find(findings, "configuration", "check.command")).toMatchObject({
    status: "failed",
    detail: "/no/such/scanner is not an executable program",
  });
  expect(find(findings, "configuration", "check.memory")).toMatchObject({ status: "ok" });
});

describe("as root, in folders of other users,", () => {
  const [DAEMON, CONSUMER] = [15_000, 16_000];

  test("it tries the file system as the owner of the nearest existing folder, and removes nothing", {
    tags: ["system"],
  }, async () => {
    const { config, folder, inbox } = await install();
    await chmod(folder, 0o755);
    await mkdir(join(inbox, ".inlet-probe-0123456789ab", "victim"), { recursive: true });
    await runCommand("touch", ["-d", "2 hours ago", join(inbox, ".inlet-probe-0123456789ab")]);
    await runCommand("chown", ["-R", String(CONSUMER), join(inbox, ".inlet-probe-0123456789ab")]);
    await chown(inbox, DAEMON, DAEMON);
    const { findings } = await examine(config);
    expect(find(findings, "file system", "rename").status).toBe("ok");
    expect(await readdir(inbox)).toEqual([".inlet-probe-0123456789ab"]);
    // Success as root proves nothing if the owner may not.
    await chmod(inbox, 0o555);
    expect(find((await examine(config)).findings, "folders", "work")).toMatchObject({ status: "failed" });
  });

  test("it tries nothing where other users could replace its files", async () => {
    const { config, folder, inbox } = await install();
    await chmod(folder, 0o755);
    await mkdir(inbox);
    await chmod(inbox, 0o770);
    const { findings } = await examine(config);
    expect(find(findings, "file system", "trial")).toMatchObject({
      status: "skipped",
      detail: expect.stringContaining(inbox),
    });
    await chmod(inbox, 0o1770);
    expect(find((await examine(config)).findings, "file system", "rename").status).toBe("ok");
  });
});

describe("the configuration", () => {
  test("has one finding per problem, and the other areas are skipped", async () => {
    const { config } = await install();
    await writeFile(
      config,
      (await readFile(config, "utf8")).replace("200ms", "soon").replace('"inbox"', '"inbx"'),
    );
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("usage");
    const failed = findings.filter(({ status }) => status === "failed").map(({ detail }) => detail);
    expect(failed).toHaveLength(3);
    expect(failed.join("\n")).toContain("did you mean inbox?");
    expect(failed.join("\n")).toContain('"soon" is not a duration');
    const skipped = findings.filter(({ status }) => status === "skipped");
    const areas = ["folders", "file system", "queue", "service", "notifications", "daemon"];
    expect(skipped.map(({ area }) => area)).toEqual(areas);
    expect(skipped[0]?.detail).toBe("the configuration could not be loaded");
  });

  test("has a warning if others can read its secrets, and a failure if a secret cannot be read", async () => {
    const { config } = await install(undefined, {
      mailboxes: [{ email: MAILBOX, passwords: [{ password: { command: ["/nowhere/vault"] } }] }],
      http: { listen: "127.0.0.1:0", actions: true, token: { command: ["false"] } },
    });
    await chmod(config, 0o644);
    const { stderr } = await runProgram(["doctor", "--config", config]);
    const { findings, outcome } = await examine(config);
    const other = warningsOfDisk(findings);
    expect(stderr).toBe(`2 checks failed, ${other === 0 ? "1 warning" : "2 warnings"}.\n`);
    expect(outcome).toBe("usage");
    expect(find(findings, "configuration", "secrets")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("command false ended with exit code 1"),
    });
    expect(find(findings, "configuration", "passwords.command")).toMatchObject({
      status: "failed",
      detail: "/nowhere/vault is not an executable program",
    });
    const warnings = findings.filter(({ status }) => status === "warning").map(({ detail }) => detail);
    expect(warnings[0]).toContain(`chmod go= ${config}`);
    expect(warnings).toHaveLength(1 + other);
  });
});

test("a summary with a warning does not say that all is well", async () => {
  const { config } = await install(undefined, {
    mailboxes: [{ ...mailboxKeys(MAILBOX), passwords: [{ sender: "*", password: "plain" }] }],
  });
  await chmod(config, 0o644);
  const { exitCode, stderr } = await runProgram(["doctor", "--config", config]);
  const other = warningsOfDisk((await examine(config)).findings);
  const warnings = other === 0 ? "1 warning" : "2 warnings";
  expect([exitCode, stderr]).toEqual([0, `Inlet can run, with ${warnings}.\n`]);
});

describe("folders", () => {
  test("that are files, or cannot be created, fail", async () => {
    const folder = await makeFolder();
    await writeFile(join(folder, "file"), "");
    const { config } = await install(undefined, { inbox: "/proc/inbox", state: join(folder, "file") });
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("usage");
    expect(find(findings, "folders", "inbox").detail).toContain("cannot be created in /proc");
    expect(find(findings, "folders", "state").detail).toContain("is not a folder");
    expect(find(findings, "file system", "all")).toMatchObject({ status: "skipped" });
    expect(find(findings, "service", MAILBOX)).toMatchObject({ status: "ok" });
  });

  test("of mailboxes are checked each, and fail on another mount, even on one file system", {
    tags: ["system"],
  }, async () => {
    const { config, folder, rewrite } = await install();
    const [sales, hr] = [join(folder, "sales"), join(folder, "hr")];
    const keysOf = (email: string, inbox: string) => ({ ...mailboxKeys(email), inbox });
    await rewrite({ mailboxes: [keysOf(MAILBOX, sales), keysOf("hr@example.com", hr)] });
    for (const name of ["inbox", "sales"]) await mkdir(join(folder, name), { mode: 0o700 });
    const { findings, exitCode } = await examineMounted(config, `mount --bind ${sales} ${sales}`);
    expect(exitCode).toBe(2);
    expect(find(findings, "folders", `inbox of ${MAILBOX}`).detail).toBe(`${sales} exists and is writable`);
    expect(find(findings, "folders", "inbox of hr@example.com").detail).toContain(`${hr} does not exist yet`);
    expect(find(findings, "file system", "same mount").status).toBe("ok");
    expect(find(findings, "file system", `same mount, inbox of ${MAILBOX}`)).toMatchObject({
      status: "failed",
      advice: expect.stringContaining("mount one volume that holds both"),
    });
    expect(find(findings, "file system", "same mount, inbox of hr@example.com").status).toBe("ok");
    expect(await readdir(sales)).toEqual([]);
  });

  test("on two mounts fail, even on one file system, and nothing is left in either", {
    tags: ["system"],
  }, async () => {
    const { config, folder, inbox } = await install(undefined, { work: "work" });
    for (const name of ["inbox", "work", "state"]) await mkdir(join(folder, name), { mode: 0o700 });
    const { findings, exitCode } = await examineMounted(config, `mount --bind ${inbox} ${inbox}`);
    expect(exitCode).toBe(2);
    expect(find(findings, "file system", "same mount")).toMatchObject({
      status: "failed",
      advice: expect.stringContaining("Put work on the inbox's file system"),
    });
    expect(findings.filter(({ status }) => status === "failed")).toHaveLength(1);
    for (const name of ["inbox", "work"]) expect(await readdir(join(folder, name))).toEqual([]);
  });

  test("in memory, or with little room, are reported", { tags: ["system"] }, async () => {
    const { config, inbox } = await install(undefined, { limits: { minFreeSpace: "1GiB" } });
    await mkdir(inbox, { mode: 0o700 });
    const small = `mount -t tmpfs -o size=4M,nr_inodes=200 tmpfs ${inbox}`;
    const { findings, exitCode } = await examineMounted(config, small);
    expect(exitCode).toBe(3);
    expect(find(findings, "file system", "kind")).toMatchObject({
      status: "warning",
      detail: expect.stringContaining(`tmpfs, mounted at ${inbox}: it is kept in memory`),
    });
    expect(find(findings, "file system", "kind of state").detail).toMatch(/mounted at \//);
    expect(find(findings, "file system", "space")).toMatchObject({ status: "failed" });
    expect(find(findings, "file system", "inodes")).toMatchObject({ status: "warning" });
    for (const check of ["rename", "fsync", "locks", "new names", "names"]) {
      expect(find(findings, "file system", check)).toMatchObject({ status: "ok" });
    }
  });

  test("that are full or read-only fail", { tags: ["system"] }, async () => {
    const { config, inbox } = await install(undefined, { limits: { minFreeSpace: 0 } });
    await mkdir(inbox, { mode: 0o700 });
    const full = `mount -t tmpfs -o size=64k tmpfs ${inbox} && (dd if=/dev/zero of=${inbox}/x bs=4k 2>&1 || true) >/dev/null`;
    const filled = await examineMounted(config, full);
    expect(filled.exitCode).toBe(3);
    expect(find(filled.findings, "file system", "trial").detail).toContain("No space is left");
    const readOnly = await examineMounted(config, `mount -t tmpfs -o ro tmpfs ${inbox}`);
    expect(readOnly.exitCode).toBe(2);
    expect(find(readOnly.findings, "folders", "inbox")).toMatchObject({
      detail: expect.stringContaining("EROFS"),
      advice: expect.stringContaining("ReadWritePaths="),
    });
  });
});

describe("the service", () => {
  test("that cannot be reached fails, and its mailboxes are skipped", async () => {
    const { config, simulator } = await install();
    await simulator.close();
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("unreachable");
    expect(find(findings, "service", "reach")).toMatchObject({
      status: "failed",
      detail: expect.stringContaining("could not be reached"),
    });
    expect(find(findings, "service", MAILBOX)).toMatchObject({
      status: "skipped",
      detail: "the service cannot be reached",
    });
  });

  test("that never answers fails after its timeout", async () => {
    const url = await listen(createServer(() => {}));
    const service = { baseUrl: url, clientId: "C".repeat(64), timeout: "300ms" };
    const { config } = await install(undefined, { service });
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("unreachable");
    expect(find(findings, "service", "reach").detail).toContain("did not answer in time");
  });

  test("whose clock differs is a warning", async () => {
    const url = await listen(
      createServer((_message, response) => {
        response.setHeader("date", new Date(Date.now() - 10 * 60_000).toUTCString());
        response.end('{"apiVersions":{"uiApiVersions":[{"major":1,"minor":15}]}}');
      }),
    );
    const { config } = await install(undefined, { service: { baseUrl: url, clientId: "C".repeat(64) } });
    const { findings } = await examine(config);
    expect(find(findings, "service", "version")).toMatchObject({ status: "ok" });
    expect(find(findings, "service", "clock")).toMatchObject({
      status: "warning",
      detail: expect.stringMatching(/^this machine's clock is (9|10) min \d+ s ahead of the service's$/),
    });
  });

  test("whose certificate is not trusted fails; with its authority it passes", async () => {
    const { clientId, url } = await openTestSimulator({}, { tls: SERVER });
    const { config } = await install(undefined, { service: { baseUrl: url, clientId } });
    const untrusted = await examine(config);
    expect(untrusted.outcome).toBe("unreachable");
    expect(find(untrusted.findings, "service", "reach").detail).toContain("No trusted TLS connection");
    const ca = join(TLS_FOLDER, "ca.crt");
    const trusted = await install(undefined, { service: { baseUrl: url, clientId, ca } });
    const { findings, outcome } = await examine(trusted.config);
    expect(outcome).toBe("fine");
    expect(find(findings, "service", "reach").detail).toContain("its certificate is trusted");
  });

  test("whose authority is in the system's store is trusted without a word in the configuration", async () => {
    const { clientId, url } = await openTestSimulator(
      { transfers: [transferPlan({ trackingId: "t1" })] },
      { tls: SERVER },
    );
    const { config } = await install(undefined, { service: { baseUrl: url, clientId } });
    const once = ["once", "--config", config];
    expect((await runProgram(once)).exitCode).toBe(4);
    const env = { SSL_CERT_FILE: join(TLS_FOLDER, "ca.crt") };
    const { exitCode, stderr } = await runProgram(once, { env });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("1 delivered")]);
  });

  test("that knows the client id of one mailbox fails for the other, with advice", async () => {
    const stranger = { service: { clientId: "S".repeat(64) } };
    const mailboxes = [{ email: MAILBOX }, { email: "b@example.com", ...stranger }];
    const { config } = await install(undefined, { mailboxes });
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("attention");
    expect(find(findings, "service", MAILBOX)).toMatchObject({
      status: "ok",
      detail: expect.stringMatching(/^verified until 20.*, and its list can be read$/),
    });
    expect(find(findings, "service", "b@example.com")).toMatchObject({
      status: "failed",
      advice: expect.stringContaining("inlet verify-address b@example.com"),
    });
  });

  test("is not asked without a client id, and none is created", async () => {
    const { config, state, simulator } = await install();
    const document = JSON.parse(await readFile(config, "utf8"));
    await writeFile(config, JSON.stringify({ ...document, service: { baseUrl: simulator.url } }));
    await mkdir(state, { mode: 0o700 });
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("attention");
    expect(find(findings, "service", "client id")).toMatchObject({ status: "failed" });
    expect(find(findings, "service", MAILBOX)).toMatchObject({ status: "skipped" });
    expect(await readdir(state)).toEqual([]);
  });

  test("that is too old, or another program, fails", async () => {
    const old = await install({ apiVersion: "1.11" });
    expect((await examine(old.config)).outcome).not.toBe("fine");
    const { url } = await openWitness();
    const { config } = await install(undefined, { service: { baseUrl: url, clientId: "C".repeat(64) } });
    const { findings, outcome } = await examine(config);
    expect(outcome).not.toBe("fine");
    expect(findings.some(({ area, status }) => area === "service" && status === "failed")).toBe(true);
  });
});

describe("the queue on Redis", () => {
  test("is reported with its version; an evicting policy is a warning with the command that fixes it", {
    tags: ["system"],
  }, async () => {
    const redis = await startRedis(["--maxmemory-policy", "allkeys-lru"]);
    const { config } = await install(undefined, { queue: redis.url });
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("fine");
    expect(find(findings, "queue", "Redis").detail).toMatch(/^127\.0\.0\.1:\d+ answers, version \d+\./);
    const { advice = "", status } = find(findings, "queue", "memory");
    expect(status).toBe("warning");
    expect(advice).toContain(
      `redis-cli -h 127.0.0.1 -p ${redis.port} CONFIG SET maxmemory-policy noeviction`,
    );
    expect(find(findings, "queue", "persistence").detail).toContain("loses jobs at a restart");
    await redis.client.config("SET", "maxmemory-policy", "noeviction");
    await redis.client.config("SET", "appendonly", "yes");
    const mended = await examine(config);
    expect(find(mended.findings, "queue", "memory").status).toBe("ok");
    expect(find(mended.findings, "queue", "persistence").detail).toContain("append-only file");
  });

  test("fails with a wrong password, and if it is down", { tags: ["system"] }, async () => {
    const redis = await startRedis(["--requirepass", "right"]);
    const { config } = await install(undefined, { queue: redis.url, redis: { password: "wrong-password" } });
    const refused = await examine(config);
    expect(refused.outcome).toBe("unreachable");
    expect(find(refused.findings, "queue", "Redis").detail).toContain("WRONGPASS");
    expect(JSON.stringify(refused.findings)).not.toContain("wrong-password");
    await redis.kill();
    const gone = await examine(config);
    expect(gone.outcome).toBe("unreachable");
    expect(find(gone.findings, "queue", "Redis").detail).toContain("ECONNREFUSED");
    expect(find(gone.findings, "queue", "memory").status).toBe("skipped");
  });

  test("that never answers fails after its timeout", async () => {
    const server = createTcpServer(() => {}).listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const silent = redisSettings(`redis://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await expect(inspectQueue(silent, 300, SIGNAL)).rejects.toMatchObject({
      code: "QUEUE_UNREACHABLE",
      message: expect.stringContaining("no answer in 0.3 s"),
    });
  });
});

describe("the daemon", () => {
  test("that runs answers at its address, and has polled its mailboxes", async () => {
    const { config } = await install(undefined, { http: { listen: `127.0.0.1:${await freePort()}` } });
    const before = await examine(config);
    expect(find(before.findings, "daemon", "console")).toMatchObject({
      status: "ok",
      detail: expect.stringContaining("is free, and no daemon of this inbox answers"),
    });
    const daemon = startProgram(["run", "--config", config]);
    daemon.stdout?.resume();
    const polled = async () => {
      const { findings } = await examine(config);
      return findings.find(({ area, check }) => area === "daemon" && check === MAILBOX)?.detail;
    };
    await expect.poll(polled, { timeout: 20_000 }).toMatch(/^last polled \d+ s ago$/);
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("fine");
    expect(find(findings, "daemon", "console").detail).toContain(
      `the daemon (process ${daemon.pid}) answers at`,
    );
  });

  test("finds an address that another program has taken", async () => {
    const { url } = await openWitness();
    const listen = new URL(url).host;
    const { config } = await install(undefined, { http: { listen } });
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("usage");
    expect(find(findings, "daemon", "console")).toMatchObject({
      status: "failed",
      detail: `another program listens at ${listen}`,
      advice: expect.stringContaining(`ss -ltnp 'sport = :${new URL(url).port}'`),
    });
  });

  test("names the daemon of another inbox at the address", async () => {
    const http = { listen: `127.0.0.1:${await freePort()}` };
    const other = await install(undefined, { http });
    const daemon = startProgram(["run", "--config", other.config]);
    daemon.stdout?.resume();
    const { config } = await install(undefined, { http });
    const taken = async () => find((await examine(config)).findings, "daemon", "console").detail;
    await expect
      .poll(taken, { timeout: 20_000 })
      .toBe(`${http.listen} is taken by the daemon of ${other.inbox} (process ${daemon.pid})`);
  });

  test("finds a socket whose folder is missing, or that is a file", async () => {
    const folder = await makeFolder();
    const { config, rewrite } = await install(undefined, { http: { listen: `unix:${folder}/no/page.sock` } });
    expect(find((await examine(config)).findings, "daemon", "console").detail).toContain(
      "its folder does not exist",
    );
    await writeFile(join(folder, "page.sock"), "");
    await rewrite({ http: { listen: `unix:${folder}/page.sock` } });
    expect(find((await examine(config)).findings, "daemon", "console").detail).toContain("EEXIST");
  });

  test.each([
    ["0.0.0.0", undefined, "warning"],
    ["[::]", undefined, "warning"],
    ["0.0.0.0", "t".repeat(40), "warning"],
    ["127.0.0.1", undefined, undefined],
    ["[::1]", undefined, undefined],
  ] as const)(
    "warns of an address open to the network, where a token does not hide anything: %s, token %s",
    async (host, token, status) => {
      const http = { listen: `${host}:${await freePort()}`, ...(token === undefined ? {} : { token }) };
      const { config } = await install(undefined, { http });
      const { findings } = await examine(config);
      const found = findings.find(({ area, check }) => area === "daemon" && check === "access");
      expect(found?.status).toBe(status);
    },
  );
});

describe("the state folder", () => {
  test.each([
    ["", 0o777, "every user of this machine"],
    ["", 0o770, "its group"],
    ["passwords", 0o733, "every user of this machine"],
    ["tokens", 0o720, "its group"],
  ])("that others may write is found: %s with mode %o", async (name, mode, writers) => {
    const { config, state } = await install();
    const folder = join(state, name);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, mode);
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("usage");
    const failed = findings.filter(({ status, area }) => area === "folders" && status === "failed");
    expect(failed).toMatchObject([
      {
        check: name || "state",
        detail: expect.stringContaining(`can be changed by ${writers}`),
        advice: expect.stringContaining(`chmod go= ${folder}`),
      },
    ]);
  });

  test("with a folder of another user, or in a folder in which others can replace it, is found", {
    tags: ["system"],
  }, async () => {
    const { config, state, folder } = await install();
    await mkdir(join(state, "passwords"), { recursive: true, mode: 0o700 });
    await chmod(state, 0o700);
    await chown(join(state, "passwords"), 65_534, 65_534);
    await chmod(folder, 0o777);
    const { findings } = await examine(config);
    expect(find(findings, "folders", "passwords").detail).toContain(
      "belongs to user 65534, and the state folder to",
    );
    expect(findings).toContainEqual(
      expect.objectContaining({
        check: "state",
        status: "warning",
        advice: expect.stringContaining(`chmod +t ${folder}`),
      }),
    );
  });
});

describe("passwords in files", () => {
  test("with outer blanks are warned of, and with several lines refused: they would cost attempts", async () => {
    const { config, folder, rewrite } = await install();
    const file = join(folder, "supplier");
    const passwords = [{ sender: "*@a.example", password: { file } }];
    await rewrite({ mailboxes: [{ ...mailboxKeys(MAILBOX), passwords }] });
    await writeFile(file, " Sunny42\n", { mode: 0o600 });
    const { findings } = await examine(config);
    expect(findings).toContainEqual(
      expect.objectContaining({
        status: "warning",
        detail: expect.stringContaining(`file ${file} begins or ends with a blank, which is sent`),
      }),
    );
    await writeFile(file, "Sunny42\nfor Anna\n");
    const refused = await examine(config);
    expect(refused.outcome).toBe("usage");
    expect(find(refused.findings, "configuration", "file").detail).toContain(
      `file ${file} has several lines`,
    );
    expect(JSON.stringify([...findings, ...refused.findings])).not.toContain("Sunny42");
  });

  test("that a command prints on several lines are not sent", async () => {
    const password = { command: ["printf", "Sunny42\\nfor Anna\\n"] };
    const { config, simulator } = await install(undefined, {
      mailboxes: [{ ...mailboxKeys(MAILBOX), passwords: [{ password }] }],
    });
    const { stderr } = await runProgram(["once", "--config", config]);
    expect(stderr).toContain("command printf has several lines");
    expect(simulator.refusedPasswords("t1")).toEqual([]);
  });

  test("in the drop folder are checked too", async () => {
    const { config, state } = await install();
    const folder = join(state, "passwords", MAILBOX);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeFile(join(folder, "t8"), "Sunny42 \n", { mode: 0o600 });
    await writeFile(join(state, "passwords", "t9"), "Sunny42\nfor Anna\n", { mode: 0o600 });
    await writeFile(join(state, "passwords", "t1"), "Sunny42\n", { mode: 0o600 });
    const { findings } = await examine(config);
    const found = findings.filter(({ check }) => check === "passwords").map(({ detail }) => detail);
    expect(found.toSorted()).toEqual([
      expect.stringContaining(`${join(folder, "t8")} begins or ends with a blank`),
      expect.stringContaining(`${join(state, "passwords", "t9")} is not one line with a password`),
    ]);
  });
});

describe("consumers in a group", { tags: ["system"] }, () => {
  const [GROUP, LAB] = [17_001, 17_002];

  test("that cannot enter the inbox, or a folder above it, are found, and the advice helps", async () => {
    const { config, folder, inbox } = await install(undefined, { handoff: { group: GROUP } });
    await mkdir(inbox, { mode: 0o750 });
    const { findings } = await examine(config);
    const found = ofGroup(findings, GROUP);
    expect(found.map(({ detail }) => detail)).toEqual([
      `its members cannot enter ${inbox} (mode 0750, group 0)`,
      `its members cannot enter ${folder} (mode 0700, group 0)`,
    ]);
    await follow(found);
    expect(ofGroup((await examine(config)).findings, GROUP)).toEqual([]);
    expect(await canAs(GROUP, `ls ${inbox}`)).toBe(true);
  });

  test("that cannot move from older folders are found, and the advice helps", async () => {
    const { config, folder, inbox, rewrite } = await install({
      transfers: ["anna", "bert"].map((name) =>
        transferPlan({ from: `${name}@a.example`, trackingId: name }),
      ),
    });
    await runProgram(["once", "--config", config]);
    await rewrite({ handoff: { group: GROUP, folderMode: "0770" } });
    await chmod(folder, 0o755);
    await chmod(inbox, 0o755);
    const parcel = join(inbox, MAILBOX, "anna@a.example", "anna");
    const found = ofGroup((await examine(config)).findings, GROUP);
    expect(found).toMatchObject([
      { detail: expect.stringContaining(`move deliveries out of ${join(inbox, MAILBOX)}, nor 2 others`) },
    ]);
    expect(await canAs(GROUP, `mv ${parcel} ${parcel}.taken`)).toBe(false);
    await follow(found);
    expect(ofGroup((await examine(config)).findings, GROUP)).toEqual([]);
    expect(await canAs(GROUP, `mv ${parcel} ${parcel}.taken`)).toBe(true);
    expect((await stat(join(inbox, ".inlet"))).gid).toBe(0);
  });

  test("are those of each mailbox: a folder of another group is no finding", async () => {
    const lab = { ...mailboxKeys("lab@example.com"), handoff: { group: LAB } };
    const { config, folder, inbox } = await install(
      { transfers: [transferPlan(), transferPlan({ to: ["lab@example.com"] })] },
      { handoff: { group: GROUP }, mailboxes: [mailboxKeys(MAILBOX), lab] },
    );
    await runProgram(["once", "--config", config]);
    for (const path of [folder, inbox]) await chmod(path, 0o755);
    const { findings } = await examine(config);
    expect([...ofGroup(findings, GROUP), ...ofGroup(findings, LAB)]).toEqual([]);
  });

  function ofGroup(findings: readonly Finding[], group: number): Finding[] {
    return findings.filter(({ check, status }) => check === `group ${group}` && status === "warning");
  }

  async function follow(findings: readonly Finding[]): Promise<void> {
    for (const { advice = "" } of findings)
      expect(await runCommand("sh", ["-c", advice])).toMatchObject({ exitCode: 0 });
  }

  async function canAs(group: number, script: string): Promise<boolean> {
    const who = ["--reuid", "15001", "--regid", "15001", "--groups", String(group)];
    return (await runCommand("setpriv", [...who, "sh", "-c", script])).exitCode === 0;
  }
});

test("--unit needs root and a unit that systemd has", async () => {
  const { exitCode, stderr } = await runCommand(process.execPath, [
    LAUNCHER,
    "doctor",
    "--unit",
    "no such unit",
  ]);
  expect([exitCode, stderr]).toEqual([
    2,
    expect.stringContaining('"no such unit" is not the name of a unit'),
  ]);
});

async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}

async function examine(config: string) {
  const { outcome, stdout } = await callCommand(["doctor", "--config", config, "--json"]);
  return { outcome, findings: parseFindings(stdout) };
}

/** Runs `mount` first, in a private mount namespace. */
async function examineMounted(config: string, mount: string) {
  const { path } = await findProgram("unshare", ["util-linux"]);
  const script = `${mount} && exec "${process.execPath}" "${LAUNCHER}" doctor --config "${config}" --json`;
  const args = ["-m", "--propagation", "private", "sh", "-c", script];
  const { exitCode, stdout, stderr } = await runCommand(path, args);
  if (stdout === "") throw new Error(stderr);
  return { exitCode, findings: parseFindings(stdout) };
}

function parseFindings(stdout: string): Finding[] {
  return (JSON.parse(stdout) as { findings: Finding[] }).findings;
}

function find(findings: readonly Finding[], area: string, check: string): Finding {
  const found = findings.find((finding) => finding.area === area && finding.check === check);
  if (found === undefined) throw new Error(`no ${area} ${check} in ${JSON.stringify(findings, null, 2)}`);
  return found;
}

/** Temporary folders can be on a file system that doctor warns of, such as tmpfs. */
function warningsOfDisk(findings: readonly Finding[]): number {
  return find(findings, "file system", "kind").status === "warning" ? 1 : 0;
}

async function tree(folder: string): Promise<string[]> {
  return (await readdir(folder, { recursive: true })).toSorted();
}
