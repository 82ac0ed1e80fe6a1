/** A mail server with messages in one mailbox, and mbsync to fetch them: it gives the same guarantees for mail. */
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../../test/support/redis-server.ts";
import { type Bench, runOthers } from "./bench.ts";
import { untilItListens } from "./nginx.ts";
import type { Spent } from "./timing.ts";

/** The user nobody. */
const MAIL_UID = 65_534;
const LINE_CHARACTERS = 76;

/** Dispose it to stop the server. */
export interface MailServer extends AsyncDisposable {
  readonly port: number;
  readonly messages: number;
}

/** `bytes`: the approximate size of each message. */
export async function startMailServer(bench: Bench, messages: number, bytes: number): Promise<MailServer> {
  const folder = join(bench.folder, "dovecot");
  const maildir = join(folder, "mail");
  for (const name of ["", "cur", "new", "tmp"]) mkdirSync(join(maildir, name), { recursive: true });
  for (let number = 0; number < messages; number++) {
    writeFileSync(join(maildir, "new", `${number}.bench`), makeMessage(number, bytes));
  }
  // Dovecot does not serve root's mail.
  for (const path of [maildir, ...["cur", "new", "tmp"].map((name) => join(maildir, name))]) {
    chownSync(path, MAIL_UID, MAIL_UID);
  }
  for (const name of readdirSync(join(maildir, "new")))
    chownSync(join(maildir, "new", name), MAIL_UID, MAIL_UID);
  for (const path of [bench.folder, join(bench.folder, ".."), folder]) chmodSync(path, 0o755);
  const port = await freePort();
  const config = join(folder, "dovecot.conf");
  writeFileSync(config, describeServer(folder, maildir, port));
  const server = spawn(bench.tools.dovecot, ["-F", "-c", config], { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  server.stderr.on("data", (text: Buffer) => {
    errors = `${errors}${text}`.slice(-10_000);
  });
  const ended = once(server, "exit");
  await untilItListens(server, port, () => errors);
  return {
    port,
    messages,
    async [Symbol.asyncDispose]() {
      server.kill("SIGTERM");
      await ended;
    },
  };
}

/** Fetches all messages into a folder, each synced to the disk. */
export function runMbsync(bench: Bench, { port, messages }: MailServer): Promise<Spent> {
  return runOthers(
    bench,
    (folder) => {
      const config = join(folder, "mbsyncrc");
      mkdirSync(join(folder, "mail"));
      writeFileSync(config, describeClient(folder, port), { mode: 0o600 });
      return [{ program: bench.tools.mbsync, args: ["-q", "-c", config, "bench"] }];
    },
    (folder) => {
      const fetched = ["cur", "new"].flatMap((name) => readdirSync(join(folder, "mail/inbox", name))).length;
      if (fetched !== messages) throw new Error(`mbsync fetched ${fetched} of ${messages} messages`);
    },
  );
}

function makeMessage(number: number, bytes: number): string {
  const body = randomBytes(Math.floor((bytes * 3) / 4)).toString("base64");
  const lines = body.match(new RegExp(`.{1,${LINE_CHARACTERS}}`, "g")) ?? [];
  return [
    "From: anna@supplier.example",
    "To: orders@example.com",
    `Subject: ${number}`,
    `Message-ID: <${number}@supplier.example>`,
    "Date: Mon, 01 Jan 2024 00:00:00 +0000",
    "",
    ...lines,
    "",
  ].join("\r\n");
}

function describeServer(folder: string, maildir: string, port: number): string {
  return `
base_dir = ${join(folder, "run")}
log_path = ${join(folder, "log")}
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
first_valid_uid = 1
mail_location = maildir:${maildir}
passdb {
  driver = static
  args = password=bench
}
userdb {
  driver = static
  args = uid=${MAIL_UID} gid=${MAIL_UID} home=${folder}
}
service imap-login {
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = 0
  }
}
`;
}

function describeClient(folder: string, port: number): string {
  return `
FSync yes

IMAPAccount server
Host 127.0.0.1
Port ${port}
User bench
Pass bench
SSLType None
AuthMechs LOGIN

IMAPStore far
Account server

MaildirStore near
Path ${join(folder, "mail")}/
Inbox ${join(folder, "mail/inbox")}

Channel bench
Far :far:
Near :near:
Patterns INBOX
Create Near
Sync Pull
SyncState *
`;
}
