// @module-tag system
/** The Debian package: installed, configured, updated, removed and purged on a machine without any other Node. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { arch, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import packageJson from "../../package.json" with { type: "json" };
import { buildDeb } from "../../packaging/deb.ts";
import { ARCHITECTURES, NODE_PACKAGES, NODE_VERSION } from "../../packaging/node.ts";
import { installProgram } from "../support/debian.ts";
import { runCommand, runNpm } from "../support/program.ts";
import { MAILBOX } from "../support/settings.ts";
import {
  addTransfer,
  blockOf,
  CLIENT_ID,
  control,
  deliveries,
  INBOX,
  PASSWORD,
  property,
  SERVICE,
  startService,
  waitFor,
} from "./inlet.ts";
import { bootMachine, type Machine } from "./machine.ts";

const run = promisify(execFile);
const ARCHITECTURE = arch() === "arm64" ? "arm64" : "amd64";
const VERSION = packageJson.version;
const NEXT = "99.0.0";

/** Holds this version's package, the next one's, and `content`, this one's content. */
const folder = await mkdtemp(join(tmpdir(), "inlet-deb-test-"));
const content = join(folder, "content");
const packages = join(folder, "packages");
let deb = "";

beforeAll(async () => {
  await mkdir(packages);
  deb = await buildDeb({ architecture: ARCHITECTURE, folder: packages, compression: "gzip" });
  await run("dpkg-deb", ["--raw-extract", deb, content]);
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test.each(ARCHITECTURES)("the Node for %s is pinned by the hash of its version", async (architecture) => {
  const { name, integrity } = NODE_PACKAGES[architecture];
  // The registry may be busy.
  const ask = async () => {
    const { stdout } = await runNpm(["view", `${name}@${NODE_VERSION}`, "dist.integrity"], folder);
    return stdout.trim();
  };
  await expect.poll(ask, { interval: 1_000 }).toBe(integrity);
});

test("two builds make the same bytes", async () => {
  const again = join(folder, "again");
  await mkdir(again);
  const other = await buildDeb({ architecture: ARCHITECTURE, folder: again, compression: "gzip" });
  expect((await readFile(other)).equals(await readFile(deb))).toBe(true);
});

test("lintian finds no error and no warning", async () => {
  const lintian = await installProgram("lintian", "lintian");
  // Examining the real Node takes half a minute.
  const node = join(content, "usr/lib/inlet/bin/node");
  await rename(node, join(folder, "node"));
  await writeFile(node, "#!/bin/sh\n", { mode: 0o755 });
  const small = join(folder, "small.deb");
  await run("dpkg-deb", ["--root-owner-group", "-Zgzip", "--build", content, small]);
  await rename(join(folder, "node"), node);
  const { stdout, exitCode } = await runCommand(lintian, [
    ...["--allow-root", "--fail-on", "error,warning", "--suppress-tags", "md5sum-mismatch", small],
  ]);
  expect([stdout, exitCode]).toEqual(["", 0]);
});

test("installs, configures, delivers, updates, removes and purges; deliveries always stay", async () => {
  const next = await packNext();
  const machine = await bootMachine({ "opt/packages": packages });
  await machine.sh(PREPARE);
  const install = (block: string) => machine.sh(`cd /opt/packages; ${adapt(blockOf(block))} 2>&1`);

  expect(await install("deb-install")).toContain("Configure Inlet with: inlet init");
  expect(await machine.run("inlet", "version")).toContain(`Inlet ${VERSION}, Node ${NODE_VERSION},`);
  expect(await machine.run("systemctl", "is-enabled", "inlet")).toBe("enabled\n");
  expect(await property(machine, "ActiveState")).toBe("inactive");
  expect((await machine.attempt("systemctl", "is-enabled", "inlet-once.timer")).stdout).toBe("disabled\n");
  const units = ["inlet.service", "inlet-once.service", "inlet-once.timer"];
  expect(await machine.run("systemd-analyze", "verify", "--recursive-errors=no", "--man=no", ...units)).toBe(
    "",
  );
  expect(await machine.run("stat", "-c", "%A %U:%G", "/etc/inlet", "/srv/inbox")).toBe(
    "drwxr-x--- root:inlet\ndrwxr-x--- inlet:inlet\n",
  );
  expect(await machine.sh(COMPLETE_RE)).toBe("redeliver release resume retry\n");
  expect(
    await machine.sh("zcat /usr/share/man/man1/inlet-init.1.gz /usr/share/man/man5/inlet.yaml.5.gz"),
  ).toMatch(/\\-\\-client\\-id\\-file[\s\S]*service\.baseUrl/);

  await startService(machine, "inlet");
  const options = `--yes --base-url ${SERVICE} --mailbox ${MAILBOX} --inbox /srv/inbox --client-id-file -`;
  // The daemon may not read a file of root elsewhere, so init copies it.
  await machine.sh(`umask 077; printf %s '${PASSWORD}' > /root/supplier
    printf %s ${CLIENT_ID} | inlet init ${options} --password-file '*=/root/supplier'`);
  expect(await machine.run("stat", "-c", "%A %U:%G", ...WRITTEN)).toBe(
    "-rw-r----- root:inlet\n-rw------- root:root\n",
  );
  const configuration = await machine.run("cat", "/etc/inlet/inlet.yaml");
  expect(configuration).toContain("credential: secret_password-");
  expect(configuration).not.toContain("/root/supplier");
  expect(configuration).not.toContain(CLIENT_ID);
  const changed = `${configuration.replace("- email", "- poll: 2s\n    email")}limits: { minFreeSpace: 1KiB }\n`;
  await machine.write("/etc/inlet/inlet.yaml", changed);
  expect(await machine.sh(blockOf("deb-start"))).toContain(`ok\tservice\t${MAILBOX}\tverified until`);
  await waitFor(machine, "t1");
  await verifyAddress(machine);
  expect(await machine.run("inlet", "once", "--dry-run", "--unit", "inlet")).toBe("");
  const broken = await machine.attempt("sh", "-c", UNIT_WITH_MISSING_PATH);
  expect([broken.exitCode, broken.stderr]).toEqual([
    2,
    expect.stringContaining("systemd could not start it (exit code 226): a path of ReadWritePaths="),
  ]);

  await install("deb-update");
  expect(await machine.run("inlet", "--version")).toBe(`${NEXT}\n`);
  expect(await property(machine, "ActiveState")).toBe("active");
  expect(await machine.run("cat", "/etc/inlet/inlet.yaml")).toBe(changed);
  await addTransfer(machine, "t2");
  await waitFor(machine, "t2");
  await expect.poll(() => deliveries(machine)).toEqual(["t1", "t2"]);

  const dpkg = (...words: string[]) => machine.run("dpkg", ...words);
  await dpkg("--remove", "inlet");
  expect((await machine.attempt("systemctl", "cat", "inlet")).exitCode).not.toBe(0);
  expect((await machine.attempt("pgrep", "-u", "inlet")).exitCode).toBe(1);
  expect(await present(machine, [...WRITTEN, "/var/lib/inlet", "/usr/lib/inlet"])).toEqual([
    ...WRITTEN,
    "/var/lib/inlet",
  ]);
  // The service that was removed starts again with the package.
  await dpkg("--install", `/opt/packages/${next}`);
  expect(await property(machine, "ActiveState")).toBe("active");

  expect(await dpkg("--purge", "inlet")).toContain("The inbox with its deliveries stays");
  const places = [
    "/etc/inlet",
    "/var/lib/inlet",
    "/usr/lib/inlet",
    "/etc/systemd/system/multi-user.target.wants/inlet.service",
  ];
  expect(await present(machine, places)).toEqual([]);
  expect(await machine.run("ls", INBOX)).toBe("t1\nt2\n");
  expect(await machine.run("stat", "-c", "%U", `${INBOX}/t1`)).toBe("inlet\n");

  // Also an inbox in the state folder stays, and its owner with it.
  await machine.sh("mkdir /var/lib/inlet; mv /srv/inbox /var/lib/inlet/");
  await dpkg("--install", `/opt/packages/${next}`);
  await dpkg("--purge", "inlet");
  const moved = INBOX.replace("/srv", "/var/lib/inlet");
  expect(await machine.run("stat", "-c", "%U", `${moved}/t1`)).toBe("inlet\n");

  // So does an empty inbox of a mailbox.
  await machine.sh("rm -r /var/lib/inlet");
  await dpkg("--install", `/opt/packages/${next}`);
  await machine.sh("install -d -o inlet /srv/lab");
  await machine.write("/etc/inlet/inlet.yaml", "inbox: /srv/inbox\nmailboxes: [{ inbox: /srv/lab }]\n");
  await dpkg("--purge", "inlet");
  expect(await machine.run("stat", "-c", "%U", "/srv/lab")).toBe("inlet\n");

  await machine.sh("rm -r /srv/lab");
  await dpkg("--install", `/opt/packages/${next}`);
  await dpkg("--purge", "inlet");
  expect(await present(machine, [...places, "/srv/inbox"])).toEqual([]);
  expect((await machine.attempt("getent", "passwd", "inlet")).exitCode).toBe(2);
});

/** Only the Node of the package is there, and its scripts may start services. The rest saves time. */
const PREPARE = `rm -rf /usr/bin/node /usr/local/bin/node /usr/sbin/policy-rc.d
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin /var/lib/man-db/auto-update
echo force-unsafe-io > /etc/dpkg/dpkg.cfg.d/fast`;

const UNIT_WITH_MISSING_PATH = `folder=/run/systemd/system/inlet.service.d; mkdir -p $folder
printf '[Service]\\nReadWritePaths=/missing\\n' > $folder/missing.conf
systemctl daemon-reload; inlet doctor --unit inlet; code=$?
rm -r $folder; systemctl daemon-reload; exit $code`;

const WRITTEN = ["/etc/inlet/inlet.yaml", "/etc/inlet/secrets/client-id"];

/** The commands that bash offers for `inlet re`. */
const COMPLETE_RE = `source /usr/share/bash-completion/completions/inlet
COMP_WORDS=(inlet re) COMP_CWORD=1
_inlet inlet
echo $(printf '%s\\n' "\${COMPREPLY[@]}" | sort)`;

/** A mailed code, typed on a terminal as soon as the mail has arrived, with the client id that only the unit gets. */
async function verifyAddress(machine: Machine): Promise<void> {
  const code = async () => ((await control(machine, "mails")) as { code: string }[]).at(-1)?.code;
  const typed = "until [ -s /run/typed ]; do sleep 0.1; done; cat /run/typed";
  const verify = `inlet verify-address ${MAILBOX} --unit inlet`;
  const verified = machine.sh(`{ ${typed}; } | script -qec '${verify}' /dev/null`);
  await expect.poll(code).toBeDefined();
  await machine.write("/run/typed", `${await code()}\n`);
  expect(await verified).toContain(`${MAILBOX} is verified`);
}

/** This package with the next version, in the folder of packages. Returns its name. */
async function packNext(): Promise<string> {
  for (const [file, before, after] of [
    ["DEBIAN/control", `Version: ${VERSION}`, `Version: ${NEXT}`],
    ["usr/lib/inlet/package.json", `"version": "${VERSION}"`, `"version": "${NEXT}"`],
  ] as const) {
    const path = join(content, file);
    await writeFile(path, (await readFile(path, "utf8")).replace(before, after));
  }
  const name = `inlet_${NEXT}-1_${ARCHITECTURE}.deb`;
  await run("dpkg-deb", ["--root-owner-group", "-Znone", "--build", content, join(packages, name)]);
  return name;
}

/** A command of the page, on this machine and without questions. */
function adapt(script: string): string {
  return script
    .replaceAll("_amd64.deb", `_${ARCHITECTURE}.deb`)
    .replaceAll("inlet_NEW-1", `inlet_${NEXT}-1`)
    .replace("apt install", "apt-get install -y")
    .trim();
}

async function present(machine: Machine, paths: readonly string[]): Promise<string[]> {
  const found = await machine.sh(
    `for it in ${paths.join(" ")}; do if [ -e $it ] || [ -L $it ]; then echo $it; fi; done`,
  );
  return found.split("\n").filter(Boolean);
}
