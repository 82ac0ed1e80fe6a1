/** `inlet config` and `inlet version`: they ask neither the service nor a daemon. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callCommand } from "../support/command.ts";
import { install } from "../support/installation.ts";
import { runProgram } from "../support/program.ts";
import { ROOT } from "../support/root.ts";
import { MAILBOX, PASSWORD } from "../support/settings.ts";

describe("inlet config check", () => {
  test("exits with 0 for a valid configuration, and asks nothing of the service", async () => {
    const { config, simulator } = await install();
    const { exitCode, stdout, stderr } = await runProgram(["config", "check", "--config", config]);
    expect([exitCode, stdout]).toEqual([0, ""]);
    expect(stderr).toBe(`${config} is valid: 1 mailbox, embedded queue\n`);
    const { stdout: json } = await callCommand(["config", "check", "--config", config, "--json"]);
    expect(JSON.parse(json)).toEqual({ valid: true, source: config, problems: [], warnings: [] });
    expect(Object.values(simulator.totals()).every((count) => count === 0)).toBe(true);
  });

  test("lists every problem, and exits with 2", async () => {
    const { config } = await install();
    const text = (await readFile(config, "utf8")).replace('"200ms"', '"soon"').replace("inbox", "inbx");
    await writeFile(config, text);
    const { exitCode, stdout } = await runProgram(["config", "check", "--config", config]);
    expect(exitCode).toBe(2);
    expect(stdout).toMatch(/: inbx: unknown key, did you mean inbox\?\n/);
    expect(stdout).toMatch(/:\d+:\d+: mailboxes\[0\]\.poll: "soon" is not a duration/);
    const asJson = await runProgram(["config", "check", "--config", config, "--json"]);
    expect(asJson.exitCode).toBe(2);
    expect(JSON.parse(asJson.stdout)).toMatchObject({ valid: false, problems: stdout.trim().split("\n") });
  });

  test("reads secrets, unless it shall not", async () => {
    const { config, rewrite, simulator } = await install();
    await rewrite({ service: { baseUrl: simulator.url, clientId: { credential: "secret_client-id" } } });
    const { exitCode, stdout } = await runProgram(["config", "check", "--config", config]);
    expect([exitCode, stdout]).toEqual([2, expect.stringContaining("CREDENTIALS_DIRECTORY is not set")]);
    expect((await runProgram(["config", "check", "--config", config, "--no-secrets"])).exitCode).toBe(0);
  });
});

test("inlet config schema prints the schema that editors use, also without a configuration", async () => {
  const { exitCode, stdout, stderr } = await runProgram(["config", "schema"]);
  expect([exitCode, stderr]).toEqual([0, ""]);
  expect(stdout).toBe(await readFile(join(ROOT, "config/inlet.schema.json"), "utf8"));
});

describe("inlet config show", () => {
  test("shows each value with its source, without secrets, or one key or group, and exits with 2 without a valid configuration", async () => {
    const { config, inbox, simulator } = await install();
    const env = { INLET_LIMITS__TRANSFERS: "2" };
    const { exitCode, stdout } = await runProgram(["config", "show", "--config", config], { env });
    expect(exitCode).toBe(0);
    const rows = stdout.trimEnd().split("\n");
    expect(rows).toContain(`mailboxes[0].email\t${MAILBOX}\t${config}:16`);
    expect(rows).toContain("limits.transfers\t2\tINLET_LIMITS__TRANSFERS");
    expect(rows).toContain("keep.ledger\t90d\tdefault");
    expect(rows).toContain(`work\t${join(inbox, ".inlet")}\tdefault`);
    for (const secret of [PASSWORD, simulator.clientId]) expect(stdout).not.toContain(secret);
    const show = (...words: string[]) => runProgram(["config", "show", "--config", config, ...words]);
    expect((await show("limits.maxFiles")).stdout).toBe("limits.maxFiles\t100000\tdefault\n");
    const group = JSON.parse((await show("limits", "--json")).stdout) as { key: string }[];
    expect(group.map(({ key }) => key)).toContain("limits.maxFiles");
    expect(group.every(({ key }) => key.startsWith("limits."))).toBe(true);
    const wrong = await show("limits.maxFils");
    expect([wrong.exitCode, wrong.stderr]).toEqual([
      2,
      expect.stringContaining("did you mean limits.maxFiles?"),
    ]);
    const unset = await show("mailboxes[0].quiet");
    expect([unset.exitCode, unset.stderr]).toEqual([
      2,
      expect.stringContaining("is not set, and has no default"),
    ]);
    await writeFile(config, "inbox: [");
    expect((await show()).exitCode).toBe(2);
    await rm(config);
    expect((await show()).exitCode).toBe(2);
  });
});

test("inlet version names Inlet, Node and the platform, and needs no configuration", async () => {
  const { version } = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
  const { exitCode, stdout } = await runProgram(["version"]);
  expect(exitCode).toBe(0);
  expect(stdout).toContain(`Inlet ${version}, Node ${process.versions.node}, linux ${process.arch}`);
  expect(JSON.parse((await runProgram(["version", "--json"])).stdout)).toMatchObject({
    inlet: version,
    node: process.versions.node,
    platform: "linux",
  });
});
