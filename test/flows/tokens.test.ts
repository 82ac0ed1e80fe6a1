/** Services that limit how many verification tokens they give, with each engine. */
import { expect, test } from "vitest";
import type { Scenario } from "../../simulator/scenario.ts";
import { daemonSettings, runOnce, startDaemon } from "../support/daemon.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings } from "../support/settings.ts";

/** New mailboxes of one service, each with a transfer. */
async function open(count: number, tokenLimit: Scenario["tokenLimit"]) {
  const emails = [MAILBOX, ...Array.from({ length: count - 1 }, (_, at) => `m${at}@example.com`)];
  const transfers = emails.map((email, at) => transferPlan({ trackingId: `t${at}`, to: [email] }));
  const simulator = await openTestSimulator({
    transfers,
    ...(tokenLimit === undefined ? {} : { tokenLimit }),
  });
  const mailboxes = emails.map((email) =>
    mailboxSettings(simulator, { name: email, email, pollMs: 600_000 }),
  );
  const tokens = () => simulator.requests().filter(({ operation }) => operation === "verification-token");
  const refused = () => tokens().filter(({ status }) => status === 429).length;
  return { simulator, mailboxes, tokens, refused };
}

test.each([
  ["without a time", {}],
  ["with a time", { retryAfter: true }],
])(
  "60 new mailboxes are served in one run by a service that gives 10 tokens a second (refusals %s)",
  async (_name, told) => {
    const { mailboxes, tokens, refused } = await open(60, { tokens: 10, seconds: 1, ...told });
    const settings = await daemonSettings(mailboxes);
    const first = await runOnce(settings);
    expect(await first.outcome).toMatchObject({ failedPolls: 0 });
    expect(first.changes.filter(({ state }) => state === "delivered")).toHaveLength(60);
    expect(tokens().length - refused()).toBe(60);
    expect(refused()).toBeLessThanOrEqual(6);
    const before = tokens().length;
    expect(await (await runOnce(settings)).outcome).toMatchObject({ failedPolls: 0 });
    expect(tokens().length).toBe(before);
  },
);

test("a service that gives no more tokens for an hour goes on to serve the mailboxes that have one", async () => {
  const { simulator, mailboxes, refused } = await open(3, undefined);
  const [known, ...others] = mailboxes.map((it) => ({ ...it, pollMs: 100 }));
  if (known === undefined) throw new Error("no mailbox");
  const settings = await daemonSettings([known]);
  expect(await (await runOnce(settings)).outcome).toMatchObject({ failedPolls: 0 });
  simulator.addFault({
    on: "verification-token",
    times: "always",
    does: { kind: "error", status: 429, errorCode: 2007, retryAfter: "3600" },
  });
  const daemon = startDaemon({ ...settings, mailboxes: [known, ...others] });
  await expect.poll(() => daemon.reports.filter((it) => it.includes("RATE_LIMITED"))).toHaveLength(2);
  simulator.addTransfer(transferPlan({ trackingId: "later", to: [MAILBOX] }));
  await expect.poll(() => daemon.stateOf("later")).toBe("delivered");
  expect(refused()).toBeLessThanOrEqual(2);
});
