/** Orders of operators about one transfer: `password`, `retry`, `release`, `discard`, `redeliver`. */
import type { ChildProcess } from "node:child_process";
import { readdirSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import { runDaemon } from "../../src/daemon.ts";
import { giveOrder } from "../../src/ledger/orders.ts";
import { listenTo } from "../../src/model/events.ts";
import { daemonSettings, runOnce } from "../support/daemon.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { makeFolder, runCommand, runOnTerminal, runProgram, startProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { openTestSimulator, SIGNAL, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, OPERATOR } from "../support/settings.ts";

const OTHER_USER = 65534;
const WRONG = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];

describe("inlet password", () => {
  test("opens a waiting transfer at once through a running daemon, and reports a refusal", async () => {
    const { config, inlet, deliveries, states, simulator } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })],
    });
    run(config);
    await expect.poll(() => states()).toEqual({ t1: "waiting" });
    const refused = await inlet("password", "t1", { input: "not-Right:1\n" });
    expect([refused.exitCode, refused.stderr]).toEqual([
      3,
      expect.stringContaining("The password was refused."),
    ]);
    const again = await inlet("password", "t1", { input: "not-Right:1\n" });
    expect([again.exitCode, again.stderr]).toEqual([3, expect.stringContaining("refused before")]);
    expect(simulator.refusedPasswords("t1").filter((it) => it === "not-Right:1")).toHaveLength(1);
    const accepted = await inlet("password", "t1", { input: "the-Right:1\n" });
    expect([accepted.exitCode, accepted.stderr]).toEqual([
      0,
      expect.stringContaining("The password was accepted"),
    ]);
    await expect.poll(() => deliveries()).toEqual(["t1"]);
  });

  test("refuses an empty password, and leaves nothing behind", async () => {
    const { config, folder, inlet } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })],
    });
    await runProgram(["once", "--config", config]);
    for (const input of ["", "\n"]) {
      const { exitCode, stderr } = await inlet("password", "t1", { input });
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining("no password was given")]);
      expect(stderr).toContain("standard input is empty: write the password to it");
    }
    expect(await readdir(join(folder, "state/passwords"))).toEqual([]);
  });

  test("reaches a daemon whose state folder only its service manager names, and doctor shows that folder", async () => {
    const { config, folder, inlet, states, deliveries } = await setUp(
      { transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })] },
      { state: undefined },
    );
    const [state, home] = [join(folder, "state"), join(folder, "home")];
    startProgram(["run", "--config", config], { env: { STATE_DIRECTORY: state } }).stdout?.resume();
    await expect.poll(() => states()).toEqual({ t1: "waiting" });
    const elsewhere = { env: { XDG_STATE_HOME: home, HOME: home } };
    const doctor = await runProgram(["doctor", "--config", config], elsewhere);
    expect(doctor.stdout).toContain(`the daemon keeps its state in ${state}`);
    const { exitCode, stderr } = await inlet("password", "t1", { ...elsewhere, input: "the-Right:1\n" });
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining("The password was accepted")]);
    await expect.poll(() => deliveries()).toEqual(["t1"]);
    await expect.poll(() => readdir(join(state, "passwords"))).toEqual([]);
  });

  test("is kept while a lock leaves its outcome open, and the command says so", async () => {
    const { config, folder, inlet, states, simulator } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })],
    });
    run(config);
    await expect.poll(() => states()).toEqual({ t1: "waiting" });
    simulator.addFault({
      on: "info",
      times: "always",
      does: { kind: "error", status: 423, errorCode: 2005 },
    });
    const { exitCode, stderr } = await inlet("password", "t1", { input: "the-Right:1\n" });
    expect([exitCode, stderr]).toEqual([3, expect.stringContaining("is kept until its outcome is known")]);
    expect(await readdir(join(folder, "state/passwords"))).toEqual(["t1"]);
  });

  test("stays for a daemon that does not try it now, and the command says so", async () => {
    const { config, folder, inlet, states } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })],
    });
    const daemon = startProgram(["run", "--config", config]);
    daemon.stdout?.resume();
    await expect.poll(() => states()).toEqual({ t1: "waiting" });
    daemon.kill("SIGSTOP");
    const { exitCode, stderr } = await inlet("password", "t1", { input: "the-Right:1\n" });
    expect([exitCode, stderr]).toEqual([4, expect.stringContaining("t1 has not been tried yet")]);
    expect(await readdir(join(folder, "state/passwords"))).toEqual(["t1"]);
  });

  test("asks on a terminal without showing it, and keeps it for the next start of the daemon", async () => {
    const { config, deliveries } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })],
    });
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(3);
    const { stdout } = await runOnTerminal(["password", "t1", "--config", config], {
      prompt: "Password of t1",
      input: "the-Right:1\r",
    });
    expect(stdout).toContain("No daemon is running: the next inlet run or inlet once tries the password");
    expect(stdout).not.toContain("the-Right:1");
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
    expect(await deliveries()).toEqual(["t1"]);
  });
});

describe("a transfer in quarantine", () => {
  test("is delivered when an operator releases it, and its manifest says that nothing is verified", async () => {
    const { config, folder, inlet, deliveries, states } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", files: WRONG })],
    });
    run(config);
    await expect.poll(() => states()).toEqual({ t1: "quarantined" });
    const unasked = await inlet("release", "t1");
    expect([unasked.exitCode, unasked.stderr]).toEqual([2, expect.stringContaining("--yes")]);
    expect((await inlet("release", "t1", {}, "--yes")).exitCode).toBe(0);
    await expect.poll(() => deliveries()).toEqual(["t1"]);
    const delivered = join(folder, "inbox", MAILBOX, "anna@supplier.example/t1");
    const manifest = JSON.parse(await readFile(join(delivered, "transfer.json"), "utf8"));
    expect(manifest).toMatchObject({ verified: "none", files: [{ name: "a.txt", verified: false }] });
    await expect.poll(() => readdir(join(folder, "inbox/.inlet/quarantine"))).toEqual([]);
  });

  test("is downloaded again from the start on retry, and stays in quarantine if nothing has changed", async () => {
    const { config, inlet, states, simulator } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", files: WRONG })],
    });
    run(config);
    await expect.poll(() => states()).toEqual({ t1: "quarantined" });
    const before = simulator.totals().file;
    const { exitCode, stderr } = await inlet("retry", "t1");
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/^t1: in quarantine\. The bytes received/)]);
    expect(simulator.totals().file).toBeGreaterThan(before);
    await expect.poll(() => states()).toEqual({ t1: "quarantined" });
  });

  test("is deleted when discarded, and ignored though the service still lists it", async () => {
    const { config, folder, inlet, states, simulator } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", files: WRONG })],
    });
    run(config);
    await expect.poll(() => states()).toEqual({ t1: "quarantined" });
    const { exitCode, stdout } = await inlet("discard", "t1", {}, "--yes", "--json");
    expect(exitCode).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ state: "gone", reason: "discarded" });
    expect(await readdir(join(folder, "inbox/.inlet/quarantine"))).toEqual([]);
    const polls = simulator.totals().received;
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 3);
    expect(await states()).toEqual({ t1: "gone" });
  });
});

test("discard stops a running download at once, and leaves nothing behind", async () => {
  const { config, folder, inlet, states, simulator } = await setUp({
    transfers: [
      transferPlan({ trackingId: "t1", files: [{ name: "large", generate: { bytes: 9_000_000 } }] }),
    ],
  });
  simulator.addFault({ on: "file", times: "always", does: { kind: "drip", bytes: 100_000, pauseMs: 200 } });
  run(config);
  const staging = join(folder, "inbox/.inlet/staging");
  const staged = async () => (await readdir(staging, { recursive: true }).catch(() => [])).join(" ");
  await expect.poll(staged).toContain("large");
  // Commands see it a moment later, through its note.
  await expect.poll(() => readdir(join(folder, "inbox/.inlet/notes"))).toHaveLength(1);
  expect((await inlet("discard", "t1", {}, "--yes")).exitCode).toBe(0);
  await expect.poll(states).toEqual({ t1: "gone" });
  await expect.poll(staged).not.toContain("large");
  const polls = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 3);
  expect([await states(), await staged()]).toEqual([{ t1: "gone" }, ""]);
});

test("a transfer that is gone is shown, even after a restart, until an operator discards it", async () => {
  const keys = { http: { listen: `127.0.0.1:${await freePort()}` } };
  const { config, inlet, states, simulator } = await setUp(
    { transfers: [transferPlan({ trackingId: "t1", password: "unknown-Pass:9" })] },
    keys,
  );
  const first = run(config);
  await expect.poll(() => states()).toEqual({ t1: "waiting" });
  simulator.revoke("t1");
  await expect.poll(() => states()).toEqual({ t1: "gone" });
  first.kill();
  const status = async () => JSON.parse((await inlet("status", "--json")).stdout);
  await expect.poll(() => first.exitCode).not.toBe(null);
  expect(await status()).toMatchObject({ live: false, totals: { attention: 1 }, counts: { gone: 1 } });
  run(config);
  await expect.poll(status).toMatchObject({ live: true, attention: [{ trackingId: "t1", state: "gone" }] });
  const { exitCode, stderr } = await inlet("discard", "t1");
  expect([exitCode, stderr]).toEqual([0, "t1 is gone, and no longer shown.\n"]);
  expect(await status()).toMatchObject({ live: true, totals: { attention: 0 }, counts: {} });
  const again = await inlet("discard", "t1");
  expect([again.exitCode, again.stderr]).toEqual([2, expect.stringContaining("nothing is left to discard")]);
});

test("retry of a failed hand-off reports the outcome", async () => {
  const marks = await makeFolder();
  const { config, inlet, deliveries } = await setUp(
    { transfers: [transferPlan({ trackingId: "t1" })] },
    { handoff: { command: ["/usr/bin/test", "-e", join(marks, "mended")] } },
  );
  run(config);
  await expect.poll(() => deliveries()).toEqual(["t1"]);
  const status = async () => (await inlet("status", "--json")).stdout;
  await expect.poll(status).toContain("The hand-off command failed");
  const failed = await inlet("retry", "t1");
  expect([failed.exitCode, failed.stderr]).toEqual([
    3,
    "t1 was not handed over. The hand-off command failed: it ended with exit code 1. The daemon retries it.\n",
  ]);
  await writeFile(join(marks, "mended"), "");
  const mended = await inlet("retry", "t1");
  expect([mended.exitCode, mended.stderr]).toEqual([0, "t1 was handed over.\n"]);
});

test("release delivers complete content from quarantine after its expiry, and the manifest names the operator", async () => {
  const files = [...WRONG, { name: "b.txt", text: "World" }];
  const simulator = await openTestSimulator({ transfers: [transferPlan({ trackingId: "t1", files })] });
  const settings = await daemonSettings([mailboxSettings(simulator)]);
  await runOnce(settings);
  const fetched = simulator.totals().file;
  simulator.revoke("t1");
  const order = { mailbox: MAILBOX, trackingId: "t1", round: 1, by: OPERATOR };
  await giveOrder(settings.work, { action: "release", ...order });
  expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  expect(simulator.totals().file).toBe(fetched);
  const delivered = join(settings.inbox, MAILBOX, "anna@supplier.example/t1");
  expect((await readdir(delivered)).toSorted()).toEqual(["SHA256SUMS", "a.txt", "b.txt", "transfer.json"]);
  expect(JSON.parse(await readFile(join(delivered, "transfer.json"), "utf8"))).toMatchObject({
    verified: "some",
    released: { by: "anna", reason: "CHECKSUM_MISMATCH" },
    files: [
      { name: "a.txt", verified: false },
      { name: "b.txt", verified: true },
    ],
  });
});

test("a released transfer has left quarantine before its record says that it is done", async () => {
  const simulator = await openTestSimulator({
    transfers: [transferPlan({ trackingId: "t1", files: WRONG })],
  });
  const settings = await daemonSettings([mailboxSettings(simulator)]);
  await runOnce(settings);
  const kept = () => readdirSync(join(settings.work, "quarantine")).length;
  expect(kept()).toBe(1);
  await giveOrder(settings.work, {
    action: "release",
    mailbox: MAILBOX,
    trackingId: "t1",
    round: 1,
    by: OPERATOR,
  });
  const seen: [string, number][] = [];
  const onEvent = listenTo({ "transfer-changed": ({ record }) => void seen.push([record.state, kept()]) });
  await runDaemon(settings, { mode: "once", stop: SIGNAL, graceMs: 0, onEvent });
  expect(seen.at(-1)).toEqual(["delivered", 0]);
});

test("redeliver delivers again, beside the first folder or in its place", async () => {
  const { config, folder, inlet, deliveries } = await setUp({
    transfers: [transferPlan({ trackingId: "t1" })],
  });
  run(config);
  await expect.poll(() => deliveries()).toEqual(["t1"]);
  expect((await inlet("redeliver", "t1", {}, "--yes")).exitCode).toBe(0);
  await expect.poll(() => deliveries()).toEqual(["t1", "t1-2"]);
  await rm(join(folder, "inbox", MAILBOX), { recursive: true });
  expect((await inlet("redeliver", "t1", {}, "--yes")).exitCode).toBe(0);
  await expect.poll(() => deliveries()).toEqual(["t1"]);
});

test("redeliver of a transfer that the service no longer has leaves the first delivery unchanged", async () => {
  const { config, simulator, inlet, deliveries } = await setUp({
    transfers: [transferPlan({ trackingId: "t1", expiresInSeconds: 3_600 })],
  });
  run(config);
  await expect.poll(() => deliveries()).toEqual(["t1"]);
  simulator.advance(3_601);
  const refused = await inlet("redeliver", "t1", {}, "--yes");
  expect([refused.exitCode, refused.stderr]).toEqual([
    3,
    expect.stringContaining("the service no longer has it"),
  ]);
  const shown = JSON.parse((await runProgram(["show", "--config", config, "--json", "t1"])).stdout);
  expect(shown).toMatchObject({ state: "delivered" });
});

test("orders without a running daemon are kept, and once carries them out", async () => {
  const { config, inlet, deliveries } = await setUp({
    transfers: [transferPlan({ trackingId: "t1", files: WRONG })],
  });
  await runProgram(["once", "--config", config]);
  const { exitCode, stderr } = await inlet("release", "t1", {}, "--yes");
  expect([exitCode, stderr]).toEqual([
    0,
    expect.stringContaining("No daemon is running: the next inlet run or inlet once carries it out"),
  ]);
  expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
  expect(await deliveries()).toEqual(["t1"]);
});

test("an impossible order is refused with the reason, and changes nothing", async () => {
  const { config, inlet, deliveries } = await setUp({ transfers: [transferPlan({ trackingId: "t1" })] });
  await runProgram(["once", "--config", config]);
  for (const [action, trackingId, reason] of [
    ["release", "t1", "it is delivered, and only a transfer that is in quarantine or held can be released"],
    ["retry", "t1", "it is delivered, and nothing is left to retry"],
    ["discard", "t1", "it is delivered, and nothing is left to discard"],
    ["retry", "nothing", 'No transfer with this tracking-id is known here: "nothing"'],
    ["password", "t1", "it is delivered"],
  ] as const) {
    const { exitCode, stderr } = await inlet(action, trackingId);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining(reason)]);
  }
  expect(await deliveries()).toEqual(["t1"]);
});

describe("root, with a daemon of another user,", () => {
  test("acts as that user, and follows no link", { tags: ["system"] }, async () => {
    expect(process.getuid?.(), "this test takes root").toBe(0);
    const { config, folder, inlet, deliveries } = await setUp({
      transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })],
    });
    await runProgram(["once", "--config", config]);
    const [state, work] = [join(folder, "state"), join(folder, "inbox/.inlet")];
    await chmod(folder, 0o755);
    for (const tree of [state, join(folder, "inbox")])
      await runCommand("chown", ["-R", `${OTHER_USER}`, tree]);

    expect((await inlet("password", "t1", { input: "the-Right:1\n" })).exitCode).toBe(0);
    expect((await inlet("retry", "t1")).exitCode).toBe(0);
    const [order] = await readdir(join(work, "orders"));
    for (const written of [join(state, "passwords/t1"), join(work, "orders", order ?? "")]) {
      expect((await stat(written)).uid).toBe(OTHER_USER);
    }

    const roots = join(folder, "roots");
    await mkdir(roots, { mode: 0o700 });
    for (const place of [join(state, "passwords"), join(work, "orders")]) {
      await rename(place, `${place}.away`);
      await symlink(roots, place);
    }
    for (const action of ["password", "retry"]) {
      const { exitCode, stderr } = await inlet(action, "t1", { input: "other-Pass:2\n" });
      expect([exitCode, stderr]).toEqual([3, expect.stringContaining("could not be written")]);
    }
    expect(await readdir(roots)).toEqual([]);

    for (const place of [join(state, "passwords"), join(work, "orders")]) {
      await rm(place);
      await rename(`${place}.away`, place);
    }
    for (const tree of [state, join(folder, "inbox")]) await runCommand("chown", ["-R", "0", tree]);
    expect((await runProgram(["once", "--config", config])).exitCode).toBe(0);
    expect(await deliveries()).toEqual(["t1"]);
  });
});

function run(config: string): ChildProcess {
  const daemon = startProgram(["run", "--config", config]);
  daemon.stdout?.resume();
  return daemon;
}

async function setUp(scenario: Scenario, keys: object = {}) {
  const mailboxes = [{ ...mailboxKeys(MAILBOX), passwordAttempts: 4 }];
  const { simulator, folder, config } = await install(scenario, { ...keys, mailboxes });
  return {
    simulator,
    folder,
    config,
    inlet: (action: string, trackingId: string, options: object = {}, ...more: string[]) =>
      runProgram([action, trackingId, "--config", config, ...more], options),
    deliveries: async () =>
      (await readdir(join(folder, "inbox", MAILBOX, "anna@supplier.example")).catch(() => [])).toSorted(),
    /** From the newest line of the journal. */
    async states(): Promise<Record<string, string>> {
      const journal = join(folder, "inbox/.inlet/journal");
      const names = await readdir(journal).catch(() => []);
      const texts = await Promise.all(names.map((name) => readFile(join(journal, name), "utf8")));
      const lines = texts
        .join("")
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
      return Object.fromEntries(lines.map(({ trackingId, state }) => [trackingId, state]));
    },
  };
}
