/** I2 once: work and state folders that this version or an earlier one wrote continue to work. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { listJson } from "../support/command.ts";
import { readTree } from "../support/daemon.ts";
import { makeFolder, runCommand, runProgram } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";
import {
  configureFixture,
  FIXTURE_SERVICE,
  FIXTURE_STATES,
  FIXTURE_TRANSFERS,
  FIXTURES,
} from "../support/work-fixture.ts";

const fixtures = (await readdir(FIXTURES)).filter((name) => name.startsWith("work-format-"));

describe.each(fixtures)("%s", (fixture) => {
  test("every transfer of the old folders is listed with its state, its rounds and its password attempts", async () => {
    const folder = await unpack(fixture);
    const service = { url: FIXTURE_SERVICE, clientId: "c".repeat(64) };
    const config = await configureFixture({ folder, service, command: ["false"] });
    const transfers = await listJson(config);
    expect(Object.fromEntries(transfers.map((it) => [it.trackingId, it.state]))).toEqual(FIXTURE_STATES);
    const found = Object.fromEntries(transfers.map((it) => [it.trackingId, it]));
    expect(found["to-wait"]).toMatchObject({ reason: "password", passwordsSpent: 1 });
    expect(found["to-redeliver"]).toMatchObject({ round: 2 });
    const { stdout } = await runProgram(["history", "--config", config, "--json", "--changes"]);
    for (const trackingId of Object.keys(FIXTURE_STATES)) expect(stdout).toContain(`"${trackingId}"`);
  });

  test("old folders are continued: new transfers and due hand-offs are done, and nothing is delivered twice", async () => {
    const folder = await unpack(fixture);
    const inbox = join(folder, "inbox");
    const before = await readTree(inbox);
    const service = await openTestSimulator({
      transfers: [...FIXTURE_TRANSFERS, transferPlan({ trackingId: "later" })],
    });
    const command = ["sh", "-c", `echo "$INLET_TRACKING_ID" >> '${folder}/handed'`];
    const config = await configureFixture({ folder, service, command });
    const once = await runProgram(["once", "--config", config]);
    expect([once.exitCode, once.stderr]).toEqual([3, expect.any(String)]);
    const after = Object.entries(await readTree(inbox));
    const kept = after.filter(([path]) => !path.startsWith(`${MAILBOX}/anna@supplier.example/later/`));
    expect(Object.fromEntries(kept)).toEqual(before);
    expect(after.length).toBeGreaterThan(kept.length);
    expect(await readFile(join(folder, "handed"), "utf8")).toBe("to-hand-over\n");
    // The service has another address now, and the attempts at its transfers count nevertheless.
    expect(service.refusedPasswords("to-wait")).toEqual([]);
    const transfers = await listJson(config);
    expect(transfers.find((it) => it.trackingId === "to-wait")).toMatchObject({ passwordsSpent: 1 });
    const states = transfers.map((it) => [it.trackingId, it.state]);
    expect(Object.fromEntries(states)).toMatchObject({
      ...FIXTURE_STATES,
      "to-hand-over": expect.any(String),
      later: "delivered",
    });
  });
});

async function unpack(fixture: string): Promise<string> {
  const folder = await makeFolder();
  const unpacked = await runCommand("tar", [
    "-xzf",
    join(FIXTURES, fixture),
    "--no-same-owner",
    "-C",
    folder,
  ]);
  expect(unpacked.exitCode).toBe(0);
  return folder;
}
