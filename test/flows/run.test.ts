/** `inlet run` and `inlet once`: start, stop and exit codes. */

import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { install } from "../support/installation.ts";
import { end, finish, logOf, runOnTerminal, runProgram, startProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX, PASSWORD } from "../support/settings.ts";

describe("inlet once", () => {
  test("delivers everything, prints a summary or JSON, and exits with 0", async () => {
    const { config, inbox, simulator } = await install();
    const { exitCode, stdout, stderr } = await finish(startProgram(["once", "--config", config]));
    expect([exitCode, stdout]).toEqual([0, ""]);
    expect(stderr).toContain("1 delivered, 0 waiting, 0 quarantined, 0 gone.");
    expect(await readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
    simulator.addTransfer(transferPlan({ trackingId: "t2" }));
    const second = await runProgram(["once", "--config", config, "--json"]);
    expect(JSON.parse(second.stdout)).toMatchObject([
      { mailbox: MAILBOX, trackingId: "t2", state: "delivered" },
    ]);
  });

  test("exits with 3 while a transfer or an address needs attention, and with 4 if the service cannot be reached", async () => {
    const { config, rewrite, simulator } = await install({
      transfers: [transferPlan({ trackingId: "t1", password: "unknown-Pass:9" })],
    });
    const output: string[] = [];
    for (let round = 0; round < 2; round++) {
      const { exitCode, stderr } = await runProgram(["once", "--config", config]);
      expect(exitCode).toBe(3);
      output.push(stderr);
    }
    expect(output[0]).toContain("1 waiting, 0 quarantined, 0 gone.\n");
    expect(output[1]).toContain(
      "0 waiting, 0 quarantined, 0 gone.\n1 more is open, from earlier runs or after delivery",
    );
    const unreachable = await install({});
    await unreachable.simulator.close();
    expect((await runProgram(["once", "--config", unreachable.config])).exitCode).toBe(4);
    // A person has to register the client id.
    await rewrite({ service: { baseUrl: simulator.url, clientId: "u".repeat(60) } });
    const { exitCode, stderr } = await runProgram(["once", "--config", config]);
    expect(exitCode).toBe(3);
    expect(stderr).toContain("register the client id for this address, or verify it with a mailed code: ");
    expect(stderr).toContain(`inlet verify-address ${MAILBOX}`);
  });
});

test.each(["run", "once"])(
  "%s refuses a work folder of a newer Inlet, and changes nothing",
  async (command) => {
    const { config, inbox } = await install();
    const work = join(inbox, ".inlet");
    await runProgram(["once", "--config", config]);
    expect(await readFile(join(work, "format"), "utf8")).toMatch(/^5 \d+\.\d+\.\d+\n$/);
    await writeFile(join(work, "format"), "6 7.1.0\n");
    const before = await readdir(work, { recursive: true });
    const { exitCode, stdout, stderr } = await runProgram([command, "--config", config]);
    const printed = command === "run" ? stdout : stderr;
    expect([exitCode, printed]).toEqual([
      2,
      expect.stringContaining("was used by Inlet 7.1.0, and this is "),
    ]);
    expect(await readdir(work, { recursive: true })).toEqual(before);
  },
);

describe("inlet run", () => {
  test("delivers new transfers, logs JSON without secrets to a pipe, and exits with 0 on SIGTERM", async () => {
    const { config, inbox, simulator } = await install();
    const daemon = startProgram(["run", "--config", config]);
    const logged = logOf(daemon);
    await expect.poll(logged).toContain('"msg":"delivered"');
    simulator.addTransfer(transferPlan({ trackingId: "t2" }));
    await expect.poll(() => readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toHaveLength(2);
    await end(daemon);
    expect(JSON.parse(logged().trim().split("\n").at(-1) ?? "")).toMatchObject({ msg: "stopped" });
    for (const secret of [PASSWORD, simulator.clientId]) expect(logged()).not.toContain(secret);
  });

  test("locks its inbox: a second one names the holder, and exits with 2", async () => {
    const { config, simulator } = await install();
    const first = startProgram(["run", "--config", config]);
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    const second = await runProgram(["run", "--config", config]);
    expect(second.exitCode).toBe(2);
    const lines = second.stdout.trim().split("\n");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      level: "fatal",
      fault: {
        code: "INBOX_HELD",
        message: expect.stringContaining(
          `Another Inlet holds the lock on this inbox: process ${first.pid} on `,
        ),
      },
    });
    expect(second.stderr).toBe("");
  });

  test("logs a refused start as JSON to a pipe, prints it on a terminal, and changes nothing", async () => {
    const { config, folder } = await install();
    await writeFile(config, (await readFile(config, "utf8")).replace("mailboxes", "mailboxs"));
    const { exitCode, stdout, stderr } = await runProgram(["run", "--config", config]);
    expect([exitCode, stderr]).toEqual([2, ""]);
    expect(JSON.parse(stdout)).toMatchObject({
      level: "fatal",
      msg: "ended by a fault",
      fault: { code: "CONFIG_INVALID", message: expect.stringContaining("mailboxs: unknown key") },
    });
    const shown = await runOnTerminal(["run", "--config", config]);
    expect(shown.exitCode).toBe(2);
    expect(shown.stdout).toMatch(/^inlet: The configuration .*problems\r\n.*mailboxs: unknown key/s);
    expect(await readdir(folder)).toEqual(["inlet.yaml"]);
  });

  test("logs an unexpected exception as JSON, with its stack, and exits with 1", async () => {
    const { config, folder } = await install();
    const broken = join(folder, "broken.mjs");
    await writeFile(broken, 'setTimeout(() => { throw new TypeError("not foreseen"); }, 1_000);');
    const env = { NODE_OPTIONS: `--import ${broken}` };
    const { exitCode, stdout, stderr } = await runProgram(["run", "--config", config], { env });
    expect([exitCode, stderr]).toEqual([1, ""]);
    const lines = stdout.trim().split("\n");
    expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({
      level: "fatal",
      fault: { code: "UNEXPECTED", message: expect.stringContaining("not foreseen") },
      stack: expect.stringContaining("broken.mjs"),
    });
  });

  test("suspends running downloads when stopped, and exits at once on a second signal; nothing is lost", async () => {
    const { config, simulator, inbox } = await install({
      transfers: [
        transferPlan({ trackingId: "t1", files: [{ name: "large", generate: { bytes: 9_000_000 } }] }),
      ],
      faults: [{ on: "file", does: { kind: "stall", afterBytes: 5_000_000 } }],
    });
    const daemon = startProgram(["run", "--config", config]);
    await expect.poll(() => simulator.totals().file).toBe(1);
    const logged = logOf(daemon);
    daemon.kill("SIGTERM");
    await expect.poll(logged).toContain('"msg":"stopping"');
    daemon.kill("SIGTERM");
    expect(await once(daemon, "exit")).toEqual([130, null]);
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
    expect(await readdir(join(inbox, MAILBOX, "anna@supplier.example"))).toEqual(["t1"]);
  });
});
