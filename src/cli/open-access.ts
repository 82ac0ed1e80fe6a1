/** Chooses how a command reaches transfers: through the folders or, if this user may not use them, through the daemon. */
import { Mutex } from "../base/concurrency.ts";
import { blockingDisk } from "../base/disk.ts";
import { asOwnerOf } from "../base/process.ts";
import { loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { mayUse, nameOfUser, permissionFault, USE } from "../host/permission.ts";
import { countMembers } from "../inbox/members.ts";
import { withKeys } from "../ledger/keys.ts";
import { describeDaemon } from "../operate/facts.ts";
import type { Operate } from "../operate/local.ts";
import type { Context } from "./command.ts";
import type { CommonOptions } from "./options.ts";

/** For commands that need no secret. Throws `PERMISSION_DENIED` if this user may use neither the work folder nor a socket of the daemon. */
export async function openConfigured(
  context: Context,
  { config: path }: CommonOptions,
): Promise<{ readonly access: Operate; readonly settings: Settings }> {
  const loaded = await loadSettings({ env: context.env, path, ignoreSecrets: true });
  const { work } = loaded;
  if (await mayUse(work)) {
    const settings = { ...loaded, mailboxes: await withKeys(work, loaded.mailboxes, "foreseen") };
    return { settings, access: await openFolders(context, settings) };
  }
  const access = await openSocket(context, loaded);
  if (access === undefined) throw await permissionFault(work, USE);
  return { settings: loaded, access };
}

async function openFolders({ stop }: Context, settings: Settings): Promise<Operate> {
  const { Local } = await import("../operate/local.ts");
  const { work, queue } = settings;
  // The rights of the process change while it writes.
  const writes = new Mutex();
  return new Local({
    settings: () => settings,
    stop,
    disk: blockingDisk,
    asOwner: (folder, write) => writes.run(() => asOwnerOf(folder, write)),
    // Other processes may run on other machines, where their locks cannot be seen.
    isRunning: async () => (await countMembers(work)) > 0 || queue !== "embedded",
    options: describeDaemon(settings),
  });
}

/** `undefined` if no daemon answers on a socket. Throws if this user may not use the one at `http.listen`. */
async function openSocket({ stop }: Context, settings: Settings): Promise<Operate | undefined> {
  const { findDaemon } = await import("../operate/client.ts");
  const daemon = await findDaemon(settings, nameOfUser(), stop);
  const { Remote } = await import("../operate/remote.ts");
  return daemon && new Remote(daemon, settings);
}
