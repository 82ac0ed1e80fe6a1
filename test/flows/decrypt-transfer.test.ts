// @module-tag system
/** The hand-off command of docs/recipes.md that decrypts with gpg, with the key and the configuration of the page. */
import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { listJson } from "../support/command.ts";
import { installProgram } from "../support/debian.ts";
import { install } from "../support/installation.ts";
import { blocksOf, readPage } from "../support/pages.ts";
import { makeFolder, runCommand, runProgram } from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { transferPlan } from "../support/service.ts";
import { prefixed, readTree } from "../support/tree.ts";

const SCRIPT = join(ROOT, "examples/consumers/decrypt-transfer");
const ID = "0123456789abcdef0123456789abcdef";
const PAGE = "docs/recipes.md";

beforeAll(() => installProgram("gpg", "gnupg"));

test("encrypted files are delivered decrypted, and the folder counts as picked up", async () => {
  const { own, encrypt, handoff } = await prepare();
  const files = [
    { name: "report.csv.pgp", text: await encrypt("1;2;3\n") },
    { name: "note.txt", text: "Hello" },
  ];
  const { config, inbox } = await install(
    { transfers: [transferPlan({ trackingId: "t1", files })] },
    { handoff },
  );
  expect(await runProgram(["once", "--config", config])).toMatchObject({ exitCode: 0 });
  const [id = "", ...others] = await readdir(join(own, "decrypted"));
  expect(others).toEqual([]);
  const { "transfer.json": manifest = "", ...content } = await readTree(join(own, "decrypted", id));
  expect(content).toEqual({ "report.csv": "1;2;3\n", "note.txt": "Hello" });
  expect(JSON.parse(manifest)).toMatchObject({ deliveryId: id, trackingId: "t1" });
  expect(existsSync(join(inbox, "orders@example.com/anna@supplier.example/t1/decrypted"))).toBe(true);
  await runProgram(["once", "--config", config]);
  expect(await listJson(config)).toMatchObject([{ trackingId: "t1", state: "picked-up" }]);
});

test("a file for another key needs attention with gpg's words, and is decrypted once the key is there", async () => {
  const { own, gpg, handoff } = await prepare();
  const other = await openKeys(join(own, "other"), "other@example.com");
  const text = await other.encrypt("late\n");
  const transfers = [transferPlan({ trackingId: "t1", files: [{ name: "a.txt.gpg", text }] })];
  const { config } = await install({ transfers }, { handoff });
  expect(await runProgram(["once", "--config", config])).toMatchObject({ exitCode: 3 });
  const { stdout } = await runProgram(["show", "--config", config, "t1"]);
  expect(stdout).toMatch(/gpg: (public key )?decryption failed/);
  const target = join(own, "decrypted");
  expect((await readdir(target)).filter((name) => !name.startsWith("."))).toEqual([]);

  const key = join(own, "key.asc");
  await other.gpg("--output", key, "--export-secret-keys");
  await gpg("--import", key);
  await runProgram(["retry", "--config", config, "t1", "--yes"]);
  expect(await runProgram(["once", "--config", config])).toMatchObject({ exitCode: 0 });
  const [id = ""] = await readdir(target);
  expect(await readFile(join(target, id, "a.txt"), "utf8")).toBe("late\n");
});

describe("decrypt-transfer", () => {
  /** Kills the process group after the wanted program. */
  const shim = `#!/bin/sh
PATH=$REST "\${0##*/}" "$@"
code=$?
[ "$KILL" != "\${0##*/}" ] || kill -9 0
exit "$code"
`;

  test("is killed at every step, and its repetition completes the folder", async () => {
    const { own, folder, target, decrypt } = await prepareFolder();
    const whole = { "a.txt": "a\n", "b.txt": "b", "transfer.json": "{}" };
    const programs = ["env", "rm", "mkdir", "gpg", "cp", "sync", "mv", "touch"];
    const bin = join(own, "bin");
    await mkdir(bin);
    for (const name of programs) await writeFile(join(bin, name), shim, { mode: 0o755 });
    const rest = process.env["PATH"] ?? "";
    for (const kill of programs) {
      for (const path of [join(target, ID), join(folder, "decrypted")])
        await rm(path, { recursive: true, force: true });
      const { exitCode } = await decrypt({ KILL: kill, REST: rest, PATH: `${bin}:${rest}` });
      expect(exitCode, kill).toBe(null);
      if (existsSync(join(target, ID))) expect(await readTree(join(target, ID)), kill).toEqual(whole);
      expect(await decrypt()).toMatchObject({ exitCode: 0, stderr: "" });
      expect(await readTree(target), kill).toEqual(prefixed(ID, whole));
      expect(existsSync(join(folder, "decrypted"))).toBe(true);
    }
  });

  test("delivers nothing if two files would get one name, or a signature cannot be checked", async () => {
    const { own, folder, target, decrypt, encrypt } = await prepareFolder();
    await writeFile(join(folder, "a.txt"), "another");
    expect(await decrypt()).toMatchObject({ exitCode: 1, stderr: "two files would be called a.txt\n" });
    await rm(join(folder, "a.txt"));
    // A sender could otherwise replace the manifest.
    await writeFile(join(folder, "transfer.json.pgp"), await encrypt("{}"));
    expect(await decrypt()).toMatchObject({ exitCode: 1 });
    await rm(join(folder, "transfer.json.pgp"));

    const sender = await openKeys(join(own, "sender"), "anna@supplier.example");
    await sender.gpg("--import", join(own, "orders.asc"));
    const signed = await sender.encrypt("signed\n", "orders@example.com", "--sign");
    await writeFile(join(folder, "c.txt.pgp"), signed);
    expect((await decrypt()).stderr).toContain("No public key");
    expect(existsSync(join(target, ID))).toBe(false);
    const key = join(own, "sender.asc");
    await sender.gpg("--output", key, "--export");
    await runCommand("gpg", ["--homedir", join(own, "gnupg"), "--batch", "--import", key]);
    expect(await decrypt()).toMatchObject({ exitCode: 0 });
    expect(await readFile(join(target, ID, "c.txt"), "utf8")).toBe("signed\n");
  });
});

/** The key and the hand-off of the page, in a folder of the test. */
async function prepare() {
  const own = await makeFolder();
  await mkdir(join(own, "decrypted"));
  const here = (text: string) =>
    text
      .replaceAll(/ -o inlet -g inlet|runuser -u inlet -- /g, "")
      .replaceAll("/var/lib/inlet", own)
      .replaceAll("/srv/decrypted", join(own, "decrypted"))
      .replaceAll("/usr/local/bin/decrypt-transfer", SCRIPT);
  const made = await runCommand("sh", ["-euc", here(blockOf("decrypt-key"))], { cwd: own });
  expect(made.exitCode, made.stderr).toBe(0);
  const keys = keysIn(join(own, "gnupg"));
  const sender = keysIn(join(own, "writer"));
  await mkdir(join(own, "writer"), { mode: 0o700 });
  await sender.gpg("--import", join(own, "orders.asc"));
  const [, yaml = ""] = /<!-- decrypt -->\n```yaml\n([\s\S]*?)```/.exec(readPage(PAGE)) ?? [];
  const { handoff } = parse(here(yaml));
  return {
    own,
    handoff,
    gpg: keys.gpg,
    encrypt: (text: string) => sender.encrypt(text, "orders@example.com"),
  };
}

/** A folder like a delivered one, and the script for it. */
async function prepareFolder() {
  const { own, encrypt } = await prepare();
  const [folder, target] = [join(own, "t1"), join(own, "decrypted")];
  await mkdir(folder);
  const files = {
    "a.txt.pgp": await encrypt("a\n"),
    "b.txt": "b",
    "transfer.json": "{}",
    SHA256SUMS: "0  a.txt.pgp\n",
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  const decrypt = (more: Readonly<Record<string, string>> = {}) =>
    runCommand("setsid", ["--wait", SCRIPT, join(own, "gnupg"), target], {
      env: { INLET_ID: ID, INLET_FOLDER: folder, ...more },
    });
  return { own, folder, target, decrypt, encrypt };
}

function blockOf(name: string): string {
  return blocksOf(PAGE).find(({ mark }) => mark === name)?.text ?? "exit 1";
}

async function openKeys(folder: string, address: string) {
  await mkdir(folder, { mode: 0o700 });
  const keys = keysIn(folder);
  await keys.gpg("--passphrase", "", "--quick-generate-key", address, "default", "default", "never");
  return {
    ...keys,
    encrypt: (text: string, to = address, ...more: string[]) => keys.encrypt(text, to, ...more),
  };
}

/** gpg with this folder. Its agent ends with the test. */
function keysIn(folder: string) {
  onTestFinished(async () => {
    await runCommand("gpgconf", ["--homedir", folder, "--kill", "gpg-agent"]);
  });
  const run = async (args: readonly string[], input?: string) => {
    const usual = ["--homedir", folder, "--batch", "--trust-model", "always"];
    const { exitCode, stdout, stderr } = await runCommand("gpg", [...usual, ...args], {
      ...(input === undefined ? {} : { input }),
    });
    if (exitCode !== 0) throw new Error(stderr);
    return stdout;
  };
  return {
    gpg: (...args: string[]) => run(args),
    /** As text. */
    encrypt: (text: string, to: string, ...more: string[]) =>
      run(["--armor", "--recipient", to, ...more, "--encrypt"], text),
  };
}
