/** A change of the configuration takes effect while the daemon runs, and does not disturb running downloads. */
import { mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readApi } from "../support/api.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER = "other@example.com";

describe("a change of the configuration", () => {
  test("adds a mailbox during a download of another one", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    simulator.addFault({ on: "file", does: { kind: "drip", bytes: 5_000, pauseMs: 100 } });
    const files = [{ name: "a.bin", generate: { bytes: 100_000 } }];
    simulator.addTransfer(transferPlan({ trackingId: "slow", files }));
    simulator.addTransfer(transferPlan({ trackingId: "theirs", to: [OTHER] }));
    await write({});
    start();
    await expect.poll(() => simulator.totals().file).toBe(1);
    await write({ mailboxes: [mailboxKeys(MAILBOX), mailboxKeys(OTHER)] });
    await expect.poll(() => deliveries(OTHER)).toEqual(["theirs"]);
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["slow"]);
    expect(logged()).toContain('"msg":"the configuration was reloaded"');
    expect(simulator.totals().file).toBe(3);
  });

  test("removes and pauses mailboxes, which are no longer polled", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    await write({ mailboxes: [mailboxKeys(MAILBOX), mailboxKeys(OTHER)] });
    start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(3);
    await write({ mailboxes: [{ ...mailboxKeys(MAILBOX), paused: true }] });
    await expect.poll(() => logged()).toContain("the configuration was reloaded");
    for (const [trackingId, to] of [
      ["t1", MAILBOX],
      ["t2", OTHER],
    ] as const) {
      simulator.addTransfer(transferPlan({ trackingId, to: [to] }));
    }
    await write({ mailboxes: [mailboxKeys(MAILBOX)] });
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
    expect(await deliveries(OTHER)).toEqual([]);
  });

  test("adds a password for a waiting transfer", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    simulator.addTransfer(transferPlan({ trackingId: "t1", password: "the-Right:1" }));
    await write({ mailboxes: [{ ...mailboxKeys(MAILBOX), passwords: [] }] });
    start();
    await expect.poll(() => logged()).toContain('"reason":"password"');
    await write({
      mailboxes: [{ ...mailboxKeys(MAILBOX), passwords: [{ sender: "*", password: "the-Right:1" }] }],
    });
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
  });

  test("that is invalid is refused with the reason, and the old one stays in force", async () => {
    const { write, start, simulator, deliveries, logged } = await setUp();
    await write({});
    start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    await write({ mailboxs: [] });
    await expect.poll(() => logged()).toContain("the configuration was refused: the old one stays in force");
    expect(logged()).toContain("mailboxs");
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
  });

  test("that cannot be applied changes nothing, and is applied later", async () => {
    const { folder, write, start, simulator, deliveries, logged } = await setUp();
    await write({});
    const daemon = start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    const inTheWay = join(folder, "inbox/.inlet/expected");
    await writeFile(inTheWay, "");
    const expecting = { ...mailboxKeys("third@example.com"), expect: [{ sender: "*", by: "06:00" }] };
    await write({ mailboxes: [mailboxKeys(OTHER), expecting] });
    await expect.poll(() => logged()).toContain("the configuration was refused: the old one stays in force");
    simulator.addTransfer(transferPlan({ trackingId: "theirs", to: [OTHER] }));
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1"]);
    expect(await deliveries(OTHER)).toEqual([]);
    await rm(inTheWay);
    daemon.kill("SIGHUP");
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
    await expect.poll(() => logged()).toContain('"msg":"discovered"');
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
    await expect.poll(() => logged()).toContain("the configuration was reloaded");
    // The last of the queue, after the paused ones.
    simulator.addTransfer(
      transferPlan({ trackingId: "theirs", to: [OTHER], expiresInSeconds: 90 * 24 * 3600 }),
    );
    await expect.poll(() => deliveries(OTHER)).toEqual(["theirs"]);
    expect(await deliveries(MAILBOX)).toEqual(["t1"]);
    await write({ ...only, mailboxes: [mailboxKeys(MAILBOX), mailboxKeys(OTHER)] });
    await expect.poll(() => deliveries(MAILBOX)).toEqual(["t1", "t2", "t3"]);
  });

  test("changes the token of the console; its address needs a restart", async () => {
    const { write, start, logged } = await setUp();
    const http = (token: string, listen = "127.0.0.1:0") => ({ http: { listen, actions: true, token } });
    await write(http("first-long-Token:1"));
    start();
    await expect.poll(() => logged()).toContain("the console is open");
    const page = /"address":"([^"]+)"/.exec(logged())?.[1] ?? "";
    const signIn = async (token: string) => {
      const body = new URLSearchParams({ token });
      return (await fetch(`${page}sign-in`, { method: "POST", body, redirect: "manual" })).status;
    };
    expect(await signIn("first-long-Token:1")).toBe(303);
    await write(http("second-long-Token:2"));
    await expect.poll(() => logged()).toContain("the configuration was reloaded");
    expect(logged()).not.toContain("needsRestart");
    expect([await signIn("first-long-Token:1"), await signIn("second-long-Token:2")]).toEqual([401, 303]);
    await write(http("second-long-Token:2", "127.0.0.1:1"));
    await expect.poll(() => logged()).toContain('"needsRestart":["http"]');
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
    await expect.poll(() => logged().split("the configuration was reloaded")).toHaveLength(4);
    simulator.addTransfer(transferPlan({ trackingId: "t4" }));
    await expect.poll(() => logged()).toMatch(/that stay free, but only/);
    expect(logged()).not.toContain("needsRestart");
  });

  test("names the keys that need a restart; the log level changes without one", async () => {
    const { write, start, simulator, logged } = await setUp();
    await write({});
    start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    await write({ keep: { history: "3d" }, log: { level: "debug" } });
    await expect.poll(() => logged()).toContain('"needsRestart":["keep"]');
    await expect.poll(() => logged()).toContain('"msg":"polled"');
  });

  test("that was refused is shown as trouble until a valid one is read, and work continues", async () => {
    const { write, start, simulator, config } = await setUp();
    const http = { listen: `127.0.0.1:${await freePort()}` };
    await write({ http });
    start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    const status = async () => {
      const { stdout, exitCode } = await runProgram(["status", "--config", config, "--json"]);
      return { exitCode, ...(stdout === "" ? {} : JSON.parse(stdout)) };
    };
    // Commands would read the same invalid file, so this asks the daemon by its address.
    const ask = async (path: string) => (await fetch(`http://${http.listen}${path}`)).json();
    await write({ http, mailboxs: [] });
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
    const { folder, text, start, logged, simulator } = await setUp();
    for (const [name, poll] of [
      ["..v1", "200ms"],
      ["..v2", "150ms"],
    ] as const) {
      const mailboxes = [{ ...mailboxKeys(MAILBOX), poll }];
      await mkdir(join(folder, name));
      await writeFile(join(folder, name, "inlet.yaml"), text({ mailboxes }), { mode: 0o600 });
    }
    await rm(join(folder, "inlet.yaml"));
    await symlink("..v1", join(folder, "..data"));
    await symlink("..data/inlet.yaml", join(folder, "inlet.yaml"));
    const daemon = start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    await symlink("..v2", join(folder, "..new"));
    await rename(join(folder, "..new"), join(folder, "..data"));
    const reloads = () => logged().split("the configuration was reloaded").length - 1;
    await expect.poll(reloads).toBe(1);
    daemon.kill("SIGHUP");
    await expect.poll(reloads).toBe(2);
  });

  test("is not triggered by an editor's temporary files", async () => {
    const { folder, write, start, logged, simulator } = await setUp();
    await write({});
    start();
    await expect.poll(() => simulator.totals().received).toBeGreaterThan(0);
    for (const name of [".inlet.yaml.swp", "inlet.yaml~", "4913"]) await writeFile(join(folder, name), "x");
    await write({});
    await write({ log: { level: "info" } });
    await expect.poll(() => logged()).toContain("the configuration was reloaded");
    expect(logged().split("the configuration was reloaded")).toHaveLength(2);
  });
});

async function setUp() {
  const { simulator, folder, config, inbox, text, rewrite } = await install({});
  let log = "";
  return {
    simulator,
    folder,
    config,
    text,
    write: rewrite,
    start() {
      const daemon = startProgram(["run", "--config", config]);
      daemon.stdout?.on("data", (chunk) => {
        log += String(chunk);
      });
      return daemon;
    },
    logged: () => log,
    deliveries: async (name: string) =>
      (await readdir(join(inbox, name, "anna@supplier.example")).catch(() => [])).toSorted(),
  };
}
