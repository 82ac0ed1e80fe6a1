/** `inlet pause`, `inlet resume` and `inlet poll`: operators' acts on mailboxes. */
import { describe, expect, test } from "vitest";
import type { Status } from "../../src/model/status.ts";
import type { ActEntry } from "../../src/model/views.ts";
import { mailboxKeys } from "../support/installation.ts";
import { openSite } from "../support/operator.ts";
import { freePort } from "../support/redis-server.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER = "other@example.com";

describe("a paused mailbox", () => {
  test("is not polled while a transfer arrives, also after a restart, and delivers once it is resumed", async () => {
    const { inlet, expectInlet, run, status, simulator, deliveriesOf, acts } = await setUp();
    let daemon = await run();
    const said = `${MAILBOX} is paused. To resume it: inlet resume`;
    await expectInlet(`pause ${MAILBOX.toUpperCase()}`, 0, said);
    await expect.poll(async () => (await status()).troubles).toHaveLength(1);
    await addAndAwaitOther("w1");
    const { exitCode, stdout } = await inlet("status");
    expect(exitCode).toBe(3);
    expect(stdout).toMatch(/mailbox orders@example\.com, since .*: Paused by \S+.* since 20\S+( \S+)?\.\n/);
    expect(stdout).toMatch(/Resume it: inlet resume --config \S+ orders@example\.com/);
    expect(stdout).toMatch(/– orders@example\.com: paused by \S+/);
    expect(await deliveriesOf(MAILBOX)).toEqual([]);

    await daemon.stop();
    const alone = await inlet("status");
    expect([alone.exitCode, alone.stdout]).toEqual([4, expect.stringContaining("Paused by ")]);
    daemon = await run();
    await addAndAwaitOther("w2");
    expect(await deliveriesOf(MAILBOX)).toEqual([]);
    const [mailbox] = (await status()).mailboxes;
    expect(mailbox).toMatchObject({ paused: true, pausedBy: expect.any(String) });
    expect(mailbox).not.toHaveProperty("lastPoll");

    await expectInlet(`resume ${MAILBOX}`, 0, /^orders@example\.com is resumed\.\n$/);
    await expect.poll(() => deliveriesOf(MAILBOX)).toEqual(["t1", "t2"]);
    await expect.poll(async () => (await inlet("status")).exitCode).toBe(0);
    await expectInlet(`resume ${MAILBOX}`, 0, `${MAILBOX} is not paused.`);
    await expect.poll(acts).toEqual([
      ["resume", MAILBOX, true, true],
      ["pause", MAILBOX, true, true],
    ]);

    /** Both mailboxes get a transfer. When the other one has delivered its own, the first one would have been polled. */
    async function addAndAwaitOther(trackingId: string): Promise<void> {
      simulator.addTransfer(transferPlan({ trackingId: trackingId.replace("w", "t") }));
      simulator.addTransfer(transferPlan({ trackingId, to: [OTHER] }));
      await expect.poll(() => deliveriesOf(OTHER)).toContain(trackingId);
    }
  });

  test("all mailboxes are paused and resumed together, with or without a daemon", async () => {
    const { inlet, expectInlet, run, status, config, deliveriesOf, simulator } = await setUp();
    await expectInlet("pause", 2, "does not exist yet");
    await inlet("once");
    const before = simulator.requests().length;
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    const paused = await expectInlet("pause", 0, "");
    expect(paused.stderr.match(/ is paused\. /g)).toHaveLength(2);
    await expectInlet("once", 0, "mailboxes are paused by an operator: they are not polled");
    expect([await deliveriesOf(MAILBOX), simulator.requests().length]).toEqual([[], before]);
    await run();
    const { troubles } = await status();
    expect(troubles).toMatchObject([
      { what: "mailboxes", code: "MAILBOX_PAUSED", mailboxes: [MAILBOX, OTHER], advice: expect.any(String) },
    ]);
    expect(troubles[0]?.advice).toContain(`Resume all: inlet resume --config ${config}\n`);
    expect((await inlet("status --health")).exitCode).toBe(0);
    expect((await inlet("resume")).stderr.match(/ is resumed\.\n/g)).toHaveLength(2);
    await expect.poll(() => deliveriesOf(MAILBOX)).toEqual(["t1"]);
    await expectInlet("resume", 0, /^No mailbox is paused by an operator\.\n$/);
  });

  test("an unknown name is refused with the nearest one, and a pause in the configuration is left alone", async () => {
    const { inlet, expectInlet, rewrite, keys } = await setUp();
    for (const command of ["pause", "resume", "poll"])
      await expectInlet(`${command} ordres@example.com`, 2, `did you mean ${MAILBOX}?`);
    await rewrite({ ...keys, mailboxes: [{ ...mailboxKeys(MAILBOX), paused: true }] });
    await inlet("once");
    await expectInlet(`resume ${MAILBOX}`, 3, "paused in the configuration");
    await expectInlet("poll", 2, "paused in the configuration");
  });
});

describe("inlet poll", () => {
  test("polls at once, prints what was listed, exits by the outcome, and refuses a paused mailbox", async () => {
    const { inlet, expectInlet, run, simulator, deliveriesOf } = await setUp("1h");
    await expectInlet("poll", 4, "no daemon is running");
    await run();
    await inlet("poll");
    simulator.addTransfer(transferPlan({ trackingId: "t1" }));
    await expectInlet(`poll ${MAILBOX}`, 0, `${MAILBOX}: 1 active transfer, 1 new.`);
    await expect.poll(() => deliveriesOf(MAILBOX)).toEqual(["t1"]);
    const all = await inlet("poll --json");
    expect(JSON.parse(all.stdout)).toMatchObject([
      { mailbox: MAILBOX, result: "fine", listed: 1, discovered: 0 },
      { mailbox: OTHER, result: "fine", listed: 0, discovered: 0 },
    ]);
    expect((await inlet("history --actions")).stdout).toMatch(/poll.*1 listed, 1 new/);
    const away = { kind: "error", status: 503, errorCode: 1 } as const;
    simulator.addFault({ on: "received", times: "always", does: away });
    await expectInlet(`poll ${MAILBOX}`, 4, `${MAILBOX} could not be polled: `);
    simulator.clearFaults();
    await expectInlet(`poll ${MAILBOX} --no-wait`, 0, `${MAILBOX} will be polled now.`);
    await inlet(`pause ${MAILBOX}`);
    await expectInlet(`poll ${MAILBOX}`, 2, "resume it first: inlet resume");
  });
});

async function setUp(poll = "200ms") {
  const mailboxes = [MAILBOX, OTHER].map((email) => ({ ...mailboxKeys(email), poll }));
  const keys = { http: { listen: `127.0.0.1:${await freePort()}` }, mailboxes };
  const site = await openSite({}, keys);
  const { inlet } = site;
  return {
    ...site,
    keys,
    status: async (): Promise<Status> => JSON.parse((await inlet("status --json")).stdout),
    /** Newest first: what was done to which mailbox, and whether it is known by whom and from where. */
    async acts() {
      const entries: ActEntry[] = JSON.parse((await inlet("history --actions --json")).stdout);
      return entries.map(({ act, mailbox, who, from }) => [act, mailbox, who !== "", from !== ""]);
    },
  };
}
