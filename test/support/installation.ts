/** A configuration file for a simulated service, in a folder of its own, as an administrator would have it. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Scenario } from "../../src/simulator/scenario.ts";
import type { Simulator } from "../../src/simulator/simulator.ts";
import { makeFolder } from "./program.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { MAILBOX, PASSWORD } from "./settings.ts";

export interface Installation {
  readonly simulator: Simulator;
  readonly folder: string;
  readonly config: string;
  readonly inbox: string;
  readonly state: string;
}

/** `settings`: keys of the configuration beside, or in place of, the usual ones. */
export async function install(
  scenario: Scenario = { transfers: [transferPlan({ trackingId: "t1" })] },
  settings: Readonly<Record<string, unknown>> = {},
): Promise<Installation> {
  const simulator = await openTestSimulator(scenario);
  const folder = await makeFolder();
  const [config, inbox, state] = ["inlet.yaml", "inbox", "state"].map((name) => join(folder, name));
  if (config === undefined || inbox === undefined || state === undefined) throw new Error("no paths");
  const document = {
    service: { baseUrl: simulator.url, clientId: simulator.clientId },
    inbox,
    state,
    limits: { minFreeSpace: "1KiB" },
    http: { listen: false },
    mailboxes: [{ email: MAILBOX, poll: "200ms", passwords: [{ sender: "*", password: PASSWORD }] }],
    ...settings,
  };
  await writeFile(config, JSON.stringify(document, null, 2), { mode: 0o600 });
  return { simulator, folder, config, inbox, state };
}
