/** `inlet verify-address`: an address proved by a mailed code, for a client id that nobody has registered. */
import { once } from "node:events";
import { chmod, chown, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callCommand } from "../support/command.ts";
import { type Installation, install } from "../support/installation.ts";
import { converse, runProgram, startProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

test("asks for the code at the terminal without showing it, again after a slip; a daemon that runs then goes on", async () => {
  const { config, simulator, inbox } = await unregistered();
  const daemon = startProgram(["run", "--config", config]);
  const log: string[] = [];
  daemon.stdout?.on("data", (chunk) => log.push(String(chunk)));
  await expect.poll(() => log.join("")).toContain("the mailbox cannot be polled");
  const mailed = () => simulator.mails().at(-1)?.code ?? "";
  const { exitCode, stdout } = await converse(
    ["verify-address", MAILBOX.toUpperCase(), "--config", config],
    [
      ["Code mailed to", "00000000"],
      ["type it again.\r\nCode mailed to", mailed],
    ],
  );
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining(`${MAILBOX} is verified until 20`)]);
  for (const code of [mailed(), "00000000"]) expect(stdout).not.toContain(code);
  await expect.poll(() => readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
  daemon.kill("SIGTERM");
  expect(await once(daemon, "exit")).toEqual([0, null]);
});

test("takes the code from standard input, and says until when the address is verified", async () => {
  const { config, simulator, state } = await unregistered();
  await mail(config);
  const { code = "" } = simulator.mails().at(-1) ?? {};
  const options = { input: `  ${code}\n` };
  const args = ["verify-address", MAILBOX, "--config", config, "--code-file", "-", "--json"];
  const { exitCode, stdout, stderr } = await runProgram(args, options);
  expect([exitCode, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout)).toMatchObject({ mailbox: MAILBOX, verified: true });
  expect(simulator.mails()).toHaveLength(1);
  const [kept = ""] = await readdir(join(state, "tokens"));
  expect(JSON.parse(await readFile(join(state, "tokens", kept), "utf8"))).toHaveProperty("token");
  expect((await callCommand(["once", "--config", config])).outcome).toBe("fine");
});

test("as root keeps the token as the one to whom the state folder belongs", async () => {
  const { config, simulator, state, folder } = await unregistered();
  await chmod(folder, 0o755);
  await mkdir(state, { mode: 0o700 });
  await chown(state, 65_534, 65_534);
  await mail(config);
  const code = join(folder, "code");
  await writeFile(code, `${simulator.mails().at(-1)?.code}\n`, { mode: 0o600 });
  await callCommand(["verify-address", MAILBOX, "--config", config, "--code-file", code]);
  const [token = ""] = await readdir(join(state, "tokens"));
  for (const name of ["client-id", join("tokens", token)]) {
    expect(await stat(join(state, name))).toMatchObject({ uid: 65_534 });
  }
});

test("ends with 3 where the code is wrong, and with 2 where none came or the mailbox is not known", async () => {
  const { config } = await unregistered();
  const wrong = await runProgram(["verify-address", MAILBOX, "--config", config], { input: "00000000\n" });
  expect(wrong.exitCode).toBe(3);
  expect(wrong.stderr).toContain(`A code is on its way to ${MAILBOX}.`);
  expect(wrong.stderr).toContain("does not accept the verification");
  const none = await runProgram(["verify-address", MAILBOX, "--config", config]);
  expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining("--code-file FILE")]);
  await expect(callCommand(["verify-address", "order@example.com", "--config", config])).rejects.toThrow(
    `did you mean ${MAILBOX}?`,
  );
});

test("says that a configured token would hide the one it could obtain", async () => {
  const { config, simulator } = await unregistered({ verification: { token: "a-token" } });
  const refusal = await callCommand(["verify-address", MAILBOX, "--config", config]).catch(String);
  expect(refusal).toContain("Leave service.verification out");
  expect(refusal).not.toContain("a-token");
  expect(simulator.mails()).toEqual([]);
});

/** No client id is configured: one is made, which the service does not know. */
async function unregistered(service: Record<string, unknown> = {}): Promise<Installation> {
  const installation = await install({ transfers: [transferPlan({ trackingId: "t1" })] });
  const document = JSON.parse(await readFile(installation.config, "utf8"));
  document.service = { baseUrl: document.service.baseUrl, ...service };
  await writeFile(installation.config, JSON.stringify(document));
  return installation;
}

/** Asks for a code, and is gone before it comes. */
async function mail(config: string): Promise<void> {
  expect((await runProgram(["verify-address", MAILBOX, "--config", config])).exitCode).toBe(2);
}
