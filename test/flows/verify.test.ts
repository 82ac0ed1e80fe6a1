/** `inlet verify` on real deliveries. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callCommand } from "../support/command.ts";
import { type Installation, install } from "../support/installation.ts";
import { makeFolder, runOnTerminal, runProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

test("verifies a whole inbox, with messages and the configured marker", async () => {
  const { inbox, config } = await delivered({ handoff: { marker: "done" } });
  const { exitCode, stdout, stderr } = await runProgram(["verify", inbox, "--config", config]);
  expect(exitCode).toBe(0);
  expect(stderr).toMatch(/^2 folders, 5 files, .*: all as they were delivered\.\n$/);
  expect(
    stdout
      .trim()
      .split("\n")
      .every((line) => line.startsWith("ok\t")),
  ).toBe(true);
  expect((await callCommand(["verify", inbox])).outcome).toBe("attention");
  expect((await callCommand(["verify", inbox, "--allow", "done"])).outcome).toBe("fine");
});

test("exits with 3 if something differs, and names it for people and programs", async () => {
  const { inbox } = await delivered();
  const folder = join(inbox, MAILBOX, "anna@supplier.example/t1");
  await writeFile(join(folder, "a.txt"), "HELLO");
  const lines = await runProgram(["verify", folder]);
  expect(lines.exitCode).toBe(3);
  expect(lines.stdout).toContain(`changed\t${join(folder, "a.txt")}\thas other content\n`);
  const json = await callCommand(["verify", "--json", inbox]);
  expect(json.outcome).toBe("attention");
  const folders = JSON.parse(json.stdout) as { folder: string; status: string }[];
  expect(folders.map(({ status }) => status).toSorted()).toEqual(["differs", "ok"]);
  const terminal = await runOnTerminal(["verify", inbox]);
  expect(terminal.stdout).toContain("changed: a.txt has other content");
  expect(terminal.stdout).toContain("1 folder differs from what was delivered.");
});

test.each([
  ["beside the folder", { manifest: "beside", done: true }, "{trackingId}"],
  ["nowhere but in the work folder", { manifest: "none" }, "{trackingId}"],
  ["beside single files", { deliver: "files", manifest: "beside", done: true }, "flat"],
  ["nowhere, for single files", { deliver: "files" }, "flat"],
])("finds deliveries whose manifest is %s, and their changes", async (_, handoff, layout) => {
  const { inbox, config } = await delivered({ handoff, defaults: { layout } });
  const fine = await runProgram(["verify", inbox, "--config", config]);
  expect([fine.exitCode, fine.stderr]).toEqual([0, expect.stringMatching(/^2 folders, 5 files, /)]);
  const changed = join(inbox, layout === "flat" ? "flat/t1_a.txt" : "t1/a.txt");
  await writeFile(changed, "HELLO");
  const { exitCode, stdout } = await runProgram(["verify", inbox, "--config", config]);
  expect([exitCode, stdout]).toEqual([3, expect.stringContaining(`changed\t${changed}\thas other content`)]);
});

test("refuses folders that cannot be verified, with the reason", async () => {
  const folder = await makeFolder();
  await expect(callCommand(["verify", folder])).rejects.toThrow("holds no delivered folder");
  const gone = await runProgram(["verify", "--json", join(folder, "gone")]);
  expect(gone.exitCode).toBe(2);
  expect(JSON.parse(gone.stderr).error.message).toContain("does not exist");
});

async function delivered(settings: Record<string, unknown> = {}): Promise<Installation> {
  const transfers = [
    transferPlan({ trackingId: "t1" }),
    transferPlan({ trackingId: "t2", message: "Good morning\n" }),
  ];
  const installation = await install({ transfers }, settings);
  expect((await callCommand(["once", "--config", installation.config])).outcome).toBe("fine");
  return installation;
}
