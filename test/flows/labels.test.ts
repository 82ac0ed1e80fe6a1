// @module-tag system
/** I2 once: a mailbox keeps its records, folders and waiting hand-offs, whatever the configuration calls it. */
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import { listJson } from "../support/command.ts";
import { mailboxKeys } from "../support/installation.ts";
import { openSite } from "../support/operator.ts";
import { end, logOf, startProgram } from "../support/program.ts";
import { startRedis } from "../support/redis.ts";
import { transferPlan } from "../support/service.ts";
import { MAILBOX } from "../support/settings.ts";

const OTHER = "other@example.com";
const RELOADED = "the configuration was reloaded";
const TWO: Scenario = {
  transfers: [transferPlan({ trackingId: "t1" }), transferPlan({ trackingId: "t2", to: [OTHER] })],
};

describe.each(["embedded", "redis"])("with the engine %s", (engine) => {
  test("a mailbox gets a name, loses it, and two swap theirs", async () => {
    const site = await setUp(engine, TWO);
    const { configure, start, handed, deliveriesOf, simulator, journal } = site;
    await configure(undefined, undefined);
    const first = await start();
    await expect.poll(handed).toEqual(["t1", "t2"]);
    const downloads = simulator.totals().file;
    await configure("orders", "lab");
    await expect.poll(first.logged).toContain(RELOADED);
    await end(first.daemon);
    await configure("lab", "orders");
    const second = await start();
    simulator.addTransfer(transferPlan({ trackingId: "t3" }));
    await expect.poll(handed).toEqual(["t1", "t2", "t3"]);
    // A command means what the configuration calls so now, and an address is always clear.
    for (const name of ["lab", MAILBOX]) {
      const listed = await listJson(site.config, "--mailbox", name);
      expect(listed.map(({ trackingId, mailbox }) => [trackingId, mailbox]).toSorted()).toEqual([
        ["t1", "lab"],
        ["t3", "lab"],
      ]);
    }
    await configure(undefined, "lab");
    await expect.poll(second.logged).toContain(RELOADED);
    await end(second.daemon);
    await configure(undefined, undefined);
    const third = await start();
    simulator.addTransfer(transferPlan({ trackingId: "t4", to: [OTHER] }));
    await expect.poll(handed).toEqual(["t1", "t2", "t3", "t4"]);
    expect([await deliveriesOf(MAILBOX), await deliveriesOf(OTHER)]).toEqual([
      ["t1", "t3"],
      ["t2", "t4"],
    ]);
    expect(simulator.totals().file).toBe(2 * downloads);
    expect(await journal()).not.toContain('"picked-up"');
    await end(third.daemon);
  });

  test("a removed mailbox leaves its waiting hand-off alone until it is back", async () => {
    const site = await setUp(engine, TWO);
    const { configure, start, handed, fail, mend, config, inlet } = site;
    await fail();
    await configure(undefined, undefined, { handoff: { command: site.commandOf("own") } });
    const first = await start();
    await expect.poll(first.logged).toContain("the hand-off failed");
    await expect.poll(handed).toEqual(["t2"]);
    await site.rewrite({ ...site.keys, mailboxes: [mailboxKeys(OTHER)] });
    await expect.poll(first.logged).toContain(RELOADED);
    await end(first.daemon);
    await mend();
    const second = await start();
    const status = async () => (await inlet("status")).stdout;
    await expect.poll(status).toContain("Its mailbox no longer has this hand-off of its own");
    await inlet("retry t1 --no-wait");
    site.simulator.addTransfer(transferPlan({ trackingId: "t3", to: [OTHER] }));
    await expect.poll(handed).toEqual(["t2", "t3"]);
    await configure(undefined, undefined, { handoff: { command: site.commandOf("own") } });
    await expect.poll(second.logged).toContain(RELOADED);
    await end(second.daemon);
    const third = await start();
    await inlet("retry t1 --no-wait");
    await expect.poll(handed).toEqual(["own t1", "t2", "t3"]);
    expect((await listJson(config)).map(({ state }) => state)).toEqual(Array(3).fill("delivered"));
    await end(third.daemon);
  });
});

async function setUp(engine: string, scenario: Scenario) {
  const redis = engine === "redis" ? await startRedis() : undefined;
  const site = await openSite(scenario);
  const [log, broken] = [join(site.folder, "handed"), join(site.folder, "broken")];
  /** Fails while the file is there, except for the common owner. */
  const commandOf = (owner: "common" | "own") => {
    const word = owner === "own" ? "own " : "";
    const write = `echo "${word}$INLET_TRACKING_ID" >> '${log}'`;
    return ["sh", "-c", owner === "own" ? `test ! -e '${broken}' && ${write}` : write];
  };
  const keys = {
    ...(redis && { queue: redis.url }),
    handoff: { command: commandOf("common") },
  };
  return {
    ...site,
    keys,
    commandOf,
    /** The names of the two mailboxes, and more keys of the first one. */
    configure: (name: string | undefined, otherName: string | undefined, more: object = {}) =>
      site.rewrite({
        ...keys,
        mailboxes: [
          { ...mailboxKeys(MAILBOX), name, ...more },
          { ...mailboxKeys(OTHER), name: otherName },
        ],
      }),
    async start() {
      const daemon = startProgram(["run", "--config", site.config]);
      const logged = logOf(daemon);
      await expect.poll(logged).toContain('"ready"');
      return { daemon, logged };
    },
    fail: () => writeFile(broken, ""),
    mend: () => rm(broken),
    handed: async () => (await readFile(log, "utf8").catch(() => "")).split("\n").filter(Boolean).toSorted(),
  };
}
