/** An administrator's configuration file for a simulated service, in a temporary folder. */
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
  /** The content of the file with these keys added to or replacing the usual ones. */
  text(keys: Keys): string;
  /** Replaces the file by a new one, as editors do. */
  rewrite(keys: Keys): Promise<void>;
}

/** `keys`: added to the usual configuration, or replacing parts of it. */
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
