/** Orders of operators about one transfer: `password`, `retry`, `release`, `discard`, `redeliver`. */
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { giveOrder } from "../../src/ledger/orders.ts";
import { daemonSettings, runOnce } from "../support/daemon.ts";
import { openSite } from "../support/operator.ts";
import { runCommand, runOnTerminal } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, OPERATOR } from "../support/settings.ts";

const OTHER_USER = 65534;
const WRONG = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
const BAD = { transfers: [transferPlan({ trackingId: "t1", files: WRONG })] };
const CLOSED = { transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })] };
const RIGHT = { input: "the-Right:1\n" };

describe("inlet password", () => {
  test("opens a waiting transfer at once through a running daemon, and reports a refusal", async () => {
    const { expectInlet, deliveries, simulator, runUntil } = await openSite(CLOSED);
    await runUntil({ t1: "waiting" });
    const wrong = { input: "not-Right:1\n" };
    await expectInlet("password t1", 3, "The password was refused.", wrong);
    await expectInlet("password t1", 3, "refused before", wrong);
    expect(simulator.refusedPasswords("t1").filter((it) => it === "not-Right:1")).toHaveLength(1);
    await expectInlet("password t1", 0, "The password was accepted", RIGHT);
    await expect.poll(deliveries).toEqual(["t1"]);
  });

  test("reaches a daemon whose state folder only its service manager names, and doctor shows that folder", async () => {
    const { folder, inlet, expectInlet, run, states, deliveries } = await openSite(CLOSED, {
      state: undefined,
    });
    const [state, home] = [join(folder, "state"), join(folder, "home")];
    await run({ env: { STATE_DIRECTORY: state } });
    await expect.poll(states).toEqual({ t1: "waiting" });
    const elsewhere = { env: { XDG_STATE_HOME: home, HOME: home } };
    expect((await inlet("doctor", elsewhere)).stdout).toContain(`the daemon keeps its state in ${state}`);
    await expectInlet("password t1", 0, "The password was accepted", { ...elsewhere, ...RIGHT });
    await expect.poll(deliveries).toEqual(["t1"]);
    await expect.poll(() => readdir(join(state, "passwords"))).toEqual([]);
  });

  test("is kept while a lock leaves its outcome open, and the command says so", async () => {
    const { folder, expectInlet, simulator, runUntil } = await openSite(CLOSED);
    await runUntil({ t1: "waiting" });
    const locked = { kind: "error", status: 423, errorCode: 2005 } as const;
    simulator.addFault({ on: "info", times: "always", does: locked });
    await expectInlet("password t1", 3, "is kept until its outcome is known", RIGHT);
    expect(await readdir(join(folder, "state/passwords"))).toEqual(["t1"]);
  });

  test("stays for a daemon that does not try it now, and the command says so", async () => {
    const { folder, expectInlet, runUntil } = await openSite(CLOSED);
    const daemon = await runUntil({ t1: "waiting" });
    daemon.kill("SIGSTOP");
    await expectInlet("password t1", 4, "t1 has not been tried yet", RIGHT);
    expect(await readdir(join(folder, "state/passwords"))).toEqual(["t1"]);
  });

  test("asks on a terminal without showing it, keeps it for the next start, and refuses an empty one", async () => {
    const { config, folder, inlet, expectInlet, deliveries } = await openSite(CLOSED);
    expect((await inlet("once")).exitCode).toBe(3);
    const why = "no password was given, because standard input is empty: write the password to it";
    for (const input of ["", "\n"]) await expectInlet("password t1", 2, why, { input });
    expect(await readdir(join(folder, "state/passwords"))).toEqual([]);
    const { stdout } = await runOnTerminal(["password", "t1", "--config", config], {
      prompt: "Password of t1",
      input: "the-Right:1\r",
    });
    expect(stdout).toContain("No daemon is running: the next inlet run or inlet once tries the password");
    expect(stdout).not.toContain("the-Right:1");
    expect((await inlet("once")).exitCode).toBe(0);
    expect(await deliveries()).toEqual(["t1"]);
  });
});

test("a quarantined transfer is downloaded again on retry, delivered as unverified on release, and deleted when discarded", async () => {
  const { inbox, runUntil, inlet, expectInlet, states, simulator } = await openSite({
    transfers: ["t1", "t2"].map((trackingId) => transferPlan({ trackingId, files: WRONG })),
  });
  await runUntil({ t1: "quarantined", t2: "quarantined" });
  const before = simulator.totals().file;
  await expectInlet("retry t1", 3, /^t1: in quarantine\. The bytes received/);
  expect(simulator.totals().file).toBeGreaterThan(before);
  await expectInlet("release t1", 2, "--yes");
  const folder = `${MAILBOX}/anna@supplier.example/t1`;
  const said = new RegExp(`^t1 was delivered on your responsibility to ${folder}\\.\n$`);
  await expectInlet("release t1 --yes", 0, said);
  const manifest = JSON.parse(await readFile(join(inbox, folder, "transfer.json"), "utf8"));
  expect(manifest).toMatchObject({ verified: "none", files: [{ name: "a.txt", verified: false }] });
  const discarded = await inlet("discard t2 --yes --json");
  expect(discarded.exitCode).toBe(0);
  expect(JSON.parse(discarded.stdout)).toMatchObject({ state: "gone", reason: "discarded" });
  await expect.poll(() => readdir(join(inbox, ".inlet/quarantine"))).toEqual([]);
  // The service still lists it.
  const polls = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 3);
  expect(await states()).toEqual({ t1: "delivered", t2: "gone" });
});

test("discard stops a running download at once, and leaves nothing behind", async () => {
  const files = [{ name: "large", generate: { bytes: 9_000_000 } }];
  const { inbox, run, inlet, states, simulator } = await openSite({
    transfers: [transferPlan({ trackingId: "t1", files })],
  });
  simulator.addFault({ on: "file", times: "always", does: { kind: "drip", bytes: 100_000, pauseMs: 200 } });
  await run();
  const staging = join(inbox, ".inlet/staging");
  const staged = async () => (await readdir(staging, { recursive: true }).catch(() => [])).join(" ");
  await expect.poll(staged).toContain("large");
  // Commands see it a moment later, through its note.
  await expect.poll(() => readdir(join(inbox, ".inlet/notes"))).toHaveLength(1);
  expect((await inlet("discard t1 --yes")).exitCode).toBe(0);
  await expect.poll(states).toEqual({ t1: "gone" });
  await expect.poll(staged).not.toContain("large");
  const polls = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 3);
  expect([await states(), await staged()]).toEqual([{ t1: "gone" }, ""]);
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

test("redeliver delivers again, beside the first folder or in its place", async () => {
  const { inbox, run, expectInlet, deliveries } = await openSite({
    transfers: [transferPlan({ trackingId: "t1" })],
  });
  await run();
  await expect.poll(deliveries).toEqual(["t1"]);
  await expectInlet("redeliver t1 --yes", 0, "");
  await expect.poll(deliveries).toEqual(["t1", "t1-2"]);
  await rm(join(inbox, MAILBOX), { recursive: true });
  await expectInlet("redeliver t1 --yes", 0, "");
  await expect.poll(deliveries).toEqual(["t1"]);
});

test("redeliver of a transfer that the service no longer has leaves the first delivery unchanged", async () => {
  const { run, simulator, inlet, expectInlet, deliveries } = await openSite({
    transfers: [transferPlan({ trackingId: "t1", expiresInSeconds: 3_600 })],
  });
  await run();
  await expect.poll(deliveries).toEqual(["t1"]);
  simulator.advance(3_601);
  await expectInlet("redeliver t1 --yes", 3, "the service no longer has it");
  expect(JSON.parse((await inlet("show t1 --json")).stdout)).toMatchObject({ state: "delivered" });
});

test("orders without a running daemon are kept for the next start, and impossible ones are refused with the reason", async () => {
  const { inlet, expectInlet, deliveries } = await openSite({
    transfers: [...BAD.transfers, transferPlan({ trackingId: "t2" })],
  });
  await inlet("once");
  for (const [line, reason] of [
    ["release t2", "it is delivered, and only a transfer that is in quarantine or held can be released"],
    ["retry t2", "it is delivered, and nothing is left to retry"],
    ["discard t2", "it is delivered, and nothing is left to discard"],
    ["retry nothing", 'No transfer with this tracking-id is known here: "nothing"'],
    ["password t2", "it is delivered"],
  ] as const)
    await expectInlet(line, 2, reason);
  expect(await deliveries()).toEqual(["t2"]);
  const stored = "No daemon is running: the next inlet run or inlet once carries it out";
  await expectInlet("release t1 --yes", 0, stored);
  expect((await inlet("once")).exitCode).toBe(0);
  expect(await deliveries()).toEqual(["t1", "t2"]);
});

test("root, with a daemon of another user, acts as that user, and follows no link", {
  tags: ["system"],
}, async () => {
  expect(process.getuid?.(), "this test takes root").toBe(0);
  const { folder, inbox, state, inlet, expectInlet, deliveries } = await openSite(CLOSED);
  await inlet("once");
  const work = join(inbox, ".inlet");
  await chmod(folder, 0o755);
  const give = async (user: number) => {
    for (const tree of [state, inbox]) await runCommand("chown", ["-R", `${user}`, tree]);
  };
  await give(OTHER_USER);

  expect((await inlet("password t1", RIGHT)).exitCode).toBe(0);
  expect((await inlet("retry t1")).exitCode).toBe(0);
  const [order] = await readdir(join(work, "orders"));
  for (const written of [join(state, "passwords/t1"), join(work, "orders", order ?? "")]) {
    expect((await stat(written)).uid).toBe(OTHER_USER);
  }

  const roots = join(folder, "roots");
  await mkdir(roots, { mode: 0o700 });
  const places = [join(state, "passwords"), join(work, "orders")];
  for (const place of places) {
    await rename(place, `${place}.away`);
    await symlink(roots, place);
  }
  for (const action of ["password", "retry"])
    await expectInlet(`${action} t1`, 3, "could not be written", { input: "other-Pass:2\n" });
  expect(await readdir(roots)).toEqual([]);

  for (const place of places) {
    await rm(place);
    await rename(`${place}.away`, place);
  }
  await give(0);
  expect((await inlet("once")).exitCode).toBe(0);
  expect(await deliveries()).toEqual(["t1"]);
});
