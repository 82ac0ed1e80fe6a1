/** `inlet init`: a configuration from a few answers, tried before it is written. */
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { callCommand } from "../support/command.ts";
import { converse, makeFolder, runProgram } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, PASSWORD } from "../support/settings.ts";

describe("on a terminal", () => {
  test("asks, tries each answer, shows no secret, and writes a configuration that works", async () => {
    const { simulator, folder, config, inbox } = await setUp();
    const { exitCode, stdout } = await converse(
      ["init", "--config", config, "--state", join(folder, "state")],
      [
        ["Address of the service", "ftp://transfer.example.com"],
        ["is not the address of a service", "http://127.0.0.1:1"],
        ["could not be reached", ""],
        ["Address of the service", simulator.url],
        ["Client id", "too short"],
        ["50 to 4000 letters and digits.\r\nClient id", simulator.clientId],
        ["Mailbox", "not an address"],
        ["is not an email address", MAILBOX],
        [`${MAILBOX} is verified by the client id`, ""],
        ["Inbox", "~/inbox"],
        ["write the whole path", inbox],
        ["Sender", "*@supplier.example"],
        ["Password of transfers", PASSWORD],
        ["The same password again", "something else"],
        ["The two passwords differ.\r\nPassword of transfers", PASSWORD],
        ["The same password again", PASSWORD],
        ["Sender", ""],
        [`Write this to ${config}?`, ""],
      ],
    );
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining(`Written: ${config}`)]);
    for (const secret of [PASSWORD, simulator.clientId]) expect(stdout).not.toContain(secret);
    const names = ["client-id", "inlet.yaml", "password-supplier.example"];
    expect((await readdir(join(folder, "etc"))).toSorted()).toEqual(names);
    for (const name of names) expect((await stat(join(folder, "etc", name))).mode & 0o777).toBe(0o600);
    expect(await readFile(join(folder, "etc/password-supplier.example"), "utf8")).toBe(`${PASSWORD}\n`);
    expect((await callCommand(["once", "--config", config], FREE)).outcome).toBe("fine");
    expect(await readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
  });

  test("writes nothing after a no or Ctrl-C", async () => {
    const { simulator, folder, config, inbox } = await setUp();
    const given = ["--base-url", simulator.url, "--mailbox", MAILBOX, "--inbox", inbox];
    const no = await converse(
      ["init", "--config", config, ...given],
      [
        ["Client id", ""],
        ["Sender", ""],
        ["Write this to", "n"],
      ],
    );
    expect(no).toMatchObject({ exitCode: 0, stdout: expect.stringContaining("Nothing was written.") });
    const ended = await converse(["init", "--config", config, ...given], [["Client id", "\u0003"]]);
    expect(ended.exitCode).toBe(130);
    expect(await readdir(folder)).toEqual([]);
  });
});

describe("without a terminal", () => {
  test("creates a client id, asks for its registration, and uses it again the next time", async () => {
    const { simulator, folder, config, inbox } = await setUp();
    const args = ["init", "--yes", "--config", config, "--base-url", simulator.url];
    args.push("--mailbox", MAILBOX, "--inbox", inbox);
    const first = await runProgram(args);
    expect(first.exitCode).toBe(3);
    const clientIdFile = join(folder, "etc/client-id");
    expect(first.stderr).toContain(`register the client id in ${clientIdFile} for ${MAILBOX}`);
    expect(first.stderr).toContain(`inlet verify-address ${MAILBOX} --config ${config}`);
    const clientId = await readFile(clientIdFile, "utf8");
    expect(first.stderr).not.toContain(clientId.trim());
    await expect(callCommand(args)).rejects.toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining("exists: choose another file"),
    });
    const before = await readFile(config, "utf8");
    const forced = await callCommand([...args, "--force", "--json", "--mailbox", "b@example.com"]);
    expect(JSON.parse(forced.stdout)).toEqual({
      config,
      backup: `${config}.bak`,
      secrets: [],
      unregistered: [MAILBOX, "b@example.com"],
    });
    expect(await readFile(`${config}.bak`, "utf8")).toBe(before);
    expect(await readFile(clientIdFile, "utf8")).toBe(clientId);
    const text = await readFile(config, "utf8");
    await expectNamedFile(text);
    expect(parse(text)).toMatchObject({
      service: { baseUrl: simulator.url, clientId: { file: clientIdFile } },
      mailboxes: [{ email: MAILBOX }, { email: "b@example.com" }],
    });
  });

  test("refers to the files that hold secrets already, and stores a client id from standard input", async () => {
    const { simulator, folder, config, inbox } = await setUp();
    const file = join(folder, "supplier");
    await writeFile(file, "Sunny-42\n");
    const { exitCode, stderr } = await runProgram(
      [
        ...["init", "--yes", "--config", config, "--base-url", simulator.url, "--mailbox", MAILBOX],
        ...["--inbox", inbox, "--client-id-file", "-", "--password-file", `*@supplier.example=${file}`],
      ],
      { input: `${simulator.clientId}\n` },
    );
    expect(exitCode).toBe(0);
    expect(stderr).not.toContain(simulator.clientId);
    expect(parse(await readFile(config, "utf8"))).toMatchObject({
      service: { clientId: { file: join(folder, "etc/client-id") } },
      mailboxes: [{ passwords: [{ sender: "*@supplier.example", password: { file } }] }],
    });
    expect((await stat(config)).mode & 0o777).toBe(0o600);
  });

  test("names no page of the project in its help: a package may have them elsewhere", async () => {
    const { stdout } = await runProgram(["init", "--help"]);
    expect(stdout).not.toMatch(/[\s(](docs|config|systemd)\/\w/);
  });

  test("names missing options, and refuses wrong ones before anything is written", async () => {
    const { simulator, folder, config, inbox } = await setUp();
    const refuse = (...args: string[]) => expect(callCommand(["init", "--config", config, ...args])).rejects;
    const url = ["--base-url", simulator.url];
    const rest = ["--yes", "--mailbox", MAILBOX, "--inbox", inbox];
    await refuse().toThrow("no terminal to ask on: add --base-url, --mailbox, --inbox, --yes");
    await refuse(...url, "--yes", "--inbox", inbox).toThrow("--yes asks no questions: add --mailbox");
    await refuse(...url, ...rest, "--mailbox", "orders").toThrow('"orders" is not an email address');
    await refuse(...url, ...rest, "--state", join(inbox, "state")).toThrow("is inside the inbox");
    await refuse("--base-url", "http://127.0.0.1:1", ...rest).toMatchObject({
      code: "SERVICE_UNREACHABLE",
      // No daemon runs that would try again.
      advice: expect.stringMatching(
        /^Check that the address is right, .* Nothing was written\. .* add --no-test\.$/,
      ),
    });
    await refuse("--base-url", "transfer.example.com", ...rest).toThrow("write https://transfer.example.com");
    const missing = join(folder, "missing");
    await refuse(...url, ...rest, "--client-id-file", missing).toThrow(`${missing} does not exist`);
    await refuse(...url, ...rest, "--client-id-file", folder).toThrow(`${folder} is a folder: name a file`);
    const twoLines = join(folder, "two-lines");
    await writeFile(twoLines, "one\ntwo\n");
    await refuse(...url, ...rest, "--client-id-file", twoLines).toMatchObject({
      code: "CONFIG_INVALID",
      message: expect.stringContaining(`${twoLines} has several lines, or a control character`),
    });
    await rm(twoLines);
    const empty = join(folder, "etc", "empty");
    await writeFile(empty, "\n");
    await refuse(...url, ...rest, "--client-id-file", empty).toThrow(`${empty} is empty`);
    await refuse(...url, ...rest, "--password-file", `*=${empty}`).toThrow(`${empty} is empty`);
    await rm(empty);
    expect(await readdir(folder)).toEqual(["etc"]);
    expect(await readdir(join(folder, "etc"))).toEqual([]);
  });
});

const FREE = { INLET_LIMITS__MINFREESPACE: "1KiB", INLET_HTTP__LISTEN: "false" };

/** The header of a written file names a file of the installed package. */
async function expectNamedFile(text: string): Promise<void> {
  const [, example = ""] = /^# .* explained in (\/.*)\.\n/.exec(text) ?? [];
  expect(await readFile(example, "utf8")).toContain("mailboxes:");
}

async function setUp() {
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1" })] });
  const folder = await makeFolder();
  return { simulator, folder, config: join(folder, "etc/inlet.yaml"), inbox: join(folder, "inbox") };
}
