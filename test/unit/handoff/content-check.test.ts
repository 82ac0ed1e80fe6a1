/** The verdict of the check, and its reason. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fault } from "../../../src/base/faults.ts";
import { Secret } from "../../../src/base/secret.ts";
import { createChecker } from "../../../src/handoff/content-check.ts";
import type { Check } from "../../../src/model/mailbox.ts";
import { checkWith } from "../../support/handoff.ts";
import { makeFolder } from "../../support/program.ts";
import { SIGNAL } from "../../support/service.ts";

const PATIENCE = { scanMs: 20, killMs: 300 };

test.each([
  ["exit 0", undefined],
  ["echo infected; exit 1", "CHECK_REFUSED The check refused the transfer: infected"],
  ["echo warning >&2; echo infected; exit 1", "CHECK_REFUSED The check refused the transfer: infected"],
  ["echo infected >&2; exit 1", "CHECK_REFUSED The check refused the transfer: infected"],
  ["exit 1", "CHECK_REFUSED The check refused the transfer: it gave no reason"],
  ['echo "$PWD/a/b.txt: bad"; exit 1', "CHECK_REFUSED The check refused the transfer: a/b.txt: bad"],
  ["echo no; exit 2", "CHECK_FAILED The check gave no verdict: it ended with exit code 2: no"],
  ["kill -9 $$", "CHECK_FAILED The check gave no verdict: it was ended by SIGKILL"],
  ["echo pass+word; exit 1", "CHECK_REFUSED The check refused the transfer: [secret]"],
  ["echo pass%2bword; exit 3", "CHECK_FAILED The check gave no verdict: it ended with exit code 3: [secret]"],
])("%s", async (script, verdict) => {
  expect(await verdictOf(checkWith(script))).toBe(verdict);
});

test("a check that takes too long gives no verdict", async () => {
  const verdict = await verdictOf(checkWith("sleep 60", [], { timeoutMs: 100 }));
  expect(verdict).toContain("CHECK_FAILED The check gave no verdict: it took longer than 0.1 s");
});

test("a reason of any length stays short", async () => {
  const verdict = await verdictOf(checkWith("head -c 1000000 /dev/zero | tr '\\0' x; exit 1"));
  expect(verdict).toBe(`CHECK_REFUSED The check refused the transfer: ${"x".repeat(200)}…`);
});

test("a limiter that cannot set the memory limit is no refusal", async () => {
  const folder = await makeFolder();
  const failing = "#!/bin/sh\necho 'prlimit: failed to set the AS resource limit' >&2\nexit 1\n";
  await writeFile(join(folder, "prlimit"), failing, { mode: 0o755 });
  const check = checkWith("exit 0", [], { memoryBytes: 2 ** 30, env: { PATH: folder } });
  expect(await verdictOf(check)).toContain("CHECK_FAILED");
  const missing = checkWith("exit 0", [], { memoryBytes: 2 ** 30, env: { PATH: "/nonexistent" } });
  const absent = { ...check, memoryBytes: undefined, argv: ["/nonexistent/scanner"] } as const;
  for (const each of [missing, absent])
    expect(await verdictOf(each)).toBe("CHECK_FAILED The check gave no verdict: it was not found");
});

test("the memory limit reaches the check", async () => {
  expect(await verdictOf(checkWith("ulimit -v; exit 1", [], { memoryBytes: 2 ** 30 }))).toContain("1048576");
});

test("the check gets the folder as an argument, and does not run in it, where a program could load a sender's code", async () => {
  const { argv, ...check } = checkWith("exit 0");
  const script = 'echo "$PWD $1" | sed "s|$INLET_FOLDER|FOLDER|"; exit 1';
  const verdict = await verdictOf({ ...check, argv: ["sh", "-c", script, "sh", "in={folder}"] });
  expect(verdict).toBe("CHECK_REFUSED The check refused the transfer: / in=FOLDER");
});

test("eight checks run at once, one of them for a mailbox without any", async () => {
  const shared = await makeFolder();
  const wait = checkWith('echo >> "$0/begun"; until [ -e "$0/go" ]; do sleep 0.1; done', [shared]);
  const checker = createChecker(PATIENCE);
  const begun = async () => (await readFile(join(shared, "begun"), "utf8").catch(() => "")).length;
  const start = (id: number, mailbox: string) =>
    verdictOf(wait, { id: String(id).repeat(32), mailbox }, checker);
  const running = Array.from({ length: 9 }, (_, at) => start(at, "busy"));
  await expect.poll(begun).toBe(7);
  running.push(start(9, "other"));
  await expect.poll(begun).toBe(8);
  await writeFile(join(shared, "go"), "");
  expect(await Promise.all(running)).toEqual(running.map(() => undefined));
  expect(await begun()).toBe(10);
});

/** Code and message; `undefined` if the transfer is accepted. */
async function verdictOf(
  check: Check,
  { id = "0".repeat(32), mailbox = "m" } = {},
  checker = createChecker(PATIENCE),
): Promise<string | undefined> {
  const facts = { id, mailbox, trackingId: "t1", transferId: "x", sender: "a@b.example" };
  const secrets = [new Secret("pass+word")];
  const folder = await makeFolder();
  const manifest = `${folder}/transfer.json`;
  const transfer = { ...facts, verified: "all", folder, manifest, secrets } as const;
  try {
    await checker.run(check, transfer, SIGNAL);
    return undefined;
  } catch (error) {
    return error instanceof Fault ? `${error.code} ${error.message}` : String(error);
  }
}
