// @module-tag system
/** The script of docs/recipes.md that supplies passwords from mails, with real mails in a Maildir. */
import { existsSync } from "node:fs";
import { mkdir, readdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findProgram } from "../support/debian.ts";
import { install } from "../support/installation.ts";
import { LAUNCHER, logOf, runCommand, runProgram, startProgram } from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { transferPlan } from "../support/service.ts";

const SCRIPT = join(ROOT, "examples/consumers/take-passwords");
const SERVER = "mx.example.com";
const PASSWORD = "Mailed+Pass%7";
const SIGNED = `Authentication-Results: ${SERVER};\n dkim=pass (2048-bit key; unprotected) header.d=supplier.example header.s=s1`;
const FROM = "From: Anna <anna@supplier.example>";
const BODY = `Hello,\n\nTracking-ID: t1\nPassword: ${PASSWORD}\n`;

test("a signed mail of the sender opens the transfer, in any encoding, and is put away", async () => {
  const room = await prepare();
  const part = (type: string, text: string) =>
    `--x\nContent-Type: ${type}; charset=utf-8\nContent-Transfer-Encoding: base64\n\n${Buffer.from(text).toString("base64")}\n`;
  await room.mail("mixed", [
    SIGNED,
    FROM,
    'MIME-Version: 1.0\nContent-Type: multipart/alternative; boundary="x"',
    "",
    `${part("text/plain", BODY)}${part("text/html", "<p>Password: other</p>")}--x--`,
  ]);
  // Two deliveries of the same mail cost one attempt.
  await room.mail("twice", [SIGNED, FROM, "", BODY]);
  expect(await room.take()).toMatchObject({ exitCode: 0, stdout: "t1: supplied\n" });
  expect(await room.files()).toEqual({ new: ["twice"], cur: ["mixed:2,S"] });
  await room.once();
  expect(existsSync(join(room.inbox, "orders@example.com/anna@supplier.example/t1/transfer.json"))).toBe(
    true,
  );
});

test("a mail that comes before its transfer waits, and is put away after a week", async () => {
  const room = await prepare([]);
  const path = await room.mail("early", [SIGNED, FROM, "", BODY]);
  expect(await room.take()).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await room.files()).toEqual({ new: ["early"], cur: [] });
  await utimes(path, 1, 1);
  expect(await room.take()).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await room.files()).toEqual({ new: [], cur: ["early:2,S"] });
});

test("a wrong password costs one attempt: further mails are left to a person", async () => {
  const room = await prepare();
  await room.startDaemon();
  await room.mail("1", [SIGNED, FROM, "", BODY.replace(PASSWORD, "wrong")]);
  expect(await room.take()).toMatchObject({ exitCode: 1, stdout: "t1: inlet password ended with 3\n" });
  await room.mail("2", [SIGNED, FROM, "", BODY]);
  expect(await room.take()).toMatchObject({ exitCode: 0, stdout: "" });
  expect(await room.files()).toEqual({ new: ["2"], cur: ["1:2,S"] });
});

describe("no password is taken from", () => {
  const forged = `Authentication-Results: ${SERVER}; dkim=pass header.d=supplier.example`;
  const cases: Readonly<Record<string, readonly string[]>> = {
    "a mail without a verified signature": [FROM, "", BODY],
    "a failed signature": [SIGNED.replace("dkim=pass", "dkim=fail"), FROM, "", BODY],
    "a signature of another domain": [SIGNED.replace("d=supplier", "d=evil.supplier"), FROM, "", BODY],
    "a result of another server": [SIGNED.replace(SERVER, "mx.evil.example"), FROM, "", BODY],
    "a result that the sender added": [
      `Authentication-Results: ${SERVER}; dkim=none`,
      forged,
      FROM,
      "",
      BODY,
    ],
    "a result within a quoted address": [
      `Authentication-Results: ${SERVER}; spf=pass smtp.mailfrom="a; dkim=pass header.d=supplier.example "@evil.example`,
      FROM,
      "",
      BODY,
    ],
    "a result within comments": [
      `Authentication-Results: ${SERVER}; dkim=none (a (b) ; dkim=pass header.d=supplier.example )`,
      FROM,
      "",
      BODY,
    ],
    "another sender": [SIGNED, "From: berta@supplier.example", "", BODY],
    "two senders": [SIGNED, `${FROM}, eve@evil.example`, "", BODY],
    "two passwords": [SIGNED, FROM, "", `${BODY}Password: other\n`],
    "an unknown transfer": [SIGNED, FROM, "", BODY.replace("t1", "t9")],
    "an option": [SIGNED, FROM, "", BODY.replace("t1", "--all")],
    "a broken mail": ["Content-Type: text/plain; charset=\u0000\xff", SIGNED, FROM, "", BODY],
    "a mail that is too large": [SIGNED, FROM, "", `${BODY}${"x\n".repeat(600_000)}`],
  };

  test("forged, ambiguous or broken mails, and they do not stop a good one", async () => {
    const room = await prepare();
    const names = Object.keys(cases);
    for (const name of names) await room.mail(name, cases[name] ?? []);
    expect(await room.take()).toMatchObject({ exitCode: 0, stdout: "", stderr: "" });
    expect(await room.files()).toEqual({ new: names.toSorted(), cur: [] });
    await room.mail("z", [SIGNED, FROM, "", BODY]);
    expect(await room.take()).toMatchObject({ exitCode: 0, stdout: "t1: supplied\n" });
  });
});

/** A transfer that waits for its password, and an empty Maildir. */
async function prepare(transfers = [transferPlan({ trackingId: "t1", password: PASSWORD })]) {
  const { config, folder, inbox, rewrite } = await install({ transfers });
  await rewrite({ mailboxes: [{ email: "orders@example.com" }] });
  const python = await findProgram("python3", ["python3-minimal", "libpython3-stdlib"]);
  const [maildir, bin] = [join(folder, "Maildir"), join(folder, "bin")];
  for (const name of ["new", "cur", "tmp"]) await mkdir(join(maildir, name), { recursive: true });
  await mkdir(bin);
  const launch = `#!/bin/sh\nexec '${process.execPath}' '${LAUNCHER}' "$@"\n`;
  await writeFile(join(bin, "inlet"), launch, { mode: 0o755 });
  const once = () => runProgram(["once", "--config", config]);
  await once();
  return {
    inbox,
    once,
    async startDaemon() {
      await expect.poll(logOf(startProgram(["run", "--config", config]))).toContain('"msg":"ready"');
    },
    async mail(name: string, lines: readonly string[]): Promise<string> {
      await writeFile(join(maildir, "new", name), lines.join("\n"), "latin1");
      return join(maildir, "new", name);
    },
    take() {
      const env = { ...python.env, PATH: `${bin}:${process.env["PATH"]}` };
      return runCommand(python.path, [SCRIPT, maildir, SERVER, "--config", config], { env });
    },
    async files() {
      const list = async (name: string) => (await readdir(join(maildir, name))).toSorted();
      return { new: await list("new"), cur: await list("cur") };
    },
  };
}
