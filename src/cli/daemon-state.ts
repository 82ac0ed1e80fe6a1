/** Commands that leave something for the daemon use its state folder, which its environment may have named. */
import type { Settings } from "../config/settings.ts";
import { findDaemonState } from "../inbox/daemon-state.ts";

/** The settings as the daemon of this inbox has them, where the configuration itself does not say where state is. */
export async function withDaemonsState(settings: Settings): Promise<Settings> {
  if (settings.isStateNamed === true) return settings;
  const state = await findDaemonState(settings.work);
  return state === undefined ? settings : { ...settings, state };
}
