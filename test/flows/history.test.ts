/** `inlet history`, for people and programs, on the journal of a real run. */
import { appendFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callCommand } from "../support/command.ts";
import { type Installation, install } from "../support/installation.ts";
import { runOnTerminal, runProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

test("lists delivered and quarantined transfers, for programs and for people", async () => {
  const { config } = await delivered();
  const lines = await runProgram(["history", "--config", config]);
  expect([lines.exitCode, lines.stderr]).toEqual([0, ""]);
  const cells = lines.stdout.trim().split("\n");
  expect(cells.map((line) => line.split("\t").slice(1, 5).join(" ")).toSorted()).toEqual([
    `delivered ${MAILBOX} anna@supplier.example t1`,
    `quarantined ${MAILBOX} anna@supplier.example t2`,
  ]);
  const { stdout } = await callCommand(["history", "--config", config, "--json", "--state", "quarantined"]);
  expect(JSON.parse(stdout)).toMatchObject([{ trackingId: "t2", reason: "CHECKSUM_MISMATCH" }]);
  const table = await runOnTerminal(["history", "--config", config, "--text", "T1", "--changes"]);
  expect(table.stdout).toMatch(/WHEN \(\S+\) +STATE +MAILBOX +SENDER +TRACKING ID +REASON +FOLDER/);
  expect(table.stdout).toMatch(/delivered.*delivering.*downloading.*discovered/s);
  expect(table.stdout).toMatch(
    /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}delivered .* t1 .*anna@supplier\.example\/t1/,
  );
});

test("exports an audit: every change of state, and who did what, in the order of time", async () => {
  const { config } = await delivered();
  await callCommand(["discard", "--config", config, "t2", "--yes"]);
  await callCommand(["once", "--config", config]);
  const audit = ["history", "--config", config, "--changes", "--actions", "--since", "1d"];
  const { stdout } = await callCommand([...audit, "--json"]);
  const entries = JSON.parse(stdout) as { at: string; act?: string; who?: string; state?: string }[];
  expect(entries.map(({ at }) => at)).toEqual(
    entries
      .map(({ at }) => at)
      .toSorted()
      .toReversed(),
  );
  expect(entries.filter(({ act }) => act === "discard")).toMatchObject([
    { trackingId: "t2", who: expect.any(String), from: expect.any(String) },
  ]);
  for (const state of ["discovered", "downloading", "delivered", "quarantined"]) {
    expect(entries.map((entry) => entry.state)).toContain(state);
  }
  await expect(callCommand(audit)).rejects.toThrow("only if --json is given");
});

test("reports damaged lines, a limit that was reached, and an empty result", async () => {
  const { config, inbox } = await delivered();
  const journal = join(inbox, ".inlet/journal");
  const [file = ""] = await readdir(journal);
  await appendFile(join(journal, file), "torn");
  const one = await callCommand(["history", "--config", config, "--limit", "1"]);
  expect(one).toMatchObject({ outcome: "fine" });
  expect(one.stdout.trim().split("\n")).toHaveLength(1);
  expect(one.stderr).toContain(`damaged: 1 line of ${join(journal, file)}.`);
  expect(one.stderr).toContain("Show more with --limit");
  const none = await callCommand(["history", "--config", config, "--sender", "unknown@*"]);
  expect(none).toMatchObject({ outcome: "fine", stdout: "" });
  expect(none.stderr).toContain("No transfer matches.");
});

/** Two transfers, one of which is quarantined. */
async function delivered(): Promise<Installation> {
  const wrong = transferPlan({
    trackingId: "t2",
    files: [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" }],
  });
  const installation = await install({ transfers: [transferPlan({ trackingId: "t1" }), wrong] });
  expect((await callCommand(["once", "--config", installation.config])).outcome).toBe("attention");
  return installation;
}
