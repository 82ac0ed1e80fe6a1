/** One mailbox of one service, for tests of single transfers. */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect } from "vitest";
import type { Scenario, TransferPlan } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import type { MailboxSettings, Settings } from "../../src/config/settings.ts";
import { giveOrder } from "../../src/ledger/orders.ts";
import type { PasswordRule } from "../../src/model/mailbox.ts";
import type { Action } from "../../src/model/order.ts";
import { daemonSettings, startDaemon } from "./daemon.ts";
import { openFront } from "./servers.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { MAILBOX, mailboxSettings, OPERATOR, PASSWORD, plainSecret } from "./settings.ts";

const T1: Scenario = { transfers: [transferPlan({ trackingId: "t1" })] };

/** Without other transfers in the scenario, the mailbox has received `t1`. */
export async function openMailbox(
  mailbox: Partial<MailboxSettings> = {},
  scenario: Scenario = {},
  settings: Partial<Settings> = {},
): Promise<{ simulator: Simulator; settings: Settings }> {
  const simulator = await openTestSimulator({ ...T1, ...scenario });
  return { simulator, settings: await daemonSettings([mailboxSettings(simulator, mailbox)], settings) };
}

/** The mailbox has received this transfer, `t1`. */
export function openTransfer(
  plan: Partial<TransferPlan>,
  mailbox: Partial<MailboxSettings> = {},
  scenario: Scenario = {},
) {
  const transfers = [transferPlan({ trackingId: "t1", ...plan })];
  return openMailbox(mailbox, { ...scenario, transfers });
}

/** As `openMailbox`, behind a proxy that gives some answers itself. */
export async function openBehind(
  answer: Parameters<typeof openFront>[1],
  mailbox: Partial<MailboxSettings> = {},
  scenario: Scenario = {},
  settings: Partial<Settings> = {},
) {
  const simulator = await openTestSimulator({ ...T1, ...scenario });
  const front = await openFront(simulator, answer);
  return { simulator, front, settings: await daemonSettings([mailboxSettings(front, mailbox)], settings) };
}

/** A daemon that has delivered `t1`. */
export async function startAndDeliver(...args: Parameters<typeof startDaemon>) {
  const daemon = startDaemon(...args);
  await expect.poll(() => daemon.stateOf("t1")).toBe("delivered");
  return daemon;
}

/** Gives an order for `t1`. */
export async function order({ work }: Settings, action: Action, round = 1): Promise<string> {
  const { path } = await giveOrder(work, { action, mailbox: MAILBOX, trackingId: "t1", round, by: OPERATOR });
  return path;
}

/** A rule for every transfer, for each password. */
export function rules(...passwords: string[]): PasswordRule[] {
  return passwords.map((text) => ({ sender: "*", trackingId: undefined, password: plainSecret(text) }));
}

/** Supplies a password. `path`: in the folder of supplied passwords. */
export async function drop(settings: Settings, path: string, password = PASSWORD): Promise<void> {
  const target = join(settings.state, "passwords", path);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, password);
}
