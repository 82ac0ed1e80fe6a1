/** A configuration file for a simulated service, in a folder of its own, as an administrator would have it. */
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Scenario } from "../../simulator/scenario.ts";
import type { Simulator } from "../../simulator/simulator.ts";
import { makeFolder } from "./program.ts";
import { openTestSimulator, transferPlan } from "./service.ts";
import { MAILBOX, PASSWORD } from "./settings.ts";

type Keys = Readonly<Record<string, unknown>>;

export interface Installation {
  readonly simulator: Simulator;
  readonly folder: string;
  readonly config: string;
  readonly inbox: string;
  readonly state: string;
  /** What stands in the file with these keys beside, or in place of, the usual ones. */
  text(keys: Keys): string;
  /** As editors do it: a new file takes the place of the old one. */
  rewrite(keys: Keys): Promise<void>;
}

/** `keys`: of the configuration, beside, or in place of, the usual ones. */
export async function install(
  scenario: Scenario = { transfers: [transferPlan({ trackingId: "t1" })] },
  keys: Keys = {},
): Promise<Installation> {
  const simulator = await openTestSimulator(scenario);
  const folder = await makeFolder();
  const config = join(folder, "inlet.yaml");
  const [inbox, state] = [join(folder, "inbox"), join(folder, "state")];
  const usual = {
    service: { baseUrl: simulator.url, clientId: simulator.clientId },
    inbox,
    state,
    limits: { minFreeSpace: "1KiB" },
    http: { listen: false },
    mailboxes: [mailboxKeys(MAILBOX)],
  };
  const text = (changed: Keys) => JSON.stringify({ ...usual, ...changed }, null, 2);
  const rewrite = async (changed: Keys) => {
    await writeFile(`${config}.new`, text(changed), { mode: 0o600 });
    await rename(`${config}.new`, config);
  };
  await rewrite(keys);
  return { simulator, folder, config, inbox, state, text, rewrite };
}

export function mailboxKeys(email: string) {
  return { email, poll: "200ms", passwords: [{ sender: "*", password: PASSWORD }] };
}
