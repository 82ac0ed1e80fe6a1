/** Orders of operators about one transfer: `password`, `retry`, `release`, `discard`, `redeliver`. */
import { chmod, mkdir, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { userInfo } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { mailboxKeys } from "../support/installation.ts";
import { openSite } from "../support/operator.ts";
import { runCommand, runOnTerminal, startProgram } from "../support/program.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER_USER = 65534;
const WRONG = [{ name: "a.txt", text: "Hello", csvChecksum: "wrong" } as const];
const BAD = { transfers: [transferPlan({ trackingId: "t1", files: WRONG })] };
const CLOSED = { transfers: [transferPlan({ trackingId: "t1", password: "the-Right:1" })] };
const RIGHT = { input: "the-Right:1\n" };

describe("inlet password", () => {
  test("opens a waiting transfer at once through a running daemon, reports a refusal, and is kept while a lock leaves its outcome open", async () => {
    const transfers = ["t1", "t2"].map((trackingId) => transferPlan({ trackingId, password: "the-Right:1" }));
    const { folder, expectInlet, deliveries, simulator, runUntil } = await openSite({ transfers });
    await runUntil({ t1: "waiting", t2: "waiting" });
    const wrong = { input: "not-Right:1\n" };
    await expectInlet("password t1", 3, "The password was refused.", wrong);
    await expectInlet("password t1", 3, "refused before", wrong);
    expect(simulator.refusedPasswords("t1").filter((it) => it === "not-Right:1")).toHaveLength(1);
    await expectInlet("password t1", 0, "The password was accepted", RIGHT);
    await expect.poll(deliveries).toEqual(["t1"]);
    const locked = { kind: "error", status: 423, errorCode: 2005 } as const;
    simulator.addFault({ on: "info", times: "always", does: locked });
    await expectInlet("password t2", 3, "is kept until its outcome is known", RIGHT);
    expect(await readdir(join(folder, "state/passwords"))).toEqual(["t2"]);
  });

  test("reaches a daemon whose state folder only its service manager names, and doctor shows that folder", async () => {
    const { folder, inlet, expectInlet, run, states, deliveries } = await openSite(CLOSED, {
      state: undefined,
    });
    const [state, home] = [join(folder, "state"), join(folder, "home")];
    await run({ STATE_DIRECTORY: state });
    await expect.poll(states).toEqual({ t1: "waiting" });
    const elsewhere = { env: { XDG_STATE_HOME: home, HOME: home } };
    expect((await inlet("doctor", elsewhere)).stdout).toContain(`the daemon keeps its state in ${state}`);
    await expectInlet("password t1", 0, "The password was accepted", { ...elsewhere, ...RIGHT });
    await expect.poll(deliveries).toEqual(["t1"]);
    await expect.poll(() => readdir(join(state, "passwords"))).toEqual([]);
  });

  test("stays for a daemon that does not try it now, and the command says so", async () => {
    const { config, folder, expectInlet, states } = await openSite(CLOSED);
    const daemon = startProgram(["run", "--config", config]);
    daemon.stdout?.resume();
    await expect.poll(states).toEqual({ t1: "waiting" });
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

test("a quarantined transfer is downloaded again on retry, delivered on release after its expiry, and deleted when discarded", async () => {
  const files = [...WRONG, { name: "b.txt", text: "World" }];
  const { inbox, runUntil, inlet, expectInlet, states, simulator } = await openSite({
    transfers: [
      ...["t1", "t2"].map((trackingId) => transferPlan({ trackingId, files })),
      transferPlan({ trackingId: "t3", password: "the-Right:1", files }),
    ],
  });
  await runUntil({ t1: "quarantined", t2: "quarantined", t3: "waiting" });
  await expectInlet("retry t3", 3, /^t3: needs a password\. /);
  const opened = await inlet("password t3 --json", RIGHT);
  expect([opened.exitCode, JSON.parse(opened.stdout)]).toMatchObject([
    3,
    {
      trackingId: "t3",
      status: 200,
      state: "quarantined",
      reason: "CHECKSUM_MISMATCH",
      result: "attention",
      text: expect.stringMatching(/^The password was accepted\. t3: in quarantine\. /),
    },
  ]);
  const before = simulator.totals().file;
  await expectInlet("retry t1", 3, /^t1: in quarantine\. The bytes received/);
  const fetched = simulator.totals().file;
  expect(fetched).toBeGreaterThan(before);
  simulator.revoke("t1");
  await expectInlet("release t1", 2, "--yes");
  const folder = `${MAILBOX}/anna@supplier.example/t1`;
  const said = new RegExp(`^t1 was delivered on your responsibility to ${folder}\\.\n$`);
  await expectInlet("release t1 --yes", 0, said);
  expect(simulator.totals().file).toBe(fetched);
  const delivered = join(inbox, folder);
  expect((await readdir(delivered)).toSorted()).toEqual(["SHA256SUMS", "a.txt", "b.txt", "transfer.json"]);
  expect(JSON.parse(await readFile(join(delivered, "transfer.json"), "utf8"))).toMatchObject({
    verified: "some",
    released: { by: userInfo().username, reason: "CHECKSUM_MISMATCH" },
    files: [
      { name: "a.txt", verified: false },
      { name: "b.txt", verified: true },
    ],
  });
  const discarded = await inlet("discard t2 --yes --json");
  expect(discarded.exitCode).toBe(0);
  expect(JSON.parse(discarded.stdout)).toMatchObject({ state: "gone", reason: "discarded" });
  await expect.poll(() => readdir(join(inbox, ".inlet/quarantine"))).toHaveLength(1);
  // The service still lists it.
  const polls = simulator.totals().received;
  await expect.poll(() => simulator.totals().received).toBeGreaterThan(polls + 3);
  expect(await states()).toEqual({ t1: "delivered", t2: "gone", t3: "quarantined" });
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

test("inlet password --once-more allows one more attempt after an outage, also --all, but not after a refused password", async () => {
  const ids = ["t1", "t2", "t3", "t4"];
  const { folder, inlet, expectInlet, simulator } = await openSite(
    {
      transfers: ids.map((trackingId) =>
        transferPlan({ trackingId, ...(trackingId === "t3" ? { password: "an0ther:One" } : {}) }),
      ),
      faults: ["t1", "t2", "t4"].map(
        (transfer) => ({ on: "info", transfer, does: { kind: "reset" } }) as const,
      ),
    },
    { mailboxes: [{ ...mailboxKeys(MAILBOX), passwordAttempts: 1 }] },
  );
  const once = async () => {
    // After two open verdicts no password is sent for a minute.
    await rm(join(folder, "state/held.json"), { force: true });
    return inlet("once");
  };
  const attempts = async () => {
    await once();
    return simulator.totals().info;
  };
  await expect.poll(attempts).toBe(4);
  expect((await once()).exitCode).toBe(3);
  expect(simulator.totals().info).toBe(4);
  const stored =
    "No daemon is running: the next inlet run or inlet once grants the attempt. Supply the password then.";
  await expectInlet("password --once-more t1", 0, new RegExp(`^t1: ${stored}\n$`));
  await expect.poll(async () => (await once()).stderr).toContain("1 delivered");
  await expectInlet("password --once-more t1", 2, "does not wait");
  await expectInlet("password --once-more --all", 0, /t2: No daemon is running.*\nt4: No daemon is running/);
  await expect.poll(async () => (await once()).stderr).toContain("2 delivered");
  expect(simulator.refusedPasswords("t3")).toHaveLength(1);
  for (const words of ["", " --all t1", " --all --mailbox typo", " --all --password-file -"])
    expect((await inlet(`password --once-more${words}`)).exitCode).toBe(2);
  expect((await inlet("password")).exitCode).toBe(2);
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
