/** `inlet status`, beside a daemon that runs, and without one. */
import { describe, expect, test } from "vitest";
import { install } from "../support/installation.ts";
import { converse, runProgram, startProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

describe("inlet status", () => {
  test("tells what the daemon knows now, for people, for programs and for health checks", async () => {
    const { config, simulator } = await setUp();
    const daemon = startProgram(["run", "--config", config]);
    daemon.stdout?.resume();
    await expect.poll(() => simulator.refusedPasswords("closed")).toHaveLength(1);
    const read = async () => JSON.parse((await runProgram(["status", "--config", config, "--json"])).stdout);
    await expect.poll(async () => (await read()).recent).toMatchObject([{ trackingId: "t1" }]);
    const { exitCode, stdout } = await runProgram(["status", "--config", config]);
    expect(exitCode).toBe(3);
    expect(stdout).toContain("3 transfers need you");
    expect(stdout).toContain(`process ${daemon.pid}, `);
    expect(stdout).toContain("closed from anna@supplier.example: needs a password");
    expect(stdout).toMatch(/✓ orders@example\.com: polled .* 3 active transfers/);
    expect(stdout).toContain(`${MAILBOX}/anna@supplier.example/t1`);
    for (const what of [[], ["alive"], ["ready"]]) {
      expect((await runProgram(["status", "--config", config, "--health", ...what])).exitCode).toBe(0);
    }
    expect((await read()).daemon.pid).toBe(daemon.pid);
  });

  test("stays with --watch, draws it again, and ends with Ctrl-C", async () => {
    const { config, simulator } = await setUp();
    const daemon = startProgram(["run", "--config", config]);
    daemon.stdout?.resume();
    await expect.poll(() => simulator.refusedPasswords("closed")).toHaveLength(1);
    const { exitCode, stdout } = await converse(
      ["status", "--config", config, "--watch"],
      [["Delivered lately", "\u0003"]],
    );
    expect(exitCode).toBe(0);
    expect(stdout).toContain("\u001b[H");
  });

  test("tells what stands on the disk where no daemon answers, and that no health check would pass", async () => {
    const { config } = await setUp();
    const before = await runProgram(["status", "--config", config]);
    expect([before.exitCode, before.stdout]).toEqual([0, expect.stringContaining("No daemon answers")]);
    await runProgram(["once", "--config", config]);
    const { exitCode, stdout } = await runProgram(["status", "--config", config]);
    expect(exitCode).toBe(3);
    expect(stdout).toContain("closed from anna@supplier.example: needs a password");
    expect(stdout).toContain("wrong from anna@supplier.example: quarantined");
    expect(stdout).toMatch(/t1 from anna@supplier.example: .*\n.*The command after the delivery failed/);
    const health = await runProgram(["status", "--config", config, "--health"]);
    expect([health.exitCode, health.stderr]).toEqual([1, expect.stringContaining("No daemon answers")]);
  });
});

async function setUp() {
  const wrong = [{ name: "a.txt", text: "x", csvChecksum: "wrong" } as const];
  const transfers = [
    transferPlan({ trackingId: "t1" }),
    transferPlan({ trackingId: "closed", password: "unknown-Pass:9" }),
    transferPlan({ trackingId: "wrong", files: wrong }),
  ];
  const keys = { http: { listen: `127.0.0.1:${await freePort()}` }, handoff: { command: ["false"] } };
  return install({ transfers }, keys);
}
