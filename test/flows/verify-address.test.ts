/** `inlet verify-address`: an address verified with a mailed code, for an unregistered client id. */
import { chmod, chown, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { Secret } from "../../src/base/secret.ts";
import { loadTokenStores } from "../../src/host/memory.ts";
import { Tokens } from "../../src/mailbox/tokens.ts";
import type { Status } from "../../src/model/status.ts";
import { readApi } from "../support/api.ts";
import { callCommand, startRun } from "../support/command.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { type Installation, install } from "../support/installation.ts";
import { byWebhook, groupsOf } from "../support/notify.ts";
import { converse, runProgram } from "../support/program.ts";
import { accept, openReceiver } from "../support/receiver.ts";
import { openTestService, openTestSimulator, SIGNAL, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, pageSettings } from "../support/settings.ts";

const DAY_MS = 86_400_000;

test("asks for the code without showing it, again after a typing error; a running daemon then continues", async () => {
  const { config, simulator, inbox } = await unregistered();
  const daemon = startRun(config);
  await expect.poll(daemon.logged).toContain("the mailbox cannot be polled");
  const mailed = () => simulator.mails().at(-1)?.code ?? "";
  const { exitCode, stdout } = await converse(
    ["verify-address", MAILBOX.toUpperCase(), "--config", config],
    [
      ["Code mailed to", "00000000"],
      ["try again.\r\nCode mailed to", mailed],
    ],
  );
  expect([exitCode, stdout]).toEqual([0, expect.stringContaining(`${MAILBOX} is verified until 20`)]);
  for (const code of [mailed(), "00000000"]) expect(stdout).not.toContain(code);
  await expect.poll(() => readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
  await daemon.stop();
});

test("reads the code from standard input, and reports until when the address is verified", async () => {
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

test("as root, stores the token as the owner of the state folder", { tags: ["system"] }, async () => {
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

test("exits with 3 for a wrong code, and with 2 for a missing code or an unknown mailbox", async () => {
  const { config } = await unregistered();
  const wrong = await runProgram(["verify-address", MAILBOX, "--config", config], { input: "00000000\n" });
  expect(wrong.exitCode).toBe(3);
  expect(wrong.stderr).toContain(`The service mails a code to ${MAILBOX}.`);
  expect(wrong.stderr).toContain("does not accept the verification");
  expect(wrong.stderr).toContain(
    `The code is wrong or too old. Use the one in the newest mail: inlet verify-address ${MAILBOX} --code-file FILE`,
  );
  expect(wrong.stderr).not.toContain("register the client id");
  const none = await runProgram(["verify-address", MAILBOX, "--config", config]);
  expect([none.exitCode, none.stderr]).toEqual([2, expect.stringContaining("--code-file FILE")]);
  await expect(callCommand(["verify-address", "order@example.com", "--config", config])).rejects.toThrow(
    `did you mean ${MAILBOX}?`,
  );
});

test("explains that a service mails only some codes to an address, and what to do", async () => {
  const { config, simulator } = await unregistered({}, { codesPerAddress: 1 });
  await mail(config);
  const { exitCode, stderr } = await runProgram(["verify-address", MAILBOX, "--config", config]);
  expect(exitCode).toBe(4);
  expect(stderr).toContain("The service limits how many codes it mails to an address.");
  expect(stderr).toContain(`inlet verify-address ${MAILBOX} --code-file FILE`);
  expect(simulator.mails()).toHaveLength(1);
});

test("refuses to obtain a token that a configured one would hide", async () => {
  const { config, simulator } = await unregistered({ verification: { token: "a-token" } });
  const refusal = await callCommand(["verify-address", MAILBOX, "--config", config]).catch(String);
  expect(refusal).toContain("remove service.verification");
  expect(refusal).not.toContain("a-token");
  expect(simulator.mails()).toEqual([]);
});

test("I7 nothing silent: a verification that only a person can renew is a problem before it ends, and is reported twice", async () => {
  const simulator = await openTestSimulator({ tokenSeconds: (30 * DAY_MS) / 1000 });
  const receiver = await openReceiver(accept);
  const stranger = new Secret("S".repeat(64));
  const byCode = mailboxSettings({ url: simulator.url, clientId: stranger.reveal() });
  // Inlet renews the token of this mailbox by itself.
  const registered = mailboxSettings(simulator, { name: "registered", email: "registered@example.com" });
  const found = { source: "/srv/other.yaml", http: pageSettings() };
  const settings = await daemonSettings([byCode, registered], {
    ...found,
    notify: [byWebhook(receiver.url)],
  });
  const { now, move } = movable(simulator);
  const verify = async () => {
    const service = openTestService(simulator, { clientId: stranger });
    await service.mailVerificationCode(MAILBOX, SIGNAL);
    const folder = join(settings.state, "tokens");
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const store = (await loadTokenStores())(folder);
    const code = new Secret(simulator.mails().at(-1)?.code ?? "");
    const tools = { mailbox: byCode, service, configured: undefined, store, clock: { now } };
    await new Tokens(tools).redeem(code, SIGNAL);
  };
  await verify();
  const daemon = startDaemon(settings, { clock: { now } });
  const read = async () => (await readApi(`${await daemon.page}api/status`)) as Status;
  const troubles = async () => (await read()).troubles;
  const isPolled = ({ mailboxes }: Status) => mailboxes.every((it) => it.lastSuccess !== undefined);
  await expect.poll(async () => isPolled(await read())).toBe(true);
  expect(await troubles()).toEqual([]);
  move(23.5 * DAY_MS);
  await expect.poll(troubles).toEqual([
    {
      what: `mailbox ${MAILBOX}`,
      mailboxes: [MAILBOX],
      since: expect.any(String),
      code: "VERIFICATION_ENDS",
      message: expect.stringContaining("only a person can renew it"),
      advice: expect.stringContaining(`inlet verify-address --config /srv/other.yaml ${MAILBOX}`),
    },
  ]);
  const figures = await (await fetch(`${await daemon.page}metrics`)).text();
  expect(figures).toContain(`inlet_mailbox_verification_ends{mailbox="${MAILBOX}"} 1`);
  expect(figures).toContain('inlet_mailbox_verification_ends{mailbox="registered"} 0');
  const reminders = () => groupsOf(receiver).filter(({ kind }) => kind === "verification");
  await expect.poll(reminders).toMatchObject([{ count: 1, first: [{ mailbox: MAILBOX }] }]);
  move(5.8 * DAY_MS);
  await expect.poll(reminders).toHaveLength(2);
  const polls = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 20);
  expect(reminders()).toHaveLength(2);
  await verify();
  await expect.poll(troubles).toEqual([]);
  // The next token is reported again in its turn.
  move(24 * DAY_MS);
  await expect.poll(reminders).toHaveLength(3);
});

/** A clock that the test moves, together with that of the service. */
function movable(simulator: Simulator) {
  let aheadMs = 0;
  return {
    now: () => Date.now() + aheadMs,
    move(ms: number) {
      aheadMs += ms;
      simulator.advance(ms / 1000);
    },
  };
}

/** Without a configured client id: the daemon creates one, which the service does not know. */
async function unregistered(
  service: Record<string, unknown> = {},
  scenario: Scenario = {},
): Promise<Installation> {
  const installation = await install({ ...scenario, transfers: [transferPlan({ trackingId: "t1" })] });
  const document = JSON.parse(await readFile(installation.config, "utf8"));
  document.service = { baseUrl: document.service.baseUrl, ...service };
  await writeFile(installation.config, JSON.stringify(document));
  return installation;
}

/** Asks for a code, and ends before it arrives. */
async function mail(config: string): Promise<void> {
  expect((await runProgram(["verify-address", MAILBOX, "--config", config])).exitCode).toBe(2);
}
