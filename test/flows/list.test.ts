/** `inlet list`, `inlet history` and `inlet show`, for people and programs, on the work folder of a real run. */
import { appendFile, mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { ledgerPaths, nameOf } from "../../src/ledger/paths.ts";
import type { TransferView } from "../../src/model/views.ts";
import { callCommand, listJson } from "../support/command.ts";
import { type Installation, install, mailboxKeys } from "../support/installation.ts";
import { runOnTerminal, runProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const SENDER = "anna@supplier.example";
const KEYS =
  "mailbox trackingId transferId sender state reason message until expires folder inbox route subject files bytes verified released passwordsSpent round at".split(
    " ",
  );

test("inlet list and inlet history show every transfer with its state, for people and for programs", async () => {
  const { config } = await received();
  for (const command of ["list", "history"]) {
    const piped = await runProgram([command, "--config", config]);
    expect([piped.exitCode, piped.stderr]).toEqual([0, ""]);
    const cells = piped.stdout.trim().split("\n");
    expect(cells.map((line) => line.split("\t").slice(1, 6).join(" ")).toSorted()).toEqual([
      `delivered ${MAILBOX} ${SENDER} t1 `,
      `quarantined ${MAILBOX} ${SENDER} t2 CHECKSUM_MISMATCH`,
      `waiting ${MAILBOX} ${SENDER} t3 password`,
    ]);
  }
  const list = await runOnTerminal(["list", "--config", config]);
  const history = await runOnTerminal(["history", "--config", config, "--text", "T1", "--changes"]);
  for (const { stdout } of [list, history]) {
    expect(stdout).toMatch(/WHEN \(\S+\) +STATE +MAILBOX +SENDER +TRACKING ID +REASON +FOLDER/);
    expect(stdout).toMatch(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}delivered .* t1 .*anna@supplier\.example\/t1/);
  }
  expect(history.stdout).toMatch(/delivered.*delivering.*downloading.*discovered/s);
  const { stdout } = await callCommand(["history", "--config", config, "--json", "--state", "quarantined"]);
  expect(JSON.parse(stdout)).toMatchObject([{ trackingId: "t2", reason: "CHECKSUM_MISMATCH" }]);
});

describe("inlet list", () => {
  test("prints one JSON object per line, each with every key, and selects by options", async () => {
    const { config } = await received();
    const idsOf = (listed: readonly TransferView[]) => listed.map(({ trackingId }) => trackingId).toSorted();
    const listed = await listJson(config);
    expect(idsOf(listed)).toEqual(["t1", "t2", "t3"]);
    for (const transfer of listed) expect(Object.keys(transfer)).toEqual(KEYS);
    expect(listed.toSorted((a, b) => a.trackingId.localeCompare(b.trackingId))).toMatchObject([
      {
        state: "delivered",
        folder: `${MAILBOX}/${SENDER}/t1`,
        verified: "all",
        round: 1,
        at: { discovered: expect.any(String), delivered: expect.any(String) },
      },
      { state: "quarantined" },
      { reason: "password", passwordsSpent: 1, folder: null },
    ]);
    for (const [options, ids] of [
      [["--state", "waiting"], ["t3"]],
      [
        ["--sender", "ANNA@*", "--mailbox", "orders@*"],
        ["t1", "t2", "t3"],
      ],
      [["--sender", "bob@*"], []],
      [["--mailbox", "other"], []],
    ] as const) {
      expect(idsOf(await listJson(config, ...options))).toEqual(ids);
    }
    const [newest] = listed.toSorted((a, b) => compareTimes(b, a));
    const { stdout, stderr } = await callCommand(["list", "--config", config, "--limit", "1"]);
    expect(stdout.trim().split("\n")).toHaveLength(1);
    expect(stdout).toContain(`\t${newest?.trackingId}\t`);
    expect(stderr).toContain("newest 1 of 3 transfers");
    expect(await listJson(config, "--limit", "1")).toEqual([newest]);
  });

  test("reports that no transfer matches, also before the first run, and names a damaged record", async () => {
    const { config, inbox } = await install();
    const { outcome, stdout, stderr } = await callCommand(["list", "--config", config]);
    expect([outcome, stdout, stderr]).toEqual(["fine", "", "No transfer matches.\n"]);
    expect(await listJson(config)).toEqual([]);
    await expect(readdir(inbox)).rejects.toMatchObject({ code: "ENOENT" });
    const paths = ledgerPaths(join(inbox, ".inlet"));
    const path = paths.end(nameOf({ mailbox: MAILBOX, trackingId: "damaged" }), 1);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '{"version":');
    const damaged = await callCommand(["list", "--config", config]);
    expect(damaged.stderr).toContain("Skipped 1 unreadable record");
    expect(damaged.stderr).toContain(path);
  });
});

test("inlet history exports an audit, and reports damaged lines, a limit that was reached, and an empty result", async () => {
  const { config, inbox } = await received();
  await callCommand(["discard", "--config", config, "t2", "--yes"]);
  await callCommand(["once", "--config", config]);
  const audit = ["history", "--config", config, "--changes", "--actions", "--since", "1d"];
  const { stdout } = await callCommand([...audit, "--json"]);
  const entries = JSON.parse(stdout) as { at: string; act?: string; who?: string; state?: string }[];
  const times = entries.map(({ at }) => at);
  expect(times).toEqual(times.toSorted().toReversed());
  expect(entries.filter(({ act }) => act === "discard")).toMatchObject([
    { trackingId: "t2", who: expect.any(String), from: expect.any(String) },
  ]);
  for (const state of ["discovered", "downloading", "delivered", "quarantined"]) {
    expect(entries.map((entry) => entry.state)).toContain(state);
  }
  await expect(callCommand(audit)).rejects.toThrow("only if --json is given");
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

test("inlet show shows the rounds, the reason and the commands that apply, and refuses an unknown transfer", async () => {
  const { config, inbox } = await received();
  const { exitCode, stdout } = await runProgram(["show", "t2", "--config", config]);
  expect(exitCode).toBe(0);
  expect(stdout).toMatch(/State +quarantined \(CHECKSUM_MISMATCH\), since \d{4}-/);
  expect(stdout).toContain(
    join(inbox, ".inlet/quarantine", `${nameOf({ mailbox: MAILBOX, trackingId: "t2" })}~1`),
  );
  expect(stdout).toMatch(/Rounds:\n {2}1, discovered\n {5}quarantined \(CHECKSUM_MISMATCH\), /);
  for (const action of ["retry", "release", "discard"]) {
    expect(stdout.split("\n")).toContain(`  inlet ${action} --config ${config} t2`);
  }
  expect(stdout).not.toContain("inlet redeliver");
  expect(stdout).not.toContain("inlet password");
  await callCommand(["release", "t2", "--config", config, "--yes"]);
  await callCommand(["once", "--config", config]);
  expect(await showJson(config, "t2")).toMatchObject({
    state: "delivered",
    round: 2,
    released: { reason: "CHECKSUM_MISMATCH" },
    rounds: [
      { round: 1, ended: { outcome: "quarantined" } },
      { round: 2, begun: { why: "release" }, ended: { outcome: "delivered" } },
    ],
  });
  const show = (...words: string[]) => callCommand(["show", ...words, "--config", config]);
  const unknown = { code: "NO_SUCH_TRANSFER" };
  await expect(show("nothing")).rejects.toMatchObject({
    ...unknown,
    message: expect.stringContaining('"nothing"'),
  });
  await expect(show("t1", "--mailbox", "other")).rejects.toThrow("mailbox other");
});

function compareTimes(one: TransferView, other: TransferView): number {
  return Date.parse(one.at[one.state] ?? "") - Date.parse(other.at[other.state] ?? "");
}

async function showJson(config: string, trackingId: string): Promise<TransferView> {
  return JSON.parse((await callCommand(["show", trackingId, "--json", "--config", config])).stdout);
}

/** Three transfers: one delivered, one quarantined, one waiting after a refused password. */
async function received(): Promise<Installation> {
  const mailboxes = [{ ...mailboxKeys(MAILBOX), passwordAttempts: 4 }];
  const files = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
  const transfers = [
    transferPlan({ trackingId: "t1" }),
    transferPlan({ trackingId: "t2", files }),
    transferPlan({ trackingId: "t3", password: "another-Password:1" }),
  ];
  const installation = await install({ transfers }, { mailboxes });
  expect((await callCommand(["once", "--config", installation.config])).outcome).toBe("attention");
  return installation;
}
