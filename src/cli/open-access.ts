/** Chooses how a command reaches transfers: through the folders or, if this user may not use them, through the daemon. */
import { Mutex } from "../base/concurrency.ts";
import { blockingDisk } from "../base/disk.ts";
import { asFault } from "../base/faults.ts";
import { asOwnerOf } from "../base/process.ts";
import { loadFolders, loadHttp, loadSettings } from "../config/load.ts";
import type { Settings } from "../config/settings.ts";
import { isPermissionFault, mayRead, mayUse, nameOfUser, permissionFault, USE } from "../host/permission.ts";
import { countMembers } from "../inbox/members.ts";
import { LedgerPaths } from "../ledger/paths.ts";
import type { CommandOptions } from "../model/order.ts";
import { describeDaemon } from "../operate/facts.ts";
import type { LocalSettings, Operate } from "../operate/local.ts";
import type { Context } from "./command.ts";
import type { CommonOptions } from "./options.ts";

/** Throws `PERMISSION_DENIED` if this user may use neither the work folder nor a socket of the daemon. */
export async function openAccess(context: Context, settings: Settings): Promise<Operate> {
  const { work } = settings;
  if (await mayUse(work)) return openFolders(context, settings, describeDaemon(settings));
  return (await openSocket(context, settings)) ?? Promise.reject(await permissionFault(work, USE));
}

/** For commands that need no secret. Throws `CONFIG_INVALID`, and as `openAccess` does. */
export async function openConfigured(
  context: Context,
  { config: path }: CommonOptions,
): Promise<{ readonly access: Operate; readonly settings: Settings }> {
  const settings = await loadSettings({ env: context.env, path, ignoreSecrets: true });
  return { settings, access: await openAccess(context, settings) };
}

/** For what only reads the journal. The configuration may be invalid elsewhere. */
export async function openJournal(
  context: Context,
  path: string | undefined,
): Promise<{ readonly operate: Operate; readonly timezone: string | undefined }> {
  const { env } = context;
  const { timezone, ...folders } = await loadFolders({ env, path });
  const { journal } = new LedgerPaths(folders.work);
  const none = { mailboxes: [], queue: "embedded" } as const;
  if (await mayRead(journal))
    return { operate: await openFolders(context, { ...folders, ...none }), timezone };
  const operate = await openSocket(context, { http: await loadHttp({ env, path }), mailboxes: [] });
  if (operate === undefined) throw await permissionFault(journal);
  return { operate, timezone };
}

async function openFolders(
  { stop }: Context,
  settings: LocalSettings & Pick<Settings, "queue">,
  { config }: CommandOptions = {},
): Promise<Operate> {
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
    options: { config },
  });
}

/** `undefined` if the configuration names no socket, or no daemon answers there. Throws if this user may not use it. */
async function openSocket(
  { stop }: Context,
  settings: Pick<Settings, "http" | "mailboxes">,
): Promise<Operate | undefined> {
  const { http } = settings;
  if (http === undefined || !("path" in http.listen)) return undefined;
  const { DaemonClient } = await import("../operate/client.ts");
  const client = new DaemonClient(http, nameOfUser(), stop);
  const isReachable = await client.ask("GET", "/healthz").then(
    () => true,
    (error: unknown) => {
      const fault = asFault(error);
      if (isPermissionFault(fault)) throw fault;
      return false;
    },
  );
  const { Remote } = await import("../operate/remote.ts");
  return isReachable ? new Remote(client, settings) : undefined;
}
