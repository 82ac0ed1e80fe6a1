/** A change of the configuration takes effect while the daemon runs, and does not disturb running downloads. */
import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readApi } from "../support/api.ts";
import { startRun } from "../support/command.ts";
import { mailboxKeys } from "../support/installation.ts";
import { openSite } from "../support/operator.ts";
import { runProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER = "other@example.com";
const RELOADED = "the configuration was reloaded";
const REFUSED = "the configuration was refused: the old one stays in force";

describe("a change of the configuration", () => {
  test("adds a mailbox, and a password for a waiting transfer, during a download", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    simulator.addFault({ on: "file", does: { kind: "drip", bytes: 5_000, pauseMs: 100 } });
    const files = [{ name: "a.bin", generate: { bytes: 100_000 } }];
    simulator.addTransfer(transferPlan({ trackingId: "slow", files }));
    simulator.addTransfer(transferPlan({ trackingId: "closed", password: "the-Right:1" }));
    simulator.addTransfer(transferPlan({ trackingId: "theirs", to: [OTHER] }));
    const keys = { ...mailboxKeys(MAILBOX), passwordAttempts: 4 };
    await write({ mailboxes: [keys] });
    start();
    await expect.poll(logged).toContain('"reason":"password"');
    await expect.poll(() => simulator.totals().file).toBe(1);
    const passwords = [...keys.passwords, { sender: "*", password: "the-Right:1" }];
    await write({ mailboxes: [{ ...keys, passwords }, mailboxKeys(OTHER)] });
    await expect.poll(() => deliveries(OTHER)).toEqual(["theirs"]);
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["closed", "slow"]);
    expect(logged()).toContain('"msg":"the configuration was reloaded"');
    expect(simulator.totals().file).toBe(5);
  });

  test("removes and pauses mailboxes, which are no longer polled", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    await write({ mailboxes: [mailboxKeys(MAILBOX), mailboxKeys(OTHER)] });
    start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(3);
    await write({ mailboxes: [{ ...mailboxKeys(MAILBOX), paused: true }] });
    await expect.poll(logged).toContain(RELOADED);
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    simulator.addTransfer(transferPlan({ trackingId: "t2", to: [OTHER] }));
    await write({ mailboxes: [mailboxKeys(MAILBOX)] });
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
    expect(await deliveries(OTHER)).toEqual([]);
  });

  test("that cannot be applied changes nothing, and is applied later", async () => {
    const { folder, write, run, simulator, deliveries, logged } = await setUp();
    const daemon = await run({});
    const inTheWay = join(folder, "inbox/.inlet/expected");
    await writeFile(inTheWay, "");
    const expecting = { ...mailboxKeys("third@example.com"), expect: [{ sender: "*", by: "06:00" }] };
    await write({ mailboxes: [mailboxKeys(OTHER), expecting] });
    await expect.poll(logged).toContain(REFUSED);
    simulator.addTransfer(transferPlan({ trackingId: "theirs", to: [OTHER] }));
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
    expect(await deliveries(OTHER)).toEqual([]);
    await rm(inTheWay);
    daemon.reload();
    await expect.poll(() => deliveries(OTHER)).toEqual(["theirs"]);
  });

  test("ends quiet hours also for postponed transfers", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    const days = ["sun", "mon", "tue", "wed", "thu", "fri", "sat", "sun"];
    const today = new Date().getUTCDay();
    const windows = [today, today + 1].map((day) => `${days[day]} 00:00-24:00`);
    const quiet = { ...mailboxKeys(MAILBOX), poll: "1h", quiet: windows };
    simulator.addTransfer(transferPlan({ trackingId: "t1", expiresInSeconds: 90 * 24 * 3600 }));
    await write({ timezone: "UTC", mailboxes: [quiet] });
    start();
    await expect.poll(logged).toContain('"msg":"discovered"');
    await write({ timezone: "UTC", mailboxes: [{ ...mailboxKeys(MAILBOX), poll: "1h" }] });
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
  });

  test("that pauses a mailbox also pauses its queued transfers", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    const only = { limits: { minFreeSpace: "1KiB", transfers: 1 } };
    simulator.addFault({ on: "file", does: { kind: "drip", bytes: 5_000, pauseMs: 100 } });
    const files = [{ name: "a.bin", generate: { bytes: 100_000 } }];
    for (const [at, trackingId] of ["t1", "t2", "t3"].entries()) {
      simulator.addTransfer(transferPlan({ trackingId, files, expiresInSeconds: 3 * 24 * 3600 + at * 3600 }));
    }
    await write({ ...only, mailboxes: [mailboxKeys(MAILBOX)] });
    start();
    await expect.poll(() => simulator.totals().file).toBe(1);
    await write({ ...only, mailboxes: [{ ...mailboxKeys(MAILBOX), paused: true }, mailboxKeys(OTHER)] });
    await expect.poll(logged).toContain(RELOADED);
    // The last of the queue, after the paused ones.
    const last = { trackingId: "theirs", to: [OTHER], expiresInSeconds: 90 * 24 * 3600 };
    simulator.addTransfer(transferPlan(last));
    await expect.poll(() => deliveries(OTHER)).toEqual(["theirs"]);
    expect(await deliveries(MAILBOX)).toEqual(["t1"]);
    await write({ ...only, mailboxes: [mailboxKeys(MAILBOX), mailboxKeys(OTHER)] });
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1", "t2", "t3"]);
  });

  test("changes the token of the console and the log level; an address and other keys need a restart", async () => {
    const { write, start, logged } = await setUp();
    const http = (token: string, listen = "127.0.0.1:0") => ({ http: { listen, actions: true, token } });
    await write(http("first-long-Token:1"));
    start();
    await expect.poll(logged).toContain("the console is open");
    const page = /"address":"([^"]+)"/.exec(logged())?.[1] ?? "";
    const signIn = async (token: string) => {
      const body = new URLSearchParams({ token });
      return (await fetch(`${page}sign-in`, { method: "POST", body, redirect: "manual" })).status;
    };
    expect(await signIn("first-long-Token:1")).toBe(303);
    await write(http("second-long-Token:2"));
    await expect.poll(logged).toContain(RELOADED);
    expect(logged()).not.toContain("needsRestart");
    expect([await signIn("first-long-Token:1"), await signIn("second-long-Token:2")]).toEqual([401, 303]);
    const keys = { keep: { history: "3d" }, log: { level: "debug" } };
    await write({ ...http("second-long-Token:2", "127.0.0.1:1"), ...keys });
    await expect.poll(logged).toMatch(/"needsRestart":\["(http","keep|keep","http)"\]/);
    await expect.poll(logged).toContain('"msg":"polled"');
  });

  test("changes the limits: downloads at once, bandwidth and free space", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    // At 1 KiB/s, they would take longer than this test may.
    const files = [{ name: "a.bin", generate: { bytes: 400_000 } }];
    for (const trackingId of ["t1", "t2", "t3"]) simulator.addTransfer(transferPlan({ trackingId, files }));
    const limits = { minFreeSpace: "1KiB", transfers: 1, bandwidth: "1KiB/s" };
    await write({ limits });
    start();
    await expect.poll(() => simulator.totals().file).toBe(1);
    await write({ limits: { ...limits, transfers: 3 } });
    await expect.poll(() => simulator.totals().file).toBe(3);
    expect(await deliveries(MAILBOX)).toEqual([]);
    await write({ limits: { ...limits, bandwidth: "none" } });
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1", "t2", "t3"]);
    await write({ limits: { ...limits, bandwidth: "none", minFreeSpace: "1000TiB" } });
    await expect.poll(() => logged().split(RELOADED)).toHaveLength(4);
    simulator.addTransfer(transferPlan({ trackingId: "t4" }));
    await expect.poll(logged).toMatch(/that stay free, but only/);
    expect(logged()).not.toContain("needsRestart");
  });

  test("that is invalid is refused with the reason, is shown as trouble until a valid one is read, and work continues", async () => {
    const { write, run, simulator, deliveries, logged, config } = await setUp();
    const http = { listen: `127.0.0.1:${await freePort()}` };
    await run({ http });
    const status = async () => {
      const { stdout, exitCode } = await runProgram(["status", "--config", config, "--json"]);
      return { exitCode, ...(stdout === "" ? {} : JSON.parse(stdout)) };
    };
    // Commands would read the same invalid file, so this asks the daemon by its address.
    const ask = async (path: string) => (await fetch(`http://${http.listen}${path}`)).json();
    await write({ http, mailboxs: [] });
    await expect.poll(logged).toContain(REFUSED);
    expect(logged()).toContain("mailboxs");
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
    await expect
      .poll(() => readApi(`http://${http.listen}/api/status`))
      .toMatchObject({ troubles: [{ what: "configuration", code: "CONFIG_INVALID" }] });
    expect(await ask("/readyz")).toEqual({ ready: true, reasons: [] });
    const page = await (await fetch(`http://${http.listen}/`)).text();
    expect(page).toContain("Problem: configuration");
    await write({ http, keep: { history: "3d" } });
    await expect
      .poll(status)
      .toMatchObject({ exitCode: 0, live: true, troubles: [], needsRestart: ["keep"] });
    const { stdout } = await runProgram(["status", "--config", config]);
    expect(stdout).toContain("Changed, but not in force before a restart: keep");
  });

  test("is noticed when Kubernetes replaces the folder behind a link, and by SIGHUP", async () => {
    const { folder, text, run, logged } = await setUp();
    for (const poll of ["200ms", "150ms"]) {
      const version = join(folder, `..${poll}`);
      await mkdir(version);
      const mailboxes = [{ ...mailboxKeys(MAILBOX), poll }];
      await writeFile(join(version, "inlet.yaml"), text({ mailboxes }), { mode: 0o600 });
    }
    await rm(join(folder, "inlet.yaml"));
    await symlink("..200ms", join(folder, "..data"));
    await symlink("..data/inlet.yaml", join(folder, "inlet.yaml"));
    const daemon = await run();
    await symlink("..150ms", join(folder, "..new"));
    await rename(join(folder, "..new"), join(folder, "..data"));
    const reloads = () => logged().split(RELOADED).length - 1;
    await expect.poll(reloads).toBe(1);
    daemon.reload();
    await expect.poll(reloads).toBe(2);
  });
});

async function setUp() {
  const { rewrite: write, ...site } = await openSite({}, { mailboxes: [mailboxKeys(MAILBOX)] });
  const { config, simulator } = site;
  let logged = () => "";
  const start = () => {
    const daemon = startRun(config);
    logged = daemon.logged;
    return daemon;
  };
  return {
    ...site,
    write,
    start,
    /** Returns when the daemon has polled. */
    async run(keys?: Readonly<Record<string, unknown>>) {
      if (keys !== undefined) await write(keys);
      const daemon = start();
      await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
      return daemon;
    },
    logged: () => logged(),
    deliveries: site.deliveriesOf,
  };
}
