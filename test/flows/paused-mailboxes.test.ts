/** `inlet pause`, `inlet resume` and `inlet poll`: operators' acts on mailboxes. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Status } from "../../src/model/status.ts";
import type { ActEntry } from "../../src/model/views.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { runProgram, startProgram } from "../support/program.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER = "other@example.com";

describe("a paused mailbox", () => {
  test("is not polled while a transfer arrives, also after a restart, and delivers once it is resumed", async () => {
    const { inlet, run, status, simulator, delivered, acts } = await setUp();
    let daemon = await run();
    const paused = await inlet("pause", MAILBOX.toUpperCase());
    expect([paused.exitCode, paused.stderr]).toEqual([
      0,
      expect.stringContaining(`${MAILBOX} is paused. To resume it: inlet resume`),
    ]);
    await expect.poll(async () => (await status()).troubles).toHaveLength(1);
    await addAndAwaitOther("w1");
    const { exitCode, stdout } = await inlet("status");
    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/mailbox orders@example\.com, since .*: Paused by \S+.* since 20\S+( \S+)?\.\n/);
    expect(stdout).toMatch(/Resume it: inlet resume --config \S+ orders@example\.com/);
    expect(stdout).toMatch(/– orders@example\.com: paused by \S+/);
    expect(await delivered(MAILBOX)).toEqual([]);

    daemon.kill("SIGKILL");
    await once(daemon, "exit");
    const alone = await inlet("status");
    expect([alone.exitCode, alone.stdout]).toEqual([4, expect.stringContaining("Paused by ")]);
    daemon = await run();
    await addAndAwaitOther("w2");
    expect(await delivered(MAILBOX)).toEqual([]);
    const [mailbox] = (await status()).mailboxes;
    expect(mailbox).toMatchObject({ paused: true, pausedBy: expect.any(String) });
    expect(mailbox).not.toHaveProperty("lastPoll");

    expect(await inlet("resume", MAILBOX)).toMatchObject({ exitCode: 0, stderr: `${MAILBOX} is resumed.\n` });
    await expect.poll(() => delivered(MAILBOX)).toEqual(["t1", "t2"]);
    await expect.poll(async () => (await inlet("status")).exitCode).toBe(0);
    expect(await inlet("resume", MAILBOX)).toMatchObject({ stderr: `${MAILBOX} is not paused.\n` });
    await expect.poll(acts).toEqual([
      ["resume", MAILBOX, true, true],
      ["pause", MAILBOX, true, true],
    ]);

    /** Both mailboxes get a transfer. When the other one has delivered its own, the first one would have been polled. */
    async function addAndAwaitOther(trackingId: string): Promise<void> {
      simulator.addTransfer(transferPlan({ trackingId: trackingId.replace("w", "t") }));
      simulator.addTransfer(transferPlan({ trackingId, to: [OTHER] }));
      await expect.poll(() => delivered(OTHER)).toContain(trackingId);
    }
  });

  test("stays paused if everything is killed right after the command has said so", async () => {
    const { inlet, run, status } = await setUp();
    const daemon = await run();
    expect((await inlet("pause", MAILBOX)).exitCode).toBe(0);
    daemon.kill("SIGKILL");
    await once(daemon, "exit");
    await run();
    expect((await status()).mailboxes.map(({ paused }) => paused)).toEqual([true, false]);
  });

  test("stays paused when the configuration is reloaded, and a pause is no change of the configuration", async () => {
    const { inlet, run, status, rewrite, keys, acts } = await setUp();
    await run();
    await inlet("pause", MAILBOX);
    await expect.poll(async () => (await status()).troubles).toHaveLength(1);
    await rewrite({ ...keys, mailboxes: [...keys.mailboxes, mailboxKeys("third@example.com")] });
    let reloaded: Status | undefined;
    const readNext = async () => {
      reloaded = await status();
      return reloaded.mailboxes.length;
    };
    await expect.poll(readNext).toBe(3);
    expect(reloaded?.mailboxes.map(({ paused }) => paused)).toEqual([true, false, false]);
    await expect.poll(async () => (await acts()).map(([act]) => act).toSorted()).toEqual(["pause", "reload"]);
  });

  test("all mailboxes are paused and resumed together, with or without a daemon", async () => {
    const { inlet, run, status, config, delivered, simulator } = await setUp();
    const early = await inlet("pause");
    expect([early.exitCode, early.stderr]).toEqual([2, expect.stringContaining("does not exist yet")]);
    await inlet("once");
    const before = simulator.requests().length;
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    const paused = await inlet("pause");
    expect([paused.exitCode, paused.stderr.match(/ is paused\. /g)]).toEqual([
      0,
      [" is paused. ", " is paused. "],
    ]);
    const ran = await inlet("once");
    expect(ran.stderr).toContain("mailboxes are paused by an operator: they are not polled");
    expect([await delivered(MAILBOX), simulator.requests().length]).toEqual([[], before]);
    await run();
    const { troubles } = await status();
    expect(troubles).toMatchObject([
      { what: "mailboxes", code: "MAILBOX_PAUSED", mailboxes: [MAILBOX, OTHER], advice: expect.any(String) },
    ]);
    expect(troubles[0]?.advice).toContain(`Resume all: inlet resume --config ${config}\n`);
    expect((await inlet("status", "--health")).exitCode).toBe(0);
    expect((await inlet("resume")).stderr.match(/ is resumed\.\n/g)).toHaveLength(2);
    await expect.poll(() => delivered(MAILBOX)).toEqual(["t1"]);
    expect((await inlet("resume")).stderr).toBe("No mailbox is paused by an operator.\n");
  });

  test("an unknown name is refused with the nearest one, and a pause in the configuration is left alone", async () => {
    const { inlet, rewrite, keys } = await setUp();
    for (const command of ["pause", "resume", "poll"]) {
      const { exitCode, stderr } = await inlet(command, "ordres@example.com");
      expect([exitCode, stderr]).toEqual([2, expect.stringContaining(`did you mean ${MAILBOX}?`)]);
    }
    await rewrite({ ...keys, mailboxes: [{ ...mailboxKeys(MAILBOX), paused: true }] });
    await inlet("once");
    const resumed = await inlet("resume", MAILBOX);
    expect([resumed.exitCode, resumed.stderr]).toEqual([
      3,
      expect.stringContaining("paused in the configuration"),
    ]);
    const polled = await inlet("poll");
    expect([polled.exitCode, polled.stderr]).toEqual([
      2,
      expect.stringContaining("paused in the configuration"),
    ]);
  });
});

describe("inlet poll", () => {
  test("polls at once, and prints what was listed", async () => {
    const { inlet, run, simulator, delivered } = await setUp("1h");
    await run();
    await inlet("poll");
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    const { exitCode, stderr } = await inlet("poll", MAILBOX);
    expect([exitCode, stderr]).toEqual([0, `${MAILBOX}: 1 active transfer, 1 new.\n`]);
    await expect.poll(() => delivered(MAILBOX)).toEqual(["t1"]);
    const all = await inlet("poll", "--json");
    expect(JSON.parse(all.stdout)).toMatchObject([
      { mailbox: MAILBOX, result: "fine", listed: 1, discovered: 0 },
      { mailbox: OTHER, result: "fine", listed: 0, discovered: 0 },
    ]);
    expect((await inlet("history", "--actions")).stdout).toMatch(/poll.*1 listed, 1 new/);
  });

  test("exits by the outcome, and refuses a paused mailbox", async () => {
    const { inlet, run, simulator } = await setUp("1h");
    const missing = await inlet("poll");
    expect([missing.exitCode, missing.stderr]).toEqual([4, expect.stringContaining("no daemon is running")]);
    await run();
    await inlet("poll");
    const fault = (status: number, errorCode: number) =>
      simulator.addFault({ on: "received", times: "always", does: { kind: "error", status, errorCode } });
    fault(503, 1);
    const away = await inlet("poll", MAILBOX);
    expect([away.exitCode, away.stderr]).toEqual([
      4,
      expect.stringContaining(`${MAILBOX} could not be polled: `),
    ]);
    simulator.clearFaults();
    expect((await inlet("poll", MAILBOX, "--no-wait")).stderr).toBe(`${MAILBOX} will be polled now.\n`);
    await inlet("pause", MAILBOX);
    const paused = await inlet("poll", MAILBOX);
    expect([paused.exitCode, paused.stderr]).toEqual([
      2,
      expect.stringContaining("resume it first: inlet resume"),
    ]);
  });
});

async function setUp(poll = "200ms") {
  const listen = `127.0.0.1:${await freePort()}`;
  const mailboxes = [MAILBOX, OTHER].map((email) => ({ ...mailboxKeys(email), poll }));
  const keys = { http: { listen }, mailboxes };
  const installation = await install({}, keys);
  const { config, inbox } = installation;
  const inlet = (...args: string[]) => runProgram([...args, "--config", config]);
  const status = async (): Promise<Status> => JSON.parse((await inlet("status", "--json")).stdout);
  return {
    ...installation,
    keys,
    inlet,
    status,
    /** Newest first: what was done to which mailbox, and whether it is known by whom and from where. */
    async acts() {
      const entries: ActEntry[] = JSON.parse((await inlet("history", "--actions", "--json")).stdout);
      return entries.map(({ act, mailbox, who, from }) => [act, mailbox, who !== "", from !== ""]);
    },
    /** Returns when it is ready. */
    async run(): Promise<ChildProcess> {
      const daemon = startProgram(["run", "--config", config]);
      daemon.stdout?.resume();
      await expect.poll(async () => (await status()).live).toBe(true);
      return daemon;
    },
    delivered: async (mailbox: string) =>
      (await readdir(join(inbox, mailbox, "anna@supplier.example")).catch(() => [])).toSorted(),
  };
}
