/** Looks up the groups of delivered files, each time that settings are put in force. */
import type { Settings } from "../config/settings.ts";
import { findGroup } from "../host/groups.ts";
import type { Handoff, Route } from "../model/mailbox.ts";

/** The settings with the number of each group. Throws `GROUP_UNKNOWN` and `STOPPED`. */
export async function withGroups(settings: Settings, signal: AbortSignal): Promise<Settings> {
  const withGroup = async (handoff: Handoff): Promise<Handoff> => {
    const { group } = handoff;
    return group === undefined ? handoff : { ...handoff, gid: await findGroup(group, signal) };
  };
  const handoff = await withGroup(settings.handoff);
  const mailboxes: Settings["mailboxes"][number][] = [];
  for (const mailbox of settings.mailboxes) {
    const { handoff: own, routing } = mailbox;
    const routes: Route[] = [];
    for (const route of routing?.routes ?? []) {
      routes.push(
        route.handoff === undefined ? route : { ...route, handoff: await withGroup(route.handoff) },
      );
    }
    mailboxes.push({
      ...mailbox,
      ...(own && { handoff: await withGroup(own) }),
      ...(routing && { routing: { ...routing, routes } }),
    });
  }
  return { ...settings, handoff, mailboxes };
}
