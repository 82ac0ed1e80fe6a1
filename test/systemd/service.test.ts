// @module-tag system
/** The units in systemd/, installed by the commands of docs/installing.md, under a real systemd. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { installProgram } from "../support/debian.ts";
import { installPackage } from "../support/package.ts";
import { runCommand } from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { MAILBOX } from "../support/settings.ts";
import {
  addFault,
  addTransfer,
  asked,
  blockOf,
  blocksOf,
  CLIENT_ID,
  deliveries,
  INBOX,
  logOf,
  PASSWORD,
  property,
  SERVICE,
  startService,
  waitFor,
} from "./inlet.ts";
import { bootMachine, type Machine } from "./machine.ts";

const folder = await mkdtemp(join(tmpdir(), "inlet-package-"));
let prefix: Promise<string> | undefined;

afterAll(() => rm(folder, { recursive: true, force: true }));

describe("inlet.service", () => {
  test("is ready after a first poll, delivers, reports its status, and stops in time", async () => {
    const machine = await bootInlet();
    const units = ["inlet.service", "inlet-once.service", "inlet-once.timer"];
    const verify = ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no"];
    expect(await machine.run(...verify, ...units)).toBe("");
    const examined = await machine.sh(blockOf("systemd-doctor"));
    expect(examined).toContain(`ok\tservice\t${MAILBOX}\tverified until`);
    // doctor warns about the overlay of this machine, of which each writable folder is a mount, and about nothing else.
    expect(examined.match(/^(warning|failed).*$/gm)).toEqual([
      expect.stringContaining("overlay, mounted at /srv/inbox"),
      expect.stringContaining("overlay, mounted at /var/lib/inlet"),
    ]);
    expect(await machine.sh(blockOf("systemd-start"))).toContain("Active: active (running)");
    expect(await asked(machine, "received")).toBeGreaterThan(0);
    await waitFor(machine, "t1");
    expect(await machine.run("ls", `${INBOX}/t1`)).toContain("a.txt");
    await expect
      .poll(() => property(machine, "StatusText"))
      .toMatch(/^1 mailbox is polled; last delivery \d{4}-/);
    const running = await machine.sh(`install -d /run/inlet; ${blockOf("systemd-doctor")}`);
    expect(running).toContain(`ok\tdaemon\t${MAILBOX}\tlast polled`);
    expect(await machine.run("stat", "-c", "%U", "/run/inlet")).toBe("inlet\n");
    // The commands of the page need no secret.
    expect(await machine.run("inlet", "status")).toContain("All is well");
    expect(await machine.run("runuser", "-u", "inlet", "--", "inlet", "status")).toContain("All is well");
    expect(await machine.sh("stat -c '%U %a' /run/inlet/*.sock")).toBe("inlet 600\n");
    expect(await machine.sh("inlet status --health 2>&1")).toContain('"ready":true');

    await machine.run("systemctl", "stop", "inlet");
    expect(await property(machine, "Result")).toBe("success");
    expect(await logOf(machine)).toMatch(/"msg":"stopping".*"msg":"stopped"/s);
  });

  test("gets its secrets as credentials only, and writes only to its own folders", async () => {
    const machine = await bootInlet();
    await machine.sh("chgrp games /srv/inbox; chmod 2770 /srv/inbox; touch /marker");
    await machine.run("systemctl", "start", "inlet");
    await waitFor(machine, "t1");
    const pid = await property(machine, "MainPID");
    const owner = await machine.run("stat", "-c", "%U %G", `${INBOX}/t1/a.txt`);
    expect(owner.trim()).toBe("inlet games");
    const written = await machine.sh(
      "find / -xdev -newer /marker -type f -user inlet -not -path '/proc/*' -not -path '/sys/*' | sed -E 's#^(/[^/]+/[^/]+/?[^/]*).*#\\1#' | sort -u",
    );
    for (const path of written.trim().split("\n")) expect(path).toMatch(/^\/(srv\/inbox|var\/lib\/inlet)/);
    const seen = await machine.sh(`cat /proc/${pid}/environ /proc/${pid}/cmdline | tr '\\0' '\\n'`);
    expect(`${seen}${await logOf(machine)}`).not.toContain(PASSWORD);
    expect((await asInlet(machine, pid, "cat", "/etc/inlet/secrets/supplier")).exitCode).not.toBe(0);
    for (const place of ["/etc/inlet/x", "/opt/inlet/x", "/usr/x", "/root/x", "/var/lib/x"]) {
      expect((await asInlet(machine, pid, "touch", place)).exitCode, place).not.toBe(0);
    }
    expect((await asInlet(machine, pid, "touch", "/srv/inbox/x")).exitCode).toBe(0);
  });

  test("gives files to a group, and delivers to a mailbox's own inbox, with the drop-ins of the page", async () => {
    const machine = await bootInlet();
    const dropIn = (lines: string) =>
      machine.write("/etc/systemd/system/inlet.service.d/own.conf", `[Service]\n${lines}\n`);
    await machine.sh("install -d -o inlet -g inlet /srv/all /srv/all/inbox /srv/all/own");
    const keys = settings()
      .replace("inbox: /srv/inbox", "inbox: /srv/all/inbox\nwork: /srv/all/.inlet\nhandoff: { group: games }")
      .replace(`email: ${MAILBOX}`, `email: ${MAILBOX}\n    inbox: /srv/all/own`);
    await machine.write("/etc/inlet/inlet.yaml", keys);
    // Each path is a mount of its own, and the group is hidden.
    await dropIn("ReadWritePaths=/srv/all/inbox /srv/all/own /srv/all/.inlet");
    await machine.sh("install -d -o inlet -g inlet -m 700 /srv/all/.inlet; systemctl daemon-reload");
    const refused = await machine.attempt("bash", "-c", blockOf("systemd-doctor"));
    expect(refused.stdout).toContain("failed\tfolders\tgroup games");
    expect(refused.stdout).toContain(`failed\tfile system\tsame mount, inbox of ${MAILBOX}`);
    expect((await machine.attempt("systemctl", "start", "inlet")).exitCode).not.toBe(0);
    expect(await logOf(machine)).toContain("INBOX_APART");
    await dropIn("ReadWritePaths=/srv/all");
    await machine.sh("systemctl daemon-reload; systemctl reset-failed inlet");
    expect((await machine.attempt("systemctl", "start", "inlet")).exitCode).not.toBe(0);
    expect(await logOf(machine)).toContain("GROUP_REFUSED");
    await dropIn(
      "ReadWritePaths=/srv/all\nSupplementaryGroups=games\nPrivateUsers=no\nSystemCallFilter=@chown",
    );
    await machine.sh("systemctl daemon-reload; systemctl reset-failed inlet");
    const examined = await machine.sh(blockOf("systemd-doctor"));
    expect(examined).toContain("ok\tfolders\tgroup games");
    expect(examined).not.toContain("failed\t");
    await machine.run("systemctl", "start", "inlet");
    const delivered = `/srv/all/own/${MAILBOX}/anna@supplier.example/t1`;
    await expect.poll(() => machine.attempt("test", "-e", delivered).then((it) => it.exitCode)).toBe(0);
    const paths = [`${delivered}/..`, delivered, `${delivered}/a.txt`];
    const owners = await machine.run("stat", "-c", "%U:%G", ...paths);
    expect(new Set(owners.trim().split("\n"))).toEqual(new Set(["inlet:games"]));
  });

  test("delivers only what ClamAV accepts, by the recipe of docs/consuming.md", async () => {
    await installProgram("clamd", "clamav-daemon");
    await installProgram("clamdscan", "clamdscan");
    const machine = await bootInlet();
    // Not in one piece, so that no scanner finds it here.
    const eicar = ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$", "EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"].join("");
    // The databases of ClamAV have to be downloaded: a signature of our own replaces them.
    await machine.write("/var/lib/clamav/own.ndb", `Own.Eicar:0:0:${Buffer.from(eicar).toString("hex")}\n`);
    for (const unit of ["service", "socket"]) {
      const dropIn = `/etc/systemd/system/clamav-daemon.${unit}.d/own.conf`;
      await machine.write(dropIn, "[Unit]\nConditionPathExistsGlob=\n");
    }
    await machine.sh("chown -R clamav: /var/lib/clamav; systemctl daemon-reload");
    const page = readFileSync(join(ROOT, "docs/consuming.md"), "utf8");
    const [, recipe = ""] = /<!-- clamav -->\n```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    expect(recipe).toContain("clamdscan");
    await machine.write("/etc/inlet/inlet.yaml", `${settings()}${recipe}  memory: 512MiB\n`);
    const examined = await machine.sh(blockOf("systemd-doctor"));
    expect(examined).toContain("ok\tconfiguration\tcheck.command\t/usr/bin/clamdscan is executable");
    expect(examined).toContain("ok\tconfiguration\tcheck.memory\t/usr/bin/prlimit is executable");

    // The scanner does not run yet.
    await machine.run("systemctl", "start", "inlet");
    await expect.poll(() => logOf(machine)).toContain('"reason":"check"');
    expect((await machine.attempt("test", "-e", `${INBOX}/t1`)).exitCode).not.toBe(0);
    await machine.run("systemctl", "start", "clamav-daemon.socket", "clamav-daemon.service");
    await expect.poll(() => machine.attempt("clamdscan", "--ping", "1").then((it) => it.exitCode)).toBe(0);
    // On a slow machine, the daemon has run the check again by itself.
    await machine.attempt("inlet", "retry", "t1");
    await waitFor(machine, "t1");

    await addTransfer(machine, "t2", [
      { name: "a.txt", text: "Hello" },
      { name: "eicar.com", text: eicar },
    ]);
    await expect.poll(() => logOf(machine)).toContain('"msg":"quarantined"');
    const shown = await machine.run("inlet", "show", "t2");
    expect(shown).toContain("The check refused the transfer: eicar.com: Own.Eicar.UNOFFICIAL FOUND.");
    expect((await machine.attempt("test", "-e", `${INBOX}/t2`)).exitCode).not.toBe(0);
  });

  test("starts a consumer after each delivery, by the units of docs/recipes.md", async () => {
    await installProgram("jq", "jq");
    const machine = await bootInlet();
    const page = readFileSync(join(ROOT, "docs/recipes.md"), "utf8");
    const [, recipe = ""] = /<!-- arrived -->\n```yaml\n([\s\S]*?)```/.exec(page) ?? [];
    await machine.write("/etc/inlet/inlet.yaml", `${settings()}${recipe}`);
    const installing = readFileSync(join(ROOT, "docs/installing.md"), "utf8");
    const [, dropIn = ""] =
      /```\n(\[Service\]\nSupplementaryGroups=consumers\n[\s\S]*?)```/.exec(installing) ?? [];
    await machine.write("/etc/systemd/system/inlet.service.d/own.conf", dropIn);
    await machine.sh(blockOf("systemd-consumers"));
    const here = "cd /opt/inlet/lib/node_modules/inletd;";
    await machine.sh(`useradd --system consumer; ${here} ${blockOf("take-transfers-install")}`);
    await machine.write("/usr/local/bin/import-transfer", IMPORT);
    await machine.run("chmod", "755", "/usr/local/bin/import-transfer");
    await machine.sh(`${here} ${blockOf("take-transfers-units")}`);
    const units = ["service", "path", "timer"].map((kind) => `take-transfers.${kind}`);
    const verify = ["systemd-analyze", "verify", "--recursive-errors=no", "--man=no"];
    expect((await machine.attempt(...verify, ...units)).stderr).toBe("");
    const imported = async () => (await machine.sh("cat /srv/taken/imported || true")).trim().split("\n");

    await machine.run("systemctl", "start", "inlet");
    await expect.poll(imported).toEqual(["t1"]);
    expect((await machine.attempt("test", "-e", `${INBOX}/t1`)).exitCode).not.toBe(0);
    // A transfer that arrives while the consumer works is taken by the next run.
    await machine.run("touch", "/srv/taken/wait");
    await addTransfer(machine, "t2");
    await expect.poll(imported).toEqual(["t1", "t2"]);
    await addTransfer(machine, "t3");
    await waitFor(machine, "t3");
    await expect
      .poll(() => machine.attempt("test", "-e", "/srv/inbox/.arrived").then((it) => it.exitCode))
      .toBe(0);
    await machine.run("rm", "/srv/taken/wait");
    await expect.poll(imported).toEqual(["t1", "t2", "t3"]);

    // A killed run leaves a claimed folder; a lost event and a failed run are repeated by the timer.
    await expect.poll(() => property(machine, "ActiveState", "take-transfers")).toBe("inactive");
    await machine.run("touch", "/srv/taken/wait");
    await addTransfer(machine, "t4");
    await expect.poll(imported).toEqual(["t1", "t2", "t3", "t4"]);
    await machine.run("systemctl", "kill", "--signal=KILL", "take-transfers.service");
    await expect.poll(() => property(machine, "Result", "take-transfers")).toBe("signal");
    await machine.run("rm", "/srv/taken/wait");
    const soon = "[Timer]\nOnActiveSec=\nOnUnitInactiveSec=\nOnActiveSec=1s\nAccuracySec=100ms\n";
    await machine.write("/etc/systemd/system/take-transfers.timer.d/soon.conf", soon);
    await machine.sh("systemctl daemon-reload; systemctl restart take-transfers.timer");
    await expect.poll(() => machine.sh("ls /srv/taken/done | wc -l")).toBe("4\n");
    expect(await imported()).toEqual(["t1", "t2", "t3", "t4", "t4"]);
    expect(await machine.sh("ls /srv/taken/claimed; ls /srv/inbox/*/*")).toBe("");
    expect(await property(machine, "ActiveState", "take-transfers.path")).toBe("active");
    await expect.poll(() => machine.run("inlet", "status")).toContain("All is well");

    // From the command line, as the same user.
    await addTransfer(machine, "t5");
    await expect.poll(imported).toContain("t5");
    await machine.sh(`runuser -u consumer -G consumers -- ${blockOf("take-transfers")}`);
    await expect.poll(() => machine.sh("ls /srv/taken/done | wc -l")).toBe("5\n");
  });

  test("reloads its configuration, refuses an invalid one and continues, but does not start with it", async () => {
    const machine = await bootInlet();
    await machine.run("systemctl", "start", "inlet");
    await waitFor(machine, "t1");
    await machine.write("/etc/inlet/inlet.yaml", settings().replace("2s", "3s"));
    await machine.run("systemctl", "reload", "inlet");
    await expect.poll(() => logOf(machine)).toContain("the configuration was reloaded");
    await machine.write("/etc/inlet/inlet.yaml", "inbox: [");
    await machine.run("systemctl", "reload", "inlet");
    await expect.poll(() => logOf(machine)).toContain("the configuration was refused");
    await expect.poll(() => property(machine, "ActiveState")).toBe("active");
    await addTransfer(machine, "t2");
    await waitFor(machine, "t2");

    // A start with it fails once, and is not retried.
    expect((await machine.attempt("systemctl", "restart", "inlet")).exitCode).not.toBe(0);
    expect(await property(machine, "ExecMainStatus")).toBe("2");
    expect(await property(machine, "NRestarts")).toBe("0");
    expect(await logOf(machine)).toMatch(/"level":"fatal".*inlet\.yaml/);
    // The journal knows the priority of each line, and keeps it out of the text.
    const problems = (
      await machine.run("journalctl", "-u", "inlet", "-t", "inlet", "-p", "warning", "-o", "cat")
    )
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { level: string; msg: string });
    const refused = "error the configuration was refused: the old one stays in force";
    const ended = "fatal ended by a fault";
    // On a slow machine the daemon notices the change itself, before it is asked to reload: then it reports both.
    expect([
      [refused, ended],
      [refused, refused, ended],
    ]).toContainEqual(problems.map(({ level, msg }) => `${level} ${msg}`));
  });

  test("is restarted after kill -9, and delivers nothing twice", async () => {
    const machine = await bootInlet();
    await machine.run("systemctl", "start", "inlet");
    await waitFor(machine, "t1");
    await addFault(machine, {
      on: "file",
      file: "large.bin",
      does: { kind: "drip", bytes: 200_000, pauseMs: 100 },
    });
    // Large enough to be hashed on another thread, which the unit's limits must allow.
    await addTransfer(machine, "t2", [{ name: "large.bin", generate: { bytes: 5_000_000 } }]);
    await expect.poll(() => asked(machine, "file")).toBeGreaterThan(1);
    const before = await property(machine, "MainPID");
    await machine.run("kill", "-9", before);
    // systemd may not have noticed the end yet, or not started the next process.
    await expect.poll(async () => ["0", before].includes(await property(machine, "MainPID"))).toBe(false);
    await expect.poll(() => property(machine, "ActiveState")).toBe("active");
    await waitFor(machine, "t2");
    expect((await machine.run("ls", INBOX)).trim().split("\n")).toEqual(["t1", "t2"]);
    await expect.poll(() => deliveries(machine)).toEqual(["t1", "t2"]);
  });

  test("is restarted by the watchdog when its event loop is blocked", async () => {
    const machine = await bootInlet("[Service]\nWatchdogSec=3s\n");
    await machine.run("systemctl", "start", "inlet");
    await waitFor(machine, "t1");
    const before = await property(machine, "MainPID");
    // Longer than the watchdog's time-out: it is fed.
    await new Promise((resolve) => setTimeout(resolve, 5_000));
    expect(await property(machine, "MainPID")).toBe(before);
    await machine.run("kill", "-USR1", before);
    await expect.poll(() => machine.attempt("node", "-e", BLOCK).then(({ exitCode }) => exitCode)).toBe(0);
    await expect.poll(() => property(machine, "NRestarts")).toBe("1");
    await expect.poll(() => property(machine, "ActiveState")).toBe("active");
    await addTransfer(machine, "t2");
    await waitFor(machine, "t2");
    await expect.poll(() => deliveries(machine)).toEqual(["t1", "t2"]);
  });
});

test("inlet-once.timer runs `inlet once` regularly", async () => {
  const machine = await bootInlet();
  const soon =
    "[Timer]\nOnCalendar=\nOnActiveSec=1s\nOnUnitInactiveSec=2s\nAccuracySec=100ms\nRandomizedDelaySec=0\n";
  await machine.write("/etc/systemd/system/inlet-once.timer.d/soon.conf", soon);
  await machine.run("systemctl", "daemon-reload");
  await machine.sh(blockOf("systemd-once"));
  await waitFor(machine, "t1");
  await addTransfer(machine, "t2");
  await waitFor(machine, "t2");
  await expect.poll(() => property(machine, "Result", "inlet-once")).toBe("success");
  await expect.poll(() => deliveries(machine)).toEqual(["t1", "t2"]);
});

test("an update and a downgrade lose and repeat nothing; removal leaves the deliveries", async () => {
  const machine = await bootInlet();
  await machine.run("systemctl", "start", "inlet");
  await waitFor(machine, "t1");
  const manifest = "/opt/inlet/lib/node_modules/inletd/package.json";
  const kept = await machine.run("cat", manifest);
  for (const [text, trackingId] of [
    [kept.replace(/"version": "[^"]*"/, '"version": "9.9.9"'), "t2"],
    [kept, "t3"],
  ] as const) {
    await machine.write(manifest, text);
    await machine.run("systemctl", "restart", "inlet");
    expect(await machine.run("/opt/inlet/bin/inlet", "--version")).toBe(`${JSON.parse(text).version}\n`);
    await addTransfer(machine, trackingId);
    await waitFor(machine, trackingId);
  }
  await expect.poll(() => deliveries(machine)).toEqual(["t1", "t2", "t3"]);

  await machine.sh(blockOf("systemd-remove"));
  expect((await machine.attempt("systemctl", "cat", "inlet")).exitCode).not.toBe(0);
  expect((await machine.run("ls", INBOX)).trim().split("\n")).toEqual(["t1", "t2", "t3"]);
});

describe("the units", () => {
  test.each(["inlet.service", "inlet-once.service"])("have a low exposure score: %s", async (unit) => {
    const args = ["security", "--offline=true", "--threshold=15", join(ROOT, "systemd", unit)];
    expect((await runCommand("systemd-analyze", args)).stdout).toMatch(
      /Overall exposure level .*: [01]\.[0-9] /,
    );
    expect((await runCommand("systemd-analyze", args)).exitCode).toBe(0);
  });

  test("allow `inlet once` the same as the daemon", () => {
    const allowed = (unit: string) => {
      const text = readFileSync(join(ROOT, "systemd", unit), "utf8");
      return text.slice(text.indexOf("\nUser=")).split("\n[Install]")[0]?.trim();
    };
    expect(allowed("inlet-once.service")).toBe(allowed("inlet.service"));
  });
});

/** Notes the tracking-id, and waits where the test wants it. */
const IMPORT = `#!/bin/sh
jq -r .trackingId "$1/transfer.json" >> /srv/taken/imported
while [ -e /srv/taken/wait ]; do sleep 0.1; done
`;

/** Blocks the event loop of a process through its inspector, which SIGUSR1 has opened. */
const BLOCK = `
  const [{ webSocketDebuggerUrl }] = await (await fetch("http://127.0.0.1:9229/json")).json();
  const socket = new WebSocket(webSocketDebuggerUrl);
  socket.onopen = () => {
    socket.send(JSON.stringify({ id: 1, method: "Runtime.evaluate", params: { expression: "for (;;);" } }));
    setTimeout(() => process.exit(0), 200);
  };`;

/** Once for all tests, because it takes longer than a boot. */
function installed(): Promise<string> {
  prefix ??= installPackage(folder);
  return prefix;
}

/** A machine with Inlet installed and configured, and a simulated service with one transfer. */
async function bootInlet(dropIn = ""): Promise<Machine> {
  const machine = await bootMachine({
    "opt/inlet": await installed(),
    "usr/local/bin/node": process.execPath,
  });
  await machine.sh(blocksOf("systemd").join("\n"));
  await machine.write("/etc/inlet/inlet.yaml", settings());
  await machine.sh(blockOf("systemd-configured"));
  if (dropIn !== "") await machine.write("/etc/systemd/system/inlet.service.d/test.conf", dropIn);
  await startService(machine, "/opt/inlet/bin/inlet");
  await machine.run("systemctl", "daemon-reload");
  return machine;
}

function settings(): string {
  return `service: { baseUrl: "${SERVICE}", clientId: ${CLIENT_ID} }
inbox: /srv/inbox
limits: { minFreeSpace: 1KiB }
mailboxes:
  - email: ${MAILBOX}
    poll: 2s
    passwords: [{ sender: "*", password: { credential: secret_supplier } }]
`;
}

/** In the service's sandbox, as its user. */
function asInlet(machine: Machine, pid: string, ...command: readonly string[]) {
  const user = ["setpriv", "--reuid=inlet", "--regid=inlet", "--clear-groups", "--"];
  return machine.attempt("nsenter", "-t", pid, "-m", "--", ...user, ...command);
}
