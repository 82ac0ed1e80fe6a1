/** I1 whole or nothing: a daemon that is not root delivers with any mode of files that the configuration allows. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { FilePlan } from "../../simulator/scenario.ts";
import type { MailboxSettings, Settings } from "../../src/config/settings.ts";
import { giveOrder } from "../../src/ledger/orders.ts";
import type { Action } from "../../src/model/order.ts";
import { daemonSettings, startDaemon } from "../support/daemon.ts";
import { checkWith } from "../support/handoff.ts";
import { openTestSimulator, transferPlan } from "../support/service.ts";
import { MAILBOX, mailboxSettings, OPERATOR } from "../support/settings.ts";

const MODES = [0o400, 0o440, 0o640];
const WAYS = ["files", "zip"] as const;
const CASES = MODES.flatMap((mode) => WAYS.map((way) => ({ mode, octal: mode.toString(8), way })));
const [WHOLE, LARGE] = [
  { name: "a.txt", text: "Hello" },
  { name: "b.bin", generate: { bytes: 2_000_000 } },
];

describe.each(CASES)("files with mode $octal, by $way,", ({ mode, way }) => {
  test("are delivered after an interrupted download", async () => {
    const { settings, simulator } = await prepare(mode, way);
    const on = way === "zip" ? "zip" : "file";
    const stall = { kind: "stall", afterBytes: 1_000_000 } as const;
    const fault = simulator.addFault({ on, ...(on === "file" ? { file: "b.bin" } : {}), does: stall });
    const first = startDaemon(settings, { graceMs: 0 });
    await expect.poll(() => first.stateOf("t1")).toBe("downloading");
    await expect.poll(() => simulator.totals()[on]).toBeGreaterThan(0);
    await first.stop();
    simulator.removeFault(fault);
    await expectDelivery(settings, mode);
  });

  test("are delivered after a check without a verdict, and again", async () => {
    const { settings } = await prepare(mode, way);
    const withCheck = (script: string) =>
      settings.mailboxes.map((mailbox): MailboxSettings => ({ ...mailbox, check: checkWith(script) }));
    const first = startDaemon({ ...settings, mailboxes: withCheck("exit 9") }, { retryMs: 1_000 });
    await expect.poll(() => first.stateOf("t1")).toBe("waiting");
    await first.stop();
    await expectDelivery({ ...settings, mailboxes: withCheck("exit 0") }, mode);
    await order(settings, "redeliver");
    await expectDelivery(settings, mode, 2);
  });

  test("are released from quarantine", async () => {
    const { settings, simulator } = await prepare(mode, way, [{ ...WHOLE, csvChecksum: "wrong" }]);
    const first = startDaemon(settings);
    await expect.poll(() => first.stateOf("t1")).toBe("quarantined");
    simulator.revoke("t1");
    await order(settings, "release");
    await expect.poll(() => first.stateOf("t1")).toBe("delivered");
    await first.stop();
    await expectDelivery(settings, mode);
  });
});

async function prepare(
  fileMode: number,
  fetch: (typeof WAYS)[number],
  files: readonly FilePlan[] = [WHOLE, LARGE],
) {
  const plan = transferPlan({ trackingId: "t1", message: "Hello", files });
  const simulator = await openTestSimulator({ transfers: [plan] });
  const handoff = { fileMode, folderMode: 0o750, marker: undefined };
  return { simulator, settings: await daemonSettings([mailboxSettings(simulator, { fetch })], { handoff }) };
}

async function expectDelivery(settings: Settings, mode: number, count = 1): Promise<void> {
  const daemon = startDaemon(settings);
  const sender = join(settings.inbox, MAILBOX, "anna@supplier.example");
  await expect.poll(() => readdir(sender).catch(() => [])).toHaveLength(count);
  await daemon.stop();
  expect(await readdir(join(settings.work, "staging"))).toEqual([]);
  for (const entry of await readdir(sender, { recursive: true, withFileTypes: true })) {
    const { mode: found } = await stat(join(entry.parentPath, entry.name));
    expect([entry.name, found & 0o777]).toEqual([entry.name, entry.isFile() ? mode : 0o750]);
  }
}

function order(settings: Settings, action: Action): Promise<string> {
  return giveOrder(settings.work, { action, mailbox: MAILBOX, trackingId: "t1", round: 1, by: OPERATOR });
}
