/** Chooses how a command reaches transfers. */
import type { Settings } from "../config/settings.ts";
import type { Access } from "./access.ts";
import type { Context } from "./context.ts";
import { mayUse, permissionFault, USE } from "./permission.ts";

/** Throws `PERMISSION_DENIED` if this user may use neither the work folder nor a socket of the daemon. */
export async function openAccess(context: Context, settings: Settings): Promise<Access> {
  const { work, http } = settings;
  if (await mayUse(work)) {
    const { LocalAccess } = await import("./local-access.ts");
    return new LocalAccess(context, settings);
  }
  const { openSocket } = await import("./daemon-socket.ts");
  const socket = await openSocket(context, http);
  if (socket === undefined) throw await permissionFault(work, USE);
  const { RemoteAccess } = await import("./remote-access.ts");
  return new RemoteAccess(socket, settings);
}
