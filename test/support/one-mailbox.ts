/** One mailbox of one service, for tests of single transfers. */
import type { Scenario } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import type { MailboxSettings, Settings } from "../../src/config/settings.ts";
import { daemonSettings } from "./daemon.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { mailboxSettings } from "./settings.ts";

/** Without other transfers in the scenario, the mailbox has received `t1`. */
export async function openMailbox(
  mailbox: Partial<MailboxSettings> = {},
  scenario: Scenario = {},
  settings: Partial<Settings> = {},
): Promise<{ simulator: Simulator; settings: Settings }> {
  const simulator = await openTestSimulator({
    transfers: [transferPlan({ trackingId: "t1" })],
    ...scenario,
  });
  return { simulator, settings: await daemonSettings([mailboxSettings(simulator, mailbox)], settings) };
}
