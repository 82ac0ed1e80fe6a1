/** Commands that act: outcomes and exit codes, several transfers, permissions, removed mailboxes, who did what. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, chown, readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { hostname, userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { makeFolder, type RunOptions, runOnTerminal, runProgram, startProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER_USER = 65534;
const RIGHT = "the-Right:1";
const WRONG_SUM = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];

describe("the exit code of a command that acts", () => {
  test("is 3 where a retried transfer waits for a password, and where a password opens one that is wrong", async () => {
    const { inlet, states, config } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", password: RIGHT, files: WRONG_SUM })],
    });
    run(config);
    await expect.poll(states).toEqual({ t1: "waiting" });
    const retried = await inlet(["retry", "t1"]);
    expect([retried.exitCode, retried.stderr]).toEqual([
      3,
      expect.stringMatching(/^t1: needs a password\. /),
    ]);
    const opened = await inlet(["password", "t1", "--json"], { input: RIGHT });
    expect(opened.exitCode).toBe(3);
    expect(JSON.parse(opened.stdout)).toMatchObject({
      trackingId: "t1",
      status: 200,
      state: "quarantined",
      reason: "CHECKSUM_MISMATCH",
      result: "attention",
      text: expect.stringMatching(/^The password was accepted\. t1: in quarantine\. /),
    });
  });

  test("is 4 where the service cannot be reached, or the wait ends first", async () => {
    const { inlet, states, config, simulator } = await setUp({
      transfers: [
        transferPlan({ trackingId: "t1", files: WRONG_SUM }),
        transferPlan({ trackingId: "t2", files: [{ name: "large", generate: { bytes: 9_000_000 } }] }),
      ],
    });
    simulator.addFault({
      on: "file",
      times: "always",
      transfer: "t2",
      does: { kind: "drip", bytes: 10_000, pauseMs: 200 },
    });
    run(config);
    await expect.poll(states).toMatchObject({ t1: "quarantined", t2: "downloading" });
    const late = await inlet(["retry", "t2", "--timeout", "2s"]);
    expect([late.exitCode, late.stderr]).toEqual([
      4,
      expect.stringContaining("t2 is still being downloaded"),
    ]);
    const given = await inlet(["retry", "t2", "--no-wait"]);
    expect([given.exitCode, given.stderr]).toEqual([0, "The order for t2 was given.\n"]);
    simulator.addFault({ on: "info", times: "always", does: { kind: "reset" } });
    const away = await inlet(["retry", "t1"]);
    expect([away.exitCode, away.stderr]).toEqual([
      4,
      expect.stringMatching(/^t1: failed, will be retried, until .*\. /),
    ]);
  });

  test("is 3 where the mailbox is paused, and the order is kept", async () => {
    const { inlet, config, rewrite } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", files: WRONG_SUM })],
    });
    await runProgram(["once", "--config", config]);
    await rewrite({ mailboxes: [{ ...mailboxKeys(MAILBOX), paused: true }] });
    const daemon = run(config);
    await ready(daemon);
    const { exitCode, stderr } = await inlet(["retry", "t1"]);
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining(`its mailbox ${MAILBOX} is paused`)]);
  });

  test("is 0 where a release delivers, and it says where", async () => {
    const { inlet, states, config } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", files: WRONG_SUM })],
    });
    run(config);
    await expect.poll(states).toEqual({ t1: "quarantined" });
    const { exitCode, stderr } = await inlet(["release", "t1", "--yes"]);
    expect([exitCode, stderr]).toEqual([
      0,
      `t1 was delivered on your responsibility to ${MAILBOX}/anna@supplier.example/t1.\n`,
    ]);
  });
});

describe("several transfers", () => {
  test("are named by their ids, or chosen by sender, reason and state, with a confirmation that says how many", async () => {
    const plan = (trackingId: string, from: string) => transferPlan({ trackingId, from, files: WRONG_SUM });
    const { inlet, states, config } = await setUp({
      transfers: [
        plan("t1", "a@x.example"),
        plan("t2", "b@x.example"),
        plan("t3", "c@y.example"),
        transferPlan({ trackingId: "t4" }),
      ],
    });
    run(config);
    await expect
      .poll(states)
      .toEqual({ t1: "quarantined", t2: "quarantined", t3: "quarantined", t4: "delivered" });
    const mixed = await inlet(["release", "t1", "t4", "--yes", "--json"]);
    expect(mixed.exitCode).toBe(2);
    expect(JSON.parse(mixed.stdout)).toMatchObject([
      { trackingId: "t1", result: "fine", state: "delivered" },
      { trackingId: "t4", result: "refused", status: 409 },
    ]);
    for (const args of [["--all"], ["--sender", "*"], ["t2", "--all"], ["t2", "--reason", "x"], []]) {
      expect((await inlet(["discard", ...args])).exitCode).toBe(2);
    }
    const unasked = await inlet(["discard", "--all", "--sender", "*@y.example"]);
    expect([unasked.exitCode, unasked.stderr]).toEqual([2, expect.stringContaining("add --yes")]);
    const asked = await runOnTerminal(
      ["discard", "--all", "--reason", "checksum_mismatch", "--config", config],
      { prompt: "Discard 2 transfers?", input: "y\n" },
    );
    expect([asked.exitCode, asked.stdout]).toEqual([0, expect.stringContaining("t3 was discarded.")]);
    expect(asked.stdout).toContain(`t3 from c@y.example for ${MAILBOX}, quarantined`);
    expect(await states()).toEqual({ t1: "delivered", t2: "gone", t3: "gone", t4: "delivered" });
    const none = await inlet(["retry", "--all", "--yes"]);
    expect([none.exitCode, none.stderr]).toEqual([0, "No transfer matches.\n"]);
  });

  test("of one sender get one password, which is tried for one of them first", async () => {
    const ids = ["t1", "t2", "t3"];
    const { inlet, states, config, simulator } = await setUp({
      transfers: ids.map((trackingId) => transferPlan({ trackingId, password: RIGHT })),
    });
    run(config);
    await expect.poll(states).toEqual({ t1: "waiting", t2: "waiting", t3: "waiting" });
    const args = ["password", "--all", "--sender", "anna@*", "--yes"];
    const wrong = await inlet(args, { input: "wrong-Pass:2" });
    expect(wrong.exitCode).toBe(3);
    expect(wrong.stderr).toContain("2 transfers: The password was not tried");
    const sent = ids.flatMap((id) => simulator.refusedPasswords(id)).filter((it) => it === "wrong-Pass:2");
    expect(sent).toHaveLength(1);
    const right = await inlet(args, { input: RIGHT });
    expect(right.exitCode).toBe(0);
    expect(right.stderr.match(/The password was accepted\. t\d was delivered/g)).toHaveLength(3);
  });
});

test("a transfer of a mailbox that was removed from the configuration is shown, listed and discarded", async () => {
  const { inlet, config, rewrite } = await setUp({
    transfers: [transferPlan({ trackingId: "t1", files: WRONG_SUM })],
  });
  await runProgram(["once", "--config", config]);
  await rewrite({ mailboxes: [mailboxKeys("other@example.com")] });
  expect((await inlet(["list"])).stdout).toContain(`quarantined\t${MAILBOX}`);
  const shown = JSON.parse((await inlet(["show", "t1", "--json"])).stdout);
  const commands = [`inlet discard --config ${config} t1`];
  expect(shown).toMatchObject({ mailbox: MAILBOX, commands });
  // Another shell does not have this variable.
  const byVariable = await runProgram(["show", "t1", "--json"], { env: { INLET_CONFIG: config } });
  expect(JSON.parse(byVariable.stdout).commands).toEqual(commands);
  const retried = await inlet(["retry", "t1"]);
  expect([retried.exitCode, retried.stderr]).toEqual([2, expect.stringContaining("can only be discarded")]);
  await ready(run(config));
  const discarded = await inlet(["discard", "t1", "--mailbox", MAILBOX, "--yes"]);
  expect([discarded.exitCode, discarded.stderr]).toEqual([0, "t1 was discarded.\n"]);
});

describe("a user who may not use the folders", { tags: ["system"] }, () => {
  test("learns whose they are, and what to do", async () => {
    const { config, folder } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", files: WRONG_SUM })],
    });
    await runProgram(["once", "--config", config]);
    await letRead(config, folder);
    const commands = [["list"], ["show", "t1"], ["history"], ["status"], ["retry", "t1"], ["password", "t1"]];
    for (const args of [...commands, ["discard", "t1", "--yes"]]) {
      const options = { user: OTHER_USER, input: "x" };
      const { exitCode, stderr } = await runProgram([...args, "--config", config], options);
      expect([exitCode, stderr]).toEqual([5, expect.stringContaining("This user may not read or act here")]);
      expect(stderr).toMatch(
        /inbox\/\.inlet\S* belongs to root and the group root, mode 0700, and the command runs as nobody/,
      );
      expect(stderr).not.toMatch(/damaged|backup/);
    }
  });

  test("acts through the daemon's socket", async () => {
    const path = join(await makeGroupFolder(), "console.sock");
    const { config, folder } = await setUp(
      {
        transfers: [
          transferPlan({ trackingId: "t1", files: WRONG_SUM }),
          transferPlan({ trackingId: "t2", password: RIGHT }),
        ],
      },
      { http: { listen: `unix:${path}`, actions: true } },
    );
    const daemon = run(config);
    await ready(daemon);
    await letRead(config, folder);
    const inlet = (...args: string[]) =>
      runProgram([...args, "--config", config], { user: OTHER_USER, input: RIGHT });
    await expect.poll(async () => (await inlet("list")).stdout).toMatch(/quarantined.*t1/);
    await expect.poll(async () => (await inlet("list")).stdout).toMatch(/waiting.*t2/);
    const waiting = (await inlet("list", "--json", "--state", "waiting")).stdout;
    expect(JSON.parse(waiting)).toMatchObject({ trackingId: "t2", reason: "password" });
    expect((await inlet("show", "t1")).stdout).toMatch(/State +quarantined/);
    expect((await inlet("show", "t3")).exitCode).toBe(2);
    const retried = await inlet("retry", "t1");
    expect([retried.exitCode, retried.stderr]).toEqual([3, expect.stringContaining("t1: in quarantine")]);
    const supplied = await inlet("password", "t2");
    expect([supplied.exitCode, supplied.stderr]).toEqual([0, expect.stringContaining("t2 was delivered")]);
    const impossible = await inlet("release", "t2");
    expect(impossible.exitCode).toBe(2);
    expect((await inlet("discard", "t1", "--yes")).exitCode).toBe(0);
    const acts = JSON.parse((await inlet("show", "t1", "--json")).stdout).acts;
    expect(acts).toMatchObject([
      { act: "retry", who: "nobody (as claimed)" },
      { act: "discard", who: "nobody (as claimed)" },
    ]);
    daemon.kill();
    await once(daemon, "exit");
    expect((await inlet("list")).exitCode).toBe(5);
  });

  test("is refused by a daemon whose console is read-only", async () => {
    const path = join(await makeGroupFolder(), "console.sock");
    const { config, folder } = await setUp(
      { transfers: [transferPlan({ trackingId: "t1", files: WRONG_SUM })] },
      { http: { listen: `unix:${path}` } },
    );
    await ready(run(config));
    await letRead(config, folder);
    const inlet = (...args: string[]) => runProgram([...args, "--config", config], { user: OTHER_USER });
    await expect.poll(async () => (await inlet("list")).stdout).toMatch(/quarantined.*t1/);
    const refused = await inlet("discard", "t1", "--yes");
    expect([refused.exitCode, refused.stderr]).toEqual([5, expect.stringContaining("refuses")]);
  });
});

test("I7 nothing silent: the journal says who did what, when and from where, and no password", async () => {
  const { inlet, states, config, folder, rewrite } = await setUp({
    transfers: [
      transferPlan({ trackingId: "t1", files: WRONG_SUM }),
      transferPlan({ trackingId: "t2", password: RIGHT }),
    ],
  });
  await runProgram(["once", "--config", config]);
  // Given while no daemon runs.
  await inlet(["password", "t2"], { input: RIGHT, env: { SUDO_USER: "berta" } });
  const first = run(config);
  await expect.poll(states).toMatchObject({ t2: "delivered" });
  await inlet(["retry", "t1"]);
  first.kill();
  await once(first, "exit");
  const second = run(config);
  await ready(second);
  await inlet(["discard", "t1", "--yes"], { env: { SUDO_USER: "carla\u202e" } });
  await rewrite({ mailboxes: mailboxes(), limits: { minFreeSpace: "2KiB", maxFiles: 7 } });
  const acts = async () => JSON.parse((await inlet(["history", "--actions", "--json"])).stdout) as object[];
  await expect.poll(acts).toHaveLength(4);
  await writeFile(config, "{ nonsense: ");
  await expect.poll(async () => (await journal(folder)).includes("reload-refused")).toBe(true);
  await rewrite({ mailboxes: mailboxes() });
  await expect.poll(async () => (await acts()).length).toBe(6);

  const { username } = userInfo();
  // Only root is named by the variable: any other user could set it.
  const isRoot = process.getuid?.() === 0;
  const sudo = (name: string) => (isRoot ? `${name} (sudo)` : username);
  const common = { from: hostname(), at: expect.any(String), id: expect.stringMatching(/^[0-9a-f]{16}$/) };
  const about = { mailbox: MAILBOX, sender: "anna@supplier.example", given: expect.any(String), ...common };
  expect(await acts()).toEqual([
    { ...common, act: "reload", who: config, keys: ["limits"] },
    { ...common, act: "reload-refused", who: config, reason: "CONFIG_INVALID" },
    { ...common, act: "reload", who: config, keys: ["limits"] },
    { ...about, act: "discard", who: sudo("carla?"), trackingId: "t1", round: 2 },
    { ...about, act: "retry", who: username, trackingId: "t1", round: 1 },
    { ...about, act: "password", who: sudo("berta"), trackingId: "t2", round: 1 },
  ]);
  expect(await journal(folder)).not.toContain(RIGHT);
  const shown = await inlet(["show", "t1"]);
  expect(shown.stdout).toMatch(
    new RegExp(
      `Operators:\n {2}\\S+ {2}retry, by ${username} from \\S+\n {2}\\S+ {2}discard, by ${isRoot ? "carla\\? \\(sudo\\)" : username}`,
    ),
  );
  const found = await inlet(["history", "--actions", "--text", isRoot ? "berta" : "t2"]);
  expect(found.stdout.split("\t").slice(1, 4)).toEqual(["password", sudo("berta"), hostname()]);
  expect((await inlet(["history", "--actions", "--state", "gone"])).exitCode).toBe(2);
});

test("I7 nothing silent: the journal lists a password that was put into the drop folder by hand, once", {
  tags: ["system"],
}, async () => {
  const { inlet, states, config, folder } = await setUp({
    transfers: [transferPlan({ trackingId: "t1", password: RIGHT })],
  });
  run(config);
  await expect.poll(states).toEqual({ t1: "waiting" });
  const acts = async () => JSON.parse((await inlet(["history", "--actions", "--json"])).stdout) as object[];
  const path = join(folder, "state/passwords/t1");
  const supply = async (password: string, user: number) => {
    await writeFile(join(folder, "password"), password);
    await chown(join(folder, "password"), user, 0);
    await rename(join(folder, "password"), path);
  };
  const about = { act: "password", mailbox: MAILBOX, trackingId: "t1", round: 1, from: "the drop folder" };
  await supply("wrong", OTHER_USER);
  await expect.poll(acts).toMatchObject([{ ...about, who: "nobody" }]);
  await expect.poll(() => stat(path).catch(() => undefined)).toBeUndefined();
  await supply(RIGHT, 54_321);
  await expect.poll(states).toEqual({ t1: "delivered" });
  expect(await acts()).toMatchObject([
    { ...about, who: "54321" },
    { ...about, who: "nobody" },
  ]);
});

function run(config: string): ChildProcess {
  const daemon = startProgram(["run", "--config", config]);
  daemon.stdout?.resume();
  return daemon;
}

/** The daemon polls, and follows its configuration soon. */
async function ready(daemon: ChildProcess): Promise<void> {
  let output = "";
  daemon.stdout?.on("data", (chunk) => {
    output += chunk;
  });
  await expect.poll(() => output).toContain('"ready"');
}

function mailboxes() {
  return [{ ...mailboxKeys(MAILBOX), passwordAttempts: 4 }];
}

async function setUp(scenario: Scenario, keys: object = {}) {
  const { simulator, folder, config, rewrite } = await install(scenario, { ...keys, mailboxes: mailboxes() });
  return {
    simulator,
    folder,
    config,
    rewrite,
    inlet: (args: readonly string[], options: RunOptions = {}) =>
      runProgram([...args, "--config", config], options),
    async states(): Promise<Record<string, string>> {
      const { stdout } = await runProgram(["list", "--json", "--config", config]);
      const listed = stdout
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      return Object.fromEntries(listed.map(({ trackingId, state }) => [trackingId, state]));
    },
  };
}

async function journal(folder: string): Promise<string> {
  const path = join(folder, "inbox/.inlet/journal");
  const texts = (await readdir(path)).map((name) => readFile(join(path, name), "utf8"));
  return (await Promise.all(texts)).join("");
}

/** Other users may read the configuration, but neither the work folder nor the state folder. */
async function letRead(config: string, folder: string): Promise<void> {
  await chmod(folder, 0o755);
  await chmod(config, 0o644);
  await chmod(join(folder, "inbox"), 0o755);
}

/** What is created in it belongs to the group of the other user. */
async function makeGroupFolder(): Promise<string> {
  const folder = await makeFolder();
  await chown(folder, 0, OTHER_USER);
  await chmod(folder, 0o2750);
  return folder;
}
