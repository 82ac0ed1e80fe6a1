/** I3 no burnt transfers: the cost of an attempt whose verdict is unclear. */
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Misbehaviour } from "../../simulator/scenario.ts";
import { giveOrder } from "../../src/ledger/orders.ts";
import { daemonSettings, runOnce } from "../support/daemon.ts";
import { install, mailboxKeys } from "../support/installation.ts";
import { drop, openMailbox, openTransfer, startAndDeliver } from "../support/one-mailbox.ts";
import { runProgram } from "../support/program.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, OPERATOR } from "../support/settings.ts";

describe("an answer of a proxy", () => {
  test.each([401, 403, 504, 200])("with status %i does not lose the right password", async (status) => {
    const { simulator, settings } = await openMailbox();
    simulator.addFault({ on: "info", does: { kind: "html", status } });
    await startAndDeliver(settings);
  });
});

describe("a lock", () => {
  test("costs no attempt if the password is right, however often it occurs", async () => {
    const { simulator, settings } = await openMailbox();
    const locked: Misbehaviour = { kind: "error", status: 403, errorCode: 2005 };
    simulator.addFault({ on: "info", times: 4, does: locked });
    await startAndDeliver(settings);
    expect(simulator.totals().info).toBe(5);
  });
});

describe("a supplied password", () => {
  test("I4 no leaks: goes only to the service of its mailbox", async () => {
    const { simulators, settings } = await openTwoServices();
    await drop(settings, join("a", "t1"), "meant for a");
    await runOnce(settings);
    expect(simulators.map((it) => it.refusedPasswords("t1"))).toEqual([["meant for a"], []]);
  });

  test("I4 no leaks: that does not name one of two services is sent to neither", async () => {
    const { simulators, settings } = await openTwoServices();
    await drop(settings, "t1", "for whom?");
    const { changes } = await runOnce(settings);
    expect(simulators.flatMap((it) => it.refusedPasswords("t1"))).toEqual([]);
    expect(changes.findLast(({ mailbox }) => mailbox === "a")?.message).toContain("supply it with --mailbox");
    expect(await readdir(join(settings.state, "passwords"))).toEqual(["t1"]);
  });

  test("is used again for redeliver and release", async () => {
    const { simulator, settings } = await openMailbox({ passwords: [] });
    await drop(settings, "t1");
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    const order = {
      action: "redeliver",
      mailbox: MAILBOX,
      trackingId: "t1",
      round: 1,
      by: OPERATOR,
    } as const;
    await giveOrder(settings.work, order);
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
    expect(simulator.refusedPasswords("t1")).toEqual([]);
  });
});

const ONE_ATTEMPT = { mailboxes: [{ ...mailboxKeys(MAILBOX), passwordAttempts: 1 }] };

describe("inlet password --once-more", () => {
  test("allows one more attempt for a transfer without any left", async () => {
    const { config, simulator } = await install(
      {
        transfers: [transferPlan({ trackingId: "t1" })],
        faults: [{ on: "info", does: { kind: "reset" } }],
      },
      ONE_ATTEMPT,
    );
    const once = () => runProgram(["once", "--config", config]);
    await once();
    expect((await once()).exitCode).toBe(3);
    expect(simulator.totals().info).toBe(1);
    const granted = await runProgram(["password", "--once-more", "t1", "--config", config]);
    expect([granted.exitCode, granted.stderr]).toEqual([
      0,
      "t1: No daemon is running: the next inlet run or inlet once grants the attempt. Supply the password then.\n",
    ]);
    expect((await once()).exitCode).toBe(0);
    const twice = await runProgram(["password", "--once-more", "t1", "--config", config]);
    expect([twice.exitCode, twice.stderr]).toEqual([2, expect.stringContaining("does not wait")]);
  });

  test("--all does so after an outage, but not after a refused password", async () => {
    const { config, folder, simulator } = await install(
      {
        transfers: ["t1", "t2", "t3"].map((trackingId) =>
          transferPlan({ trackingId, ...(trackingId === "t3" ? { password: "an0ther:One" } : {}) }),
        ),
        faults: ["t1", "t2"].map((transfer) => ({ on: "info", transfer, does: { kind: "reset" } }) as const),
      },
      ONE_ATTEMPT,
    );
    const once = async () => {
      // After two open verdicts no password is sent for a minute.
      await rm(join(folder, "state/held.json"), { force: true });
      return runProgram(["once", "--config", config]);
    };
    await expect
      .poll(async () => {
        await once();
        return simulator.totals().info;
      })
      .toBe(3);
    const granted = await runProgram(["password", "--once-more", "--all", "--config", config]);
    expect(granted.stderr).toMatch(/t1: No daemon is running.*\nt2: No daemon is running/);
    await expect.poll(async () => (await once()).stderr).toContain("2 delivered");
    expect(simulator.refusedPasswords("t3")).toHaveLength(1);
  });

  test("names missing arguments", async () => {
    const { config } = await install({ transfers: [] });
    const wrong = [
      ["--once-more"],
      ["--once-more", "--all", "t1"],
      ["--once-more", "--all", "--mailbox", "typo"],
      ["--once-more", "--all", "--password-file", "-"],
      [],
    ];
    for (const words of wrong) {
      const { exitCode } = await runProgram(["password", ...words, "--config", config]);
      expect(exitCode).toBe(2);
    }
  });
});

describe("a transfer whose sender chose no password, and whose link carries none", () => {
  test("is opened without one", async () => {
    const { settings } = await openTransfer(
      { passwordMode: "NONE" },
      { passwords: [] },
      { noPassword: "open" },
    );
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  });

  test("is requested once without one, and then needs attention", async () => {
    const { simulator, settings } = await openTransfer(
      { passwordMode: "NONE" },
      { passwords: [] },
      { noPassword: "withheld" },
    );
    for (let round = 0; round < 3; round++) {
      const { changes } = await runOnce(settings);
      if (round === 0) expect(changes.at(-1)).toMatchObject({ state: "waiting", reason: "password" });
    }
    expect(simulator.totals().info).toBe(1);
    await drop(settings, "t1");
    expect((await runOnce(settings)).stateOf("t1")).toBe("delivered");
  });
});

/** Two services with transfers of the same tracking-id, which wait for passwords. */
async function openTwoServices() {
  const mailboxes = ["a", "b"].map((name) => ({ name, email: `${name}@example.com` }));
  const simulators = await Promise.all(
    mailboxes.map(({ email }) =>
      openTestSimulator({ transfers: [transferPlan({ trackingId: "t1", to: [email] })] }),
    ),
  );
  const settings = await daemonSettings(
    mailboxes.map((mailbox, at) => mailboxSettings(simulators[at] as never, { ...mailbox, passwords: [] })),
  );
  await runOnce(settings);
  return { simulators, settings };
}
