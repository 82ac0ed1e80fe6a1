/**
 * A real mail server: Exim from Debian's packages, without root, on ports of this machine. It offers STARTTLS, TLS from
 * the first byte, and a login over TLS. It refuses `refused@…`, defers `later@…`, and keeps all other mails as files.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { unpackPackages } from "./debian.ts";
import { makeFolder } from "./program.ts";
import { freePort } from "./redis-server.ts";
import { LOGIN } from "./settings.ts";
import { CA, SERVER } from "./tls.ts";

const PACKAGES = ["exim4-daemon-light", "libidn12", "libnss-wrapper"];
/** Of `nobody`, where the tests run as root. */
const NOBODY = 65_534;

export interface MailServer {
  readonly port: number;
  /** TLS from the first byte. */
  readonly tlsPort: number;
  /** The authority of its certificate. */
  readonly ca: string;
  /** All mails so far, in the order of their arrival. */
  mails(): Promise<Mail[]>;
  /** Waits until there are so many. */
  expectMails(count: number): Promise<Mail[]>;
  log(): Promise<string>;
  kill(): Promise<void>;
  start(): Promise<void>;
}

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

export async function openMailServer(): Promise<MailServer> {
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
    async expectMails(count) {
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
