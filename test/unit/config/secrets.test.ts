import { execFileSync } from "node:child_process";
import { chmod, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import type { SecretSource } from "../../../src/base/secret.ts";
import {
  describeReaders,
  fromCommand,
  inCredential,
  inFile,
  inVariable,
} from "../../../src/config/credentials.ts";
import { loadSettings } from "../../../src/config/load.ts";
import type { Settings } from "../../../src/config/settings.ts";
import { makeFolder } from "../../support/program.ts";
import { readRulePassword } from "../../support/rule-passwords.ts";
import { SIGNAL } from "../../support/service.ts";
import { CLIENT_ID, config, writeConfig } from "./stage.ts";

const ENV = { PATH: "/usr/bin:/bin" };

async function read(source: SecretSource): Promise<string> {
  return (await source.read(SIGNAL)).reveal();
}

async function refusal(source: SecretSource): Promise<string> {
  const fault: unknown = await read(source).catch((error: unknown) => error);
  expect(fault).toMatchObject({ code: "SECRET_UNREADABLE" });
  expect(inspect(fault, { depth: 20, showHidden: true })).not.toContain("hunter2");
  return (fault as Error).message.replace("A secret cannot be read: ", "");
}

test.each([
  ["hunter2", "hunter2"],
  ["hunter2\n", "hunter2"],
  ["hunter2\r\n", "hunter2"],
  ["hunter2\n\n", "hunter2\n"],
  [" hunter 2 ", " hunter 2 "],
  ["\ufeffhunter2", "hunter2"],
  ["häns☃", "häns☃"],
])("a file is read without its final newline: %j", async (content, secret) => {
  const path = join(await makeFolder(), "secret");
  await writeFile(path, content);
  expect(await read(inFile(path))).toBe(secret);
});

test("a file is refused if it cannot hold a secret, without blocking", async () => {
  const folder = await makeFolder();
  const path = (name: string) => join(folder, name);
  await writeFile(path("empty"), "\n");
  await writeFile(path("large"), "x".repeat(65_537));
  await writeFile(path("full"), "x".repeat(65_536));
  await writeFile(path("bytes"), Buffer.from([0xff, 0xfe]));
  execFileSync("sh", ["-c", `mkfifo ${path("pipe")}`]);
  for (const [name, why] of [
    ["none", "does not exist"],
    ["empty", "is empty"],
    ["large", "is larger than 64 KiB"],
    ["bytes", "is not UTF-8 text"],
    ["pipe", "is not a regular file"],
    [".", "is not a regular file"],
  ] as const)
    expect(await refusal(inFile(path(name)))).toBe(`file ${path(name)} ${why}`);
  expect(await read(inFile(path("full")))).toHaveLength(65_536);
});

test("a variable and a credential are read, and reported if they are missing", async () => {
  const folder = await makeFolder();
  const env = { CREDENTIALS_DIRECTORY: folder, X: "hunter2", EMPTY: "" };
  await writeFile(join(folder, "supplier"), "hunter2\n");
  expect(await read(inVariable("X", env))).toBe("hunter2");
  expect(await read(inCredential("supplier", env))).toBe("hunter2");
  expect(await refusal(inVariable("NONE", env))).toBe("variable NONE is not set");
  expect(await refusal(inVariable("EMPTY", env))).toBe("variable EMPTY is empty");
  expect(await refusal(inCredential("x", env))).toBe(`credential x (${join(folder, "x")}) does not exist`);
  const withoutFolder = "credential x cannot be found, because CREDENTIALS_DIRECTORY is not set";
  expect(await refusal(inCredential("x", {}))).toContain(withoutFolder);
});

test("a command returns its output, with arguments passed unchanged", async () => {
  const argv = ["printf", "%s-%s\n", "$HOME", "a b"] as const;
  expect(await read(fromCommand(argv, ENV))).toBe("$HOME-a b");
});

test("a command gets no input, and of the environment nothing that may be a secret", async () => {
  const argv = ["sh", "-c", "cat; echo $X$TZ"] as const;
  expect(await read(fromCommand(argv, { ...ENV, X: "hunter2", TZ: "UTC" }))).toBe("UTC");
});

test.each([
  [["sh", "-c", "echo hunter2; echo hunter2 >&2; exit 3"], "command sh ended with exit code 3"],
  [["sh", "-c", "echo hunter2; kill -9 $$"], "command sh was ended by SIGKILL"],
  [["/no/such/program", "hunter2"], "command program was not found"],
  [["no-such-program", "hunter2"], "command no-such-program was not found"],
  [["/etc/passwd", "hunter2"], "command passwd may not be run by this user"],
  [["true", "hunter2"], "command true printed nothing"],
  [["printf", "\\377", "hunter2"], "command printf did not print UTF-8 text"],
  [["sh", "-c", "head -c 70000 /dev/zero"], "command sh printed more than 64 KiB"],
  [["echo", "hunter2\0"], "command echo could not be started"],
] as const)("a command reports its failure without quoting its output: %j", async (argv, why) => {
  expect(await refusal(fromCommand(argv, ENV))).toBe(why);
});

test("a command is found in PATH only if it may be run", async () => {
  const folder = await makeFolder();
  await writeFile(join(folder, "plain"), "");
  const why = "command plain was not found in PATH, or may not be run by this user";
  expect(await refusal(fromCommand(["plain"], { PATH: folder }))).toBe(why);
});

test("a command is killed after its timeout, with its children", async () => {
  const pidFile = join(await makeFolder(), "pid");
  const argv = ["sh", "-c", `sleep 600 & echo $! > ${pidFile}; wait`] as const;
  const source = fromCommand(argv, process.env, 300);
  await expect(source.read(SIGNAL)).rejects.toThrow("command sh took longer than 0.3 s");
  await expectGone(pidFile);
});

test("a command is killed on abort", async () => {
  const pidFile = join(await makeFolder(), "pid");
  const argv = ["sh", "-c", `echo $$ > ${pidFile}; sleep 600`] as const;
  const stop = new AbortController();
  const reading = fromCommand(argv, process.env).read(stop.signal);
  const refused = expect(reading).rejects.toMatchObject({ code: "STOPPED" });
  await expect.poll(() => execFileSync("cat", [pidFile], { stdio: "pipe" })).not.toHaveLength(0);
  stop.abort();
  await refused;
  await expectGone(pidFile);
});

test("at the start, commands are not run, and every other secret is read once", async () => {
  const folder = await makeFolder();
  const trace = join(folder, "ran");
  await writeFile(join(folder, "password"), "hunter2\n", { mode: 0o600 });
  const clientId = JSON.stringify({ command: ["touch", trace] });
  const settings = await loadWith(
    `- { sender: a, password: { command: [touch, ${trace}] } }
      - { sender: b, password: { file: ${folder}/password } }
      - { sender: c, password: { credential: password } }
      - { sender: d, password: { env: PASSWORD } }`,
    { CREDENTIALS_DIRECTORY: folder, PASSWORD: "x", INLET_SERVICE__CLIENTID: clientId },
  );
  expect(settings.mailboxes[0]?.passwords.map(({ password }) => password.described)).toEqual([
    "command touch",
    `file ${folder}/password`,
    "credential password",
    "variable PASSWORD",
  ]);
  expect(() => execFileSync("ls", [trace], { stdio: "pipe" })).toThrow();
});

test("at the start, a command for passwords is asked about each transfer, and may know none", async () => {
  const path = await writeConfig(configWith("- { password: { command: [./vault] } }"));
  const script = `#!/bin/sh
case $INLET_SENDER in
  known@*) echo "$INLET_MAILBOX/$INLET_SENDER/$INLET_TRACKING_ID/$INLET_SUBJECT" ;;
  failing@*) exit 4 ;;
esac
`;
  await writeFile(join(path, "../vault"), script, { mode: 0o700 });
  const rule = (await loadSettings({ path, env: { PATH: "/usr/bin:/bin" } })).mailboxes[0]?.passwords[0];
  const of = (sender: string) =>
    readRulePassword(rule, { mailbox: "orders", sender, trackingId: "t1", subject: "a\nb\0c $(d)" });
  expect(await of("known@a.example")).toBe("orders/known@a.example/t1/a\ufffdb\ufffdc $(d)");
  expect(await of("other@a.example")).toBeUndefined();
  await expect(of("failing@a.example")).rejects.toThrow("command vault ended with exit code 4");
});

test("at the start, a client id is checked from every source, at load and at each read", async () => {
  const file = join(await makeFolder(), "id");
  await writeFile(file, `${CLIENT_ID}\n`, { mode: 0o600 });
  const service = { INLET_SERVICE__CLIENTID__FILE: file };
  const settings = await loadWith("[]", service);
  const clientId = settings.mailboxes[0]?.service.clientId;
  expect((await clientId?.read(SIGNAL))?.reveal()).toBe(CLIENT_ID);
  await writeFile(file, "hunter2");
  const why = `file ${file} is not a client id, which has 50 to 4000 letters and digits`;
  await expect(clientId?.read(SIGNAL)).rejects.toThrow(why);
  const place = "INLET_SERVICE__CLIENTID__FILE: service.clientId.file: ";
  await expect(loadWith("[]", service)).rejects.toThrow(place + why);
});

test("a warning is given for a secret file that others can read, but not for a credential", async () => {
  const folder = await makeFolder();
  await writeFile(join(folder, "open"), "x");
  await chmod(join(folder, "open"), 0o644);
  const { warnings } = await loadWith(
    `- { sender: a, password: { file: ${folder}/open } }
      - { sender: b, password: { credential: open } }`,
    { CREDENTIALS_DIRECTORY: folder },
  );
  expect(warnings).toEqual([
    `mailboxes[0].passwords[0].password: ${folder}/open can be read or changed by every user of this machine: restrict it to its owner (chmod go= ${folder}/open).`,
  ]);
});

test("a warning is given for a configuration with a secret that others can read", async () => {
  const plain = configWith("- { sender: a, password: hunter2 }");
  const elsewhere = configWith("- { sender: a, password: { env: X } }");
  for (const [text, mode, warned] of [
    [elsewhere, 0o644, []],
    [plain, 0o600, []],
    [plain, 0o640, [expect.stringMatching(/^A secret is in plain text \(mailboxes\[0\].*by its group/)]],
    [plain, 0o604, [expect.stringMatching(/every user of this machine/)]],
  ] as const) {
    const path = await writeConfig(text);
    await chmod(path, mode);
    const env = { X: "x", INLET_SERVICE__CLIENTID: CLIENT_ID };
    const { warnings } = await loadSettings({ path, env });
    expect(warnings).toEqual(warned);
    expect(warnings.join()).not.toContain("hunter2");
  }
});

test("a warning is given for the target of a link, and for a group only if the file is ours", async () => {
  const folder = await makeFolder();
  await mkdir(join(folder, "data"));
  const [file, link] = [join(folder, "data/secret"), join(folder, "link")];
  await writeFile(file, "x");
  await symlink(file, link);
  await chmod(file, 0o640);
  expect(await describeReaders(link)).toContain("by its group");
  expect(await describeReaders(link, 54_321)).toBeUndefined();
  await chmod(file, 0o644);
  expect(await describeReaders(link, 54_321)).toContain("by every user of this machine");
  await chmod(file, 0o600);
  expect(await describeReaders(link)).toBeUndefined();
  expect(await describeReaders(join(folder, "none"))).toBeUndefined();
});

function configWith(passwords: string): string {
  return config(`mailboxes:\n  - email: orders@example.com\n    passwords:\n      ${passwords}`);
}

async function loadWith(passwords: string, env: Readonly<Record<string, string>>): Promise<Settings> {
  return loadSettings({ path: await writeConfig(configWith(passwords)), env });
}

async function expectGone(pidFile: string): Promise<void> {
  const pid = execFileSync("cat", [pidFile], { encoding: "utf8" }).trim();
  // A zombie is gone, too.
  const state = () => readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  await expect.poll(state).toMatch(/^$|\) Z /);
}
