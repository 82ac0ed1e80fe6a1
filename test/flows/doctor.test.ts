/** `inlet doctor`: its findings in good and bad surroundings; it leaves nothing behind. */
import { chmod, chown, mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { inspectQueue } from "../../src/queue/bullmq-connection.ts";
import { callCommand, startRun } from "../support/command.ts";
import { findProgram } from "../support/debian.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { readRecords } from "../support/ledger.ts";
import {
  finish,
  LAUNCHER,
  makeFolder,
  runCommand,
  runOnTerminal,
  runProgram,
  startProgram,
} from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { freePort } from "../support/redis-server.ts";
import { listen, openSilent, openWitness } from "../support/servers.ts";
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

  test("runs beside a daemon, whose process, address and polls it names, and uses the stored token", async () => {
    const http = { listen: `127.0.0.1:${await freePort()}` };
    const { config, inbox, state, simulator } = await install(undefined, { http });
    const before = await examine(config);
    see(before.findings, "daemon", "console", "ok", "is free, and no daemon of this inbox answers");
    see(before.findings, "queue", "inbox", "ok", "no process uses it now");
    const daemon = startRun(config);
    const polled = async () => {
      const { findings } = await examine(config);
      return findings.find(({ area, check }) => area === "daemon" && check === MAILBOX)?.detail;
    };
    await expect.poll(polled).toMatch(/^last polled \d+ s ago$/);
    const states = () => readRecords(join(inbox, ".inlet")).map(({ state }) => state);
    await expect.poll(states).toEqual(["delivered"]);
    for (const name of ["notes", "staging"])
      await expect.poll(() => readdir(join(inbox, ".inlet", name))).toEqual([]);
    const delivered = await tree(inbox);
    const tokens = simulator.totals()["verification-token"];
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("fine");
    see(findings, "queue", "inbox", "ok", `1 process uses it: process ${process.pid} on `);
    see(findings, "daemon", "socket", "ok", `the daemon (process ${process.pid}) answers at`);
    see(findings, "daemon", "console", "ok", `the console answers at ${http.listen}`);
    expect(await tree(inbox)).toEqual(delivered);
    expect(simulator.totals()["verification-token"]).toBe(tokens);
    expect(await readdir(join(state, "tokens"))).toHaveLength(1);
    await daemon.stop();
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
    see(findings, "folders", "user", "warning", "", "sudo -u '#65534' inlet doctor");
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
    see(findings, "service", MAILBOX, "failed");
    expect(await readdir(target)).toEqual([]);
  });
});

test("checks that each command is executable, and the program that limits the memory of a check", async () => {
  const commands = ["/no/such/program", "no-such-program", "/etc/passwd", "true"];
  const mailboxes = commands.map((command, at) => ({
    ...mailboxKeys(`m${at}@example.com`),
    handoff: { command: [command], webhook: { url: "http://127.0.0.1:1/", secret: { command: ["false"] } } },
  }));
  const check = { command: ["/no/such/scanner"], memory: "1GiB" };
  const { findings } = await examineWith({ mailboxes, check });
  const found = (key: string) =>
    findings.filter((it) => it.check === key).map(({ status, detail }) => `${status}: ${detail}`);
  expect(found("handoff.command")).toEqual([
    "failed: /no/such/program is not an executable program",
    "failed: no-such-program is not in PATH",
    "failed: /etc/passwd is not an executable program",
    expect.stringMatching(/^ok: .*\/true is executable$/),
  ]);
  expect(found("check.command")).toEqual(["failed: /no/such/scanner is not an executable program"]);
  expect(found("check.memory")).toEqual([expect.stringMatching(/^ok: /)]);
  expect(found("secrets")).toEqual([expect.stringContaining("command false")]);
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
    see(findings, "file system", "rename", "ok");
    expect(await readdir(inbox)).toEqual([".inlet-probe-0123456789ab"]);
    // Success as root proves nothing if the owner may not.
    await chmod(inbox, 0o555);
    see((await examine(config)).findings, "folders", "work", "failed");
  });

  test("it tries nothing where other users could replace its files", async () => {
    const { config, folder, inbox } = await install();
    await chmod(folder, 0o755);
    await mkdir(inbox);
    await chmod(inbox, 0o770);
    const { findings } = await examine(config);
    see(findings, "file system", "trial", "skipped", inbox);
    await chmod(inbox, 0o1770);
    see((await examine(config)).findings, "file system", "rename", "ok");
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
    const { config, rewrite } = await install(undefined, {
      mailboxes: [{ email: MAILBOX, passwords: [{ password: { command: ["/nowhere/vault"] } }] }],
      http: { listen: "127.0.0.1:0", actions: true, token: { command: ["false"] } },
    });
    await chmod(config, 0o644);
    const { stderr } = await runProgram(["doctor", "--config", config]);
    const { findings, outcome } = await examine(config);
    const other = warningsOfDisk(findings);
    expect(stderr).toBe(`2 checks failed, ${other === 0 ? "1 warning" : "2 warnings"}.\n`);
    expect(outcome).toBe("usage");
    see(findings, "configuration", "secrets", "failed", "command false ended with exit code 1");
    const vault = "/nowhere/vault is not an executable program";
    see(findings, "configuration", "passwords.command", "failed", vault);
    const warnings = findings.filter(({ status }) => status === "warning").map(({ detail }) => detail);
    expect(warnings[0]).toContain(`chmod go= ${config}`);
    expect(warnings).toHaveLength(1 + other);
    // A summary with a warning does not say that all is well.
    await rewrite({ mailboxes: [mailboxKeys(MAILBOX)], http: { listen: "127.0.0.1:0" } });
    await chmod(config, 0o644);
    const mended = await runProgram(["doctor", "--config", config]);
    const count = other === 0 ? "1 warning" : "2 warnings";
    expect([mended.exitCode, mended.stderr]).toEqual([0, `Inlet can run, with ${count}.\n`]);
  });
});

describe("folders", () => {
  test("that are files, or cannot be created, fail", async () => {
    const folder = await makeFolder();
    await writeFile(join(folder, "file"), "");
    const { findings, outcome } = await examineWith({ inbox: "/proc/inbox", state: join(folder, "file") });
    expect(outcome).toBe("usage");
    see(findings, "folders", "inbox", "failed", "cannot be created in /proc");
    see(findings, "folders", "state", "failed", "is not a folder");
    see(findings, "file system", "all", "skipped");
    see(findings, "service", MAILBOX, "ok");
  });

  test("of routes are checked beside that of their mailbox", async () => {
    const folder = await makeFolder();
    const [own, file] = [join(folder, "own"), join(folder, "file")];
    await writeFile(file, "");
    const routes = [{ name: "invoices", sender: "*@supplier.example", inbox: file }];
    const { findings } = await examineWith({
      mailboxes: [{ ...mailboxKeys(MAILBOX), inbox: own, routes }],
      work: join(folder, "work"),
    });
    see(findings, "folders", `inbox of ${MAILBOX}`, "ok", `${own} does not exist yet`);
    see(findings, "folders", `inbox of ${MAILBOX}: ${file}`, "failed", "is not a folder");
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
    see(findings, "folders", "inbox of hr@example.com", "ok", `${hr} does not exist yet`);
    see(findings, "file system", "same mount", "ok");
    const ofSales = `same mount, inbox of ${MAILBOX}`;
    see(findings, "file system", ofSales, "failed", "", "mount one volume that holds both");
    see(findings, "file system", "same mount, inbox of hr@example.com", "ok");
    expect(await readdir(sales)).toEqual([]);
  });

  test("on two mounts fail, even on one file system, and nothing is left in either", {
    tags: ["system"],
  }, async () => {
    const { config, folder, inbox } = await install(undefined, { work: "work" });
    for (const name of ["inbox", "work", "state"]) await mkdir(join(folder, name), { mode: 0o700 });
    const { findings, exitCode } = await examineMounted(config, `mount --bind ${inbox} ${inbox}`);
    expect(exitCode).toBe(2);
    see(findings, "file system", "same mount", "failed", "", "Put work on the inbox's file system");
    expect(findings.filter(({ status }) => status === "failed")).toHaveLength(1);
    for (const name of ["inbox", "work"]) expect(await readdir(join(folder, name))).toEqual([]);
  });

  test("in memory, or with little room, are reported", { tags: ["system"] }, async () => {
    const { config, inbox } = await install(undefined, { limits: { minFreeSpace: "1GiB" } });
    await mkdir(inbox, { mode: 0o700 });
    const small = `mount -t tmpfs -o size=4M,nr_inodes=200 tmpfs ${inbox}`;
    const { findings, exitCode } = await examineMounted(config, small);
    expect(exitCode).toBe(3);
    see(findings, "file system", "kind", "warning", `tmpfs, mounted at ${inbox}: it is kept in memory`);
    expect(find(findings, "file system", "kind of state").detail).toMatch(/mounted at \//);
    see(findings, "file system", "space", "failed");
    see(findings, "file system", "inodes", "warning");
    for (const check of ["rename", "fsync", "locks", "new names", "names"]) {
      see(findings, "file system", check, "ok");
    }
  });

  test("that are full or read-only fail", { tags: ["system"] }, async () => {
    const { config, inbox } = await install(undefined, { limits: { minFreeSpace: 0 } });
    await mkdir(inbox, { mode: 0o700 });
    const full = `mount -t tmpfs -o size=64k tmpfs ${inbox} && (dd if=/dev/zero of=${inbox}/x bs=4k 2>&1 || true) >/dev/null`;
    const filled = await examineMounted(config, full);
    expect(filled.exitCode).toBe(3);
    see(filled.findings, "file system", "trial", "failed", "No space is left");
    const readOnly = await examineMounted(config, `mount -t tmpfs -o ro tmpfs ${inbox}`);
    expect(readOnly.exitCode).toBe(2);
    see(readOnly.findings, "folders", "inbox", "failed", "EROFS", "ReadWritePaths=");
  });
});

describe("the service", () => {
  test("that cannot be reached, or does not answer in time, fails, and its mailboxes are skipped", async () => {
    const gone = await install();
    await gone.simulator.close();
    const url = await listen(createServer(() => {}));
    const service = { baseUrl: url, clientId: "C".repeat(64), timeout: "300ms" };
    const silent = await install(undefined, { service });
    for (const [{ config }, why] of [
      [gone, "could not be reached"],
      [silent, "did not answer in time"],
    ] as const) {
      const { findings, outcome } = await examine(config);
      expect(outcome).toBe("unreachable");
      see(findings, "service", "reach", "failed", why);
      see(findings, "service", MAILBOX, "skipped", "the service cannot be reached");
    }
  });

  test("whose clock differs is a warning", async () => {
    const url = await listen(
      createServer((_message, response) => {
        response.setHeader("date", new Date(Date.now() - 10 * 60_000).toUTCString());
        response.end('{"apiVersions":{"uiApiVersions":[{"major":1,"minor":15}]}}');
      }),
    );
    const { findings } = await examineWith({ service: { baseUrl: url, clientId: "C".repeat(64) } });
    see(findings, "service", "version", "ok");
    see(findings, "service", "clock", "warning", " s ahead of the service's");
    expect(find(findings, "service", "clock").detail).toMatch(/clock is (9|10) min/);
  });

  test("whose certificate is not trusted fails; with its authority it passes", async () => {
    const { clientId, url } = await openTestSimulator({}, { tls: SERVER });
    const untrusted = await examineWith({ service: { baseUrl: url, clientId } });
    expect(untrusted.outcome).toBe("unreachable");
    see(untrusted.findings, "service", "reach", "failed", "No trusted TLS connection");
    const ca = join(TLS_FOLDER, "ca.crt");
    const { findings, outcome } = await examineWith({ service: { baseUrl: url, clientId, ca } });
    expect(outcome).toBe("fine");
    see(findings, "service", "reach", "ok", "its certificate is trusted");
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
    const { exitCode, stderr } = await finish(startProgram(once, { env }));
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("1 delivered")]);
  });

  test("that knows the client id of one mailbox fails for the other, with advice", async () => {
    const stranger = { service: { clientId: "S".repeat(64) } };
    const mailboxes = [{ email: MAILBOX }, { email: "b@example.com", ...stranger }];
    const { findings, outcome } = await examineWith({ mailboxes });
    expect(outcome).toBe("attention");
    see(findings, "service", MAILBOX, "ok", ", and its list can be read");
    expect(find(findings, "service", MAILBOX).detail).toMatch(/^verified until 20/);
    see(findings, "service", "b@example.com", "failed", "", "inlet verify-address b@example.com");
  });

  test("is not asked without a client id, and none is created", async () => {
    const { config, state, simulator } = await install();
    const document = JSON.parse(await readFile(config, "utf8"));
    await writeFile(config, JSON.stringify({ ...document, service: { baseUrl: simulator.url } }));
    await mkdir(state, { mode: 0o700 });
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe("attention");
    see(findings, "service", "client id", "failed");
    see(findings, "service", MAILBOX, "skipped");
    expect(await readdir(state)).toEqual([]);
  });

  test("that is too old, or another program, fails", async () => {
    const old = await install({ apiVersion: "1.11" });
    expect((await examine(old.config)).outcome).not.toBe("fine");
    const { url } = await openWitness();
    const { findings, outcome } = await examineWith({ service: { baseUrl: url, clientId: "C".repeat(64) } });
    expect(outcome).not.toBe("fine");
    expect(findings.some(({ area, status }) => area === "service" && status === "failed")).toBe(true);
  });
});

describe("the queue on Redis", { tags: ["system"] }, () => {
  test("is reported with its version; an evicting policy is a warning with the command that fixes it", async () => {
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
    await redis.client.config("SET", "maxmemory-policy", "noeviction");
    const mended = await examine(config);
    see(mended.findings, "queue", "memory", "ok");
  });

  test("fails with a wrong password, and if it is down", async () => {
    const redis = await startRedis(["--requirepass", "right"]);
    const { config } = await install(undefined, { queue: redis.url, redis: { password: "wrong-password" } });
    const refused = await examine(config);
    expect(refused.outcome).toBe("unreachable");
    see(refused.findings, "queue", "Redis", "failed", "WRONGPASS");
    expect(JSON.stringify(refused.findings)).not.toContain("wrong-password");
    await redis.kill();
    const gone = await examine(config);
    expect(gone.outcome).toBe("unreachable");
    see(gone.findings, "queue", "Redis", "failed", "ECONNREFUSED");
    see(gone.findings, "queue", "memory", "skipped");
  });
});

test("a queue that never answers fails after its timeout", async () => {
  const silent = redisSettings(`redis://127.0.0.1:${await openSilent()}`);
  await expect(inspectQueue(silent, 300, SIGNAL)).rejects.toMatchObject({
    code: "QUEUE_UNREACHABLE",
    message: expect.stringContaining("no answer in 0.3 s"),
  });
});

describe("the daemon", () => {
  test("finds an address that another program has taken", async () => {
    const listen = new URL((await openWitness()).url).host;
    const { findings, outcome } = await examineWith({ http: { listen } });
    expect(outcome).toBe("usage");
    see(findings, "daemon", "console", "failed", `${listen}: another program listens there`, "ss -ltnp");
  });

  test("names the daemon of another inbox at the address", async () => {
    const http = { listen: `127.0.0.1:${await freePort()}` };
    const other = await install(undefined, { http });
    startRun(other.config);
    const { config } = await install(undefined, { http });
    const taken = async () => find((await examine(config)).findings, "daemon", "console").detail;
    await expect
      .poll(taken, { timeout: 20_000 })
      .toBe(`${http.listen} is taken by the daemon of ${other.inbox} (process ${process.pid})`);
  });

  test("finds a socket whose folder is missing, or that is a file", async () => {
    const folder = await makeFolder();
    await writeFile(join(folder, "page.sock"), "");
    for (const [path, why] of [
      ["no/page.sock", "its folder does not exist"],
      ["page.sock", "EEXIST"],
    ] as const) {
      const { findings } = await examineWith({ http: { listen: `unix:${folder}/${path}` } });
      see(findings, "daemon", "console", "failed", why);
    }
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
      const { findings } = await examineWith({ http });
      const found = findings.find(({ area, check }) => area === "daemon" && check === "access");
      expect(found?.status).toBe(status);
    },
  );
});

describe("the state folder", () => {
  test.each([
    ["", 0o703, "failed", "every user", "chmod o-w"],
    ["", 0o1703, "warning", "every user", "chmod o-w"],
    ["passwords", 0o733, "failed", "every user", "chmod o-w"],
  ] as const)("that others may write is found: %s with mode %o", seeWritten);

  // A user who is alone in its group is no problem.
  test("that the group of root may write is found", { tags: ["system"] }, () =>
    seeWritten("tokens", 0o720, "warning", "the group root", "chmod g-w"),
  );

  async function seeWritten(
    name: string,
    mode: number,
    status: "failed" | "warning",
    who: string,
    remedy: string,
  ): Promise<void> {
    const { config, state } = await install();
    const folder = join(state, name);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, mode);
    const { findings, outcome } = await examine(config);
    expect(outcome).toBe(status === "failed" ? "denied" : "fine");
    see(findings, "folders", "trust", status, `${who} may write to ${folder}`, `${remedy} ${folder}`);
  }

  test("with a folder of another user, or in a folder in which others can replace it, is found", {
    tags: ["system"],
  }, async () => {
    const { config, state, folder } = await install();
    await mkdir(join(state, "passwords"), { recursive: true, mode: 0o700 });
    await chmod(state, 0o700);
    await chown(join(state, "passwords"), 65_534, 65_534);
    await chmod(folder, 0o770);
    const { findings } = await examine(config);
    const trust = findings.filter(({ check }) => check === "trust");
    expect(trust).toMatchObject([
      { status: "failed", advice: `chown -R root ${join(state, "passwords")}` },
      { status: "warning", advice: `chmod +t ${folder}` },
    ]);
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
    see(refused.findings, "configuration", "file", "failed", `file ${file} has several lines`);
    expect(JSON.stringify([...findings, ...refused.findings])).not.toContain("Sunny42");
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

test("--unit needs a unit that systemd has", async () => {
  const words = ["doctor", "--unit", "no such unit"];
  await expect(callCommand(words)).rejects.toThrow('"no such unit" is not the name of a unit');
});

/** The findings of a new installation. */
async function examineWith(keys: Readonly<Record<string, unknown>>) {
  return examine((await install(undefined, keys)).config);
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

/** Expects the status of a finding, and these parts of its texts. */
function see(
  findings: readonly Finding[],
  area: string,
  check: string,
  status: string,
  detail = "",
  advice = "",
): void {
  const found = find(findings, area, check);
  expect(found.status, found.detail).toBe(status);
  expect(found.detail).toContain(detail);
  expect(found.advice ?? "").toContain(advice);
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
  // The daemon may be replacing a file.
  return (await readdir(folder, { recursive: true })).filter((path) => !path.endsWith(".part")).toSorted();
}
