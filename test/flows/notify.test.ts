/** Notifications: by mail through a real server, and by webhook; also where receivers fail. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Settings } from "../../src/config/settings.ts";
import type { ChannelSettings } from "../../src/model/notify.ts";
import { readApi } from "../support/api.ts";
import { callCommand, startRun } from "../support/command.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { unpackPackages } from "../support/debian.ts";
import { install } from "../support/installation.ts";
import { byMail, byWebhook, groupsOf, notifiedOf, SECRET } from "../support/notify.ts";
import { makeFolder, runProgram } from "../support/program.ts";
import { accept, openReceiver, refuse } from "../support/receiver.ts";
import { freePort } from "../support/redis-server.ts";
import { openProxy, openSilent } from "../support/servers.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { LOGIN, mailboxSettings, pageSettings } from "../support/settings.ts";
import { CA, SERVER, FOLDER as TLS_FOLDER } from "../support/tls.ts";

const UNKNOWN = "another-Password:1";

describe("a mail server", { tags: ["system"] }, () => {
  test("gets a test mail over TLS and with a login, in plain text that no program answers", async () => {
    const server = await openMailServer();
    const { config } = await install({}, { notify: [{ mail: mailKeys(server.port) }] });
    const { exitCode, stdout, stderr } = await runProgram(["notify", "test", "--config", config]);
    expect([exitCode, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^ok\t1\tmail to ops@example\.com through 127\.0\.0\.1:\d+\t250 OK id=\S+\t\n$/);
    const [mail] = await server.expectMails(1);
    expect(mail?.headers).toMatchObject({
      from: "inlet@example.com",
      to: "ops@example.com",
      subject: expect.stringMatching(/^\[inlet \S+\] a test of its notifications$/),
      "auto-submitted": "auto-generated",
      "content-type": "text/plain; charset=utf-8",
      "message-id": expect.stringMatching(/^<[\w-]+@example\.com>$/),
      date: expect.stringMatching(/\+0000$/),
      references: expect.stringMatching(/^<inlet-test-\d+@example\.com>$/),
    });
    expect(mail?.text).toContain("This is a test.");
    expect(await server.log()).toMatch(/P=esmtpsa .*A=plain/);
  });

  test("is trusted only with its authority, and each failure says what to do", async () => {
    const server = await openMailServer();
    const silent = await openSilent();
    const usual = mailKeys(server.port);
    const cases: readonly (readonly [keys: object, outcome: string, says: RegExp])[] = [
      [{ server: `smtps://127.0.0.1:${server.tlsPort}`, tls: undefined }, "fine", /250 OK/],
      [{ ca: undefined }, "usage", /No trusted TLS connection.*certificate.*notify\.mail\.ca/],
      [{ password: "wrong-password" }, "usage", /refused the login: \S+ 535 .*notify\.mail\.user/],
      [
        { to: ["refused@example.com"] },
        "usage",
        /refused the mail: \S+ 550 no such recipient.*notify\.mail\.to/,
      ],
      [{ to: ["ops@example.com", "refused@example.com"] }, "usage", /not accepted for refused@example\.com/],
      [{ from: "refused@example.com" }, "usage", /550 this sender is not welcome/],
      [{ to: ["later@example.com"] }, "unreachable", /does not accept the mail now: \S+ 451 try again later/],
      [{ tls: "none" }, "usage", /refused the login.*offers a login/],
      [
        { server: `smtp://127.0.0.1:${await freePort()}` },
        "unreachable",
        /could not be reached.*ECONNREFUSED/,
      ],
      [{ server: `smtp://127.0.0.1:${silent}`, timeout: "300ms" }, "unreachable", /no answer within 0\.3 s/],
    ];
    const { config, rewrite } = await install();
    await rewrite({ notify: cases.map(([keys]) => ({ mail: { ...usual, ...keys } })) });
    for (const [at, [, outcome, says]] of cases.entries()) {
      const called = await callCommand(["notify", "test", "--config", config, "--to", String(at + 1)]);
      expect([called.outcome, called.stdout]).toEqual([outcome, expect.stringMatching(says)]);
      expect(called.stdout).not.toMatch(/wrong-password|Sturdy|Anchor/);
    }
    const all = await callCommand(["notify", "test", "--config", config, "--json"]);
    expect(all.outcome).toBe("usage");
    expect(JSON.parse(all.stdout)).toHaveLength(cases.length);
  });

  test("is checked by doctor, which sends nothing", async () => {
    const server = await openMailServer();
    const wrong = { ...mailKeys(server.port), password: "wrong-password" };
    const { config } = await install({}, { notify: [{ mail: mailKeys(server.port) }, { mail: wrong }] });
    const { outcome, stdout } = await callCommand(["doctor", "--config", config]);
    expect(outcome).toBe("usage");
    expect(stdout).toMatch(/ok\tnotifications\tnotify\[0\]\t.*the server answers/);
    expect(stdout).toMatch(/failed\tnotifications\tnotify\[1\]\t.*refused the login/);
    expect(await server.mails()).toEqual([]);
  });

  test("that is down gets everything in one mail when it is back, and the failure is shown meanwhile", async () => {
    const server = await openMailServer();
    await server.kill();
    const { simulator, daemon } = await notifying([byMail(server)], { http: pageSettings() });
    simulator.addTransfer(transferPlan({ trackingId: "t1", password: UNKNOWN }));
    await expect.poll(() => daemon.reports.join("\n")).toContain("mail: MAIL_UNREACHABLE");
    const page = await daemon.page;
    const troubles = async () => ((await readApi(`${page}api/status`)) as { troubles: unknown[] }).troubles;
    expect(await troubles()).toMatchObject([{ what: "notify", code: "MAIL_UNREACHABLE" }]);
    expect(await (await fetch(`${page}metrics`)).text()).toMatch(
      /inlet_notifications_total\{channel="mail",result="failed"\} [1-9]/,
    );
    simulator.addTransfer(transferPlan({ trackingId: "t2", password: UNKNOWN }));
    await expect.poll(() => daemon.reports.join("\n")).toContain("mail: MAIL_UNREACHABLE: 2 notices");
    await server.start();
    const [mail] = await server.expectMails(1);
    expect(mail?.headers["subject"]).toMatch(/2 transfers need a password$/);
    await expect.poll(troubles).toEqual([]);
  });
});

describe("a webhook", () => {
  test("is tested by the command, and named without its path; a missing one, or another number, is wrong usage", async () => {
    const receiver = await openReceiver(accept, refuse(403));
    const { config, rewrite } = await install(
      {},
      { notify: [{ webhook: { url: receiver.url, secret: SECRET } }] },
    );
    const good = await callCommand(["notify", "test", "--config", config]);
    expect([good.outcome, good.stdout]).toEqual(["fine", expect.stringMatching(/^ok\t1\twebhook at 127/)]);
    expect(JSON.parse(receiver.calls[0]?.body ?? "")).toMatchObject({ event: "test", notices: [] });
    const bad = await callCommand(["notify", "test", "--config", config]);
    expect([bad.outcome, bad.stdout]).toEqual(["unreachable", expect.stringContaining("status 403")]);
    expect(good.stdout + bad.stdout).not.toMatch(/in-the-query|hook\?/);
    const second = callCommand(["notify", "test", "--config", config, "--to", "2"]);
    await expect(second).rejects.toThrow("has no entry 2");
    await rewrite({});
    await expect(callCommand(["notify", "test", "--config", config])).rejects.toThrow("not configured");
  });

  test("of a chat system is called through a proxy, with a header whose value is nowhere shown", async () => {
    const receiver = await openReceiver(accept, accept, refuse(404));
    const proxy = await openProxy();
    const headers = [{ name: "X-Gateway", value: { env: "GATEWAY_TOKEN" } }];
    const webhook = { url: receiver.url, headers, proxy: proxy.url };
    const entries = [
      { webhook: { ...webhook, format: "mattermost" } },
      { webhook: { ...webhook, format: "teams" } },
      { webhook: { ...webhook, format: "slack" } },
    ];
    const { config } = await install(
      {},
      { notify: entries, http: { publicUrl: "https://inlet.example.com" } },
    );
    const env = { GATEWAY_TOKEN: "Gateway-Token-7" };
    const { outcome, stdout, stderr } = await callCommand(["notify", "test", "--config", config], env);
    expect(outcome).toBe("unreachable");
    expect(stdout).toMatch(/^ok\t1\t.*\nok\t2\t.*\nfailed\t3\t.*status 404/);
    expect(stdout + stderr).not.toMatch(/Gateway-Token|in-the-query/);
    expect(receiver.calls).toHaveLength(3);
    expect(proxy.asked).toHaveLength(3);
    for (const { headers, body } of receiver.calls) {
      expect(headers["x-gateway"]).toBe("Gateway-Token-7");
      expect(body).toContain("This is a test. Notifications arrive here.");
      expect(body).toContain("https://inlet.example.com");
    }
  });
});

describe("a daemon notifies of", () => {
  test("transfers that need a password, are quarantined, gone, refused or about to expire", async () => {
    const receiver = await openReceiver(accept);
    const { simulator } = await notifying([byWebhook(receiver.url)]);
    simulator.addTransfer(
      transferPlan({ trackingId: "password", password: UNKNOWN, expiresInSeconds: 90_000 }),
    );
    simulator.addTransfer(
      transferPlan({ trackingId: "wrong", files: [{ name: "a", text: "a", csvChecksum: "wrong" }] }),
    );
    simulator.addTransfer(transferPlan({ trackingId: "soon", password: UNKNOWN, expiresInSeconds: 3_600 }));
    simulator.addTransfer(transferPlan({ trackingId: "revoked", password: UNKNOWN }));
    await expect.poll(() => notifiedOf(receiver)).toContain("password revoked");
    simulator.revoke("revoked");
    const does = { kind: "error", status: 403 } as const;
    simulator.addFault({ on: "info", transfer: "refused", times: "always", does });
    simulator.addTransfer(transferPlan({ trackingId: "refused" }));
    const expected = [
      "expiring soon",
      "gone revoked",
      "password password",
      "password revoked",
      "password soon",
      "quarantined wrong",
      "refused refused",
    ];
    await expect.poll(() => notifiedOf(receiver).toSorted()).toEqual(expected);
    await someTime();
    expect(notifiedOf(receiver).toSorted()).toEqual(expected);
  });

  test("only the kinds and mailboxes that are chosen", async () => {
    const [some, theirs] = [await openReceiver(accept), await openReceiver(accept)];
    const simulator = await openTestSimulator();
    const other = mailboxSettings(simulator, { name: "other", email: "other@example.com" });
    const notify = [
      byWebhook(some.url, { on: ["quarantined"] }),
      byWebhook(theirs.url, { mailboxes: ["OTHER@*"] }),
    ];
    startDaemon(await daemonSettings([mailboxSettings(simulator), other], { notify }));
    const files = [{ name: "a", text: "a", csvChecksum: "wrong" as const }];
    simulator.addTransfer(transferPlan({ trackingId: "mine", password: UNKNOWN }));
    simulator.addTransfer(transferPlan({ trackingId: "wrong", files }));
    simulator.addTransfer(
      transferPlan({ trackingId: "theirs", password: UNKNOWN, to: ["other@example.com"] }),
    );
    await expect.poll(() => notifiedOf(some)).toEqual(["quarantined wrong"]);
    await expect.poll(() => notifiedOf(theirs)).toEqual(["password theirs"]);
  });
});

describe("a restart", () => {
  test("repeats nothing, and `once` sends at its end", async () => {
    const receiver = await openReceiver(accept);
    const { simulator, daemon, settings } = await notifying([byWebhook(receiver.url)]);
    simulator.addTransfer(transferPlan({ trackingId: "t1", password: UNKNOWN }));
    await expect.poll(() => notifiedOf(receiver)).toEqual(["password t1"]);
    await daemon.stop();
    simulator.addTransfer(transferPlan({ trackingId: "t2", password: UNKNOWN }));
    await someTime();
    const [entry] = settings.notify ?? [];
    const notify = entry === undefined ? [] : [{ ...entry, gatherMs: 3_600_000 }];
    const once = startDaemon({ ...settings, notify }, { mode: "once" });
    await once.outcome;
    expect(notifiedOf(receiver)).toEqual(["password t1", "password t2"]);
    const files = await readdir(join(settings.work, "notify"));
    expect(files.filter((name) => name.endsWith(".json"))).toHaveLength(1);
  });

  test("is not needed for new settings, and a refused configuration is notified, and its correction", async () => {
    const receiver = await openReceiver(accept);
    const { config, rewrite } = await install();
    const notify = [{ webhook: { url: receiver.url, secret: SECRET }, gather: "200ms", every: "200ms" }];
    const daemon = startRun(config);
    const { logged } = daemon;
    await expect.poll(logged).toContain('"msg":"ready"');
    await rewrite({ notify });
    await expect.poll(logged).toContain("the configuration was reloaded");
    await rewrite({ notify, limits: { transfers: "many" } });
    await expect.poll(() => groupsOf(receiver)).toMatchObject([{ kind: "configuration", over: false }]);
    await rewrite({ notify });
    await expect.poll(() => groupsOf(receiver)).toMatchObject([{}, { kind: "configuration", over: true }]);
    expect(logged()).toContain('"msg":"notified"');
    await daemon.stop();
  });
});

/** A daemon with one mailbox and these notifications. */
async function notifying(notify: readonly ChannelSettings[], given: Partial<Settings> = {}) {
  const simulator = await openTestSimulator();
  const settings = await daemonSettings([mailboxSettings(simulator)], { ...given, notify });
  const daemon = startDaemon(settings);
  return { simulator, daemon, settings };
}

function mailKeys(port: number) {
  return {
    to: ["ops@example.com"],
    from: "inlet@example.com",
    server: `smtp://127.0.0.1:${port}`,
    tls: "required" as string | undefined,
    ca: join(TLS_FOLDER, "ca.crt") as string | undefined,
    user: LOGIN.user,
    password: LOGIN.password,
    timeout: "10s",
  };
}

/** Long enough for messages that must not come. */
function someTime(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 1_500));
}

const PACKAGES = ["exim4-daemon-light", "libidn12", "libnss-wrapper"];
/** Of `nobody`, where the tests run as root. */
const NOBODY = 65_534;

interface Mail {
  /** The whole message. */
  readonly source: string;
  /** By name in lower case; unfolded. */
  readonly headers: Readonly<Record<string, string>>;
  /** Decoded. */
  readonly text: string;
  /** Recipients of the envelope. */
  readonly to: string;
}

/**
 * A real mail server: Exim from Debian's packages, without root, on ports of this machine. It offers STARTTLS, TLS from
 * the first byte at `tlsPort`, and a login over TLS. It refuses `refused@…`, defers `later@…`, and keeps all other mails as
 * files. `ca`: the authority of its certificate.
 */
async function openMailServer() {
  const folder = await makeFolder();
  const { root, libraries } = await unpackPackages(PACKAGES);
  const uid = process.getuid?.() || NOBODY;
  const [port, tlsPort] = [await freePort(), await freePort()];
  const path = (name: string) => join(folder, name);
  for (const name of ["spool", "mail", "log"]) await mkdir(path(name));
  // The copy is not set-user-ID: it stays the user that runs it.
  await copyFile(join(root, "usr/sbin/exim4"), path("exim"));
  const files = {
    "exim.conf": configuration(folder, port, tlsPort),
    "server.crt": SERVER.cert,
    "server.key": SERVER.key,
    passwd: `root:x:0:0::/:/bin/sh\nDebian-exim:x:${uid}:${uid}::/:/bin/sh\n`,
    group: `root:x:0:\nDebian-exim:x:${uid}:\nmail:x:8:\n`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(path(name), text, { mode: 0o600 });
  for (const name of await readdir(folder)) {
    if (uid === NOBODY) await chown(path(name), uid, uid);
  }
  if (uid === NOBODY) await chown(folder, uid, uid);
  await chmod(path("exim"), 0o700);
  const env = {
    PATH: "/usr/bin:/bin",
    LD_LIBRARY_PATH: libraries.join(":"),
    // Exim wants to know its user, which this machine may lack.
    LD_PRELOAD: "libnss_wrapper.so",
    NSS_WRAPPER_PASSWD: path("passwd"),
    NSS_WRAPPER_GROUP: path("group"),
  };
  let stopRunning = async () => {};
  const start = async () => {
    const exim = spawn(path("exim"), ["-C", path("exim.conf"), "-bdf", "-q1s"], {
      env,
      ...(uid === NOBODY ? { uid, gid: uid } : {}),
      stdio: ["ignore", "ignore", "pipe"],
    });
    let output = "";
    exim.stderr.on("data", (chunk: Buffer) => {
      output = `${output}${chunk}`.slice(-10_000);
    });
    const gone = once(exim, "exit");
    stopRunning = async () => {
      exim.kill("SIGKILL");
      await gone;
    };
    await expect.poll(async () => `${output}${await read("log/main")}`).toMatch(/daemon started/);
  };
  const read = (name: string) => readFile(path(name), "utf8").catch(() => "");
  onTestFinished(() => stopRunning());
  await start();
  /** All mails so far, in the order of their arrival. */
  const mails = async () => {
    const names = await readdir(path("mail/new")).catch(() => []);
    const sources = await Promise.all(names.toSorted(byArrival).map((name) => read(`mail/new/${name}`)));
    return sources.map(parseMail);
  };
  return {
    port,
    tlsPort,
    ca: CA,
    mails,
    /** Waits until there are so many. */
    async expectMails(count: number) {
      await expect.poll(async () => (await mails()).length).toBe(count);
      return mails();
    },
    log: () => read("log/main"),
    kill: () => stopRunning(),
    async start() {
      await writeFile(path("log/main"), "");
      if (uid === NOBODY) await chown(path("log/main"), uid, uid);
      await start();
    },
  };
}

function configuration(folder: string, port: number, tlsPort: number): string {
  const { user, password } = LOGIN;
  return `exim_path = ${folder}/exim
keep_environment = ^LD_ : ^NSS_WRAPPER_
primary_hostname = mail.example.com
daemon_smtp_ports = ${port} : ${tlsPort}
tls_on_connect_ports = ${tlsPort}
local_interfaces = 127.0.0.1
spool_directory = ${folder}/spool
log_file_path = ${folder}/log/%s
pid_file_path = ${folder}/exim.pid
tls_advertise_hosts = *
tls_certificate = ${folder}/server.crt
tls_privatekey = ${folder}/server.key
deliver_drop_privilege = true
rfc1413_hosts =
acl_smtp_rcpt = recipient
acl_smtp_mail = sender
begin acl
sender:
  deny senders = refused@example.com
       message = this sender is not welcome
  accept
recipient:
  deny local_parts = refused
       message = no such recipient
  defer local_parts = later
        message = try again later
  accept
begin routers
all:
  driver = accept
  transport = store
begin transports
store:
  driver = appendfile
  directory = ${folder}/mail
  maildir_format
  create_directory
  batch_max = 100
  envelope_to_add
begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = \${if and{{eq{$auth2}{${user}}}{eq{$auth3}{${password}}}}}
  server_advertise_condition = \${if def:tls_in_cipher}
`;
}

/** Names begin with the seconds, then have the microseconds. */
function byArrival(a: string, b: string): number {
  const key = (name: string) => {
    const [, seconds = "", micros = ""] =
      /^(\d+)\.[^.]*?M(\d+)/.exec(name) ?? /^(\d+)\.H(\d+)/.exec(name) ?? [];
    return Number(seconds) * 1e6 + Number(micros);
  };
  return key(a) - key(b);
}

function parseMail(source: string): Mail {
  const [head = "", ...body] = source.split(/\r?\n\r?\n/);
  const lines = head.replace(/\r?\n[ \t]+/g, " ").split(/\r?\n/);
  const headers = Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(":")).toLowerCase(),
      line.slice(line.indexOf(":") + 1).trim(),
    ]),
  );
  return {
    source,
    headers,
    text: decode(body.join("\n\n"), headers["content-transfer-encoding"] ?? ""),
    to: headers["envelope-to"] ?? "",
  };
}

function decode(body: string, encoding: string): string {
  if (encoding !== "quoted-printable") return body;
  const bytes = body
    .replace(/=\r?\n/g, "")
    .replace(/=([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1").toString("utf8");
}
