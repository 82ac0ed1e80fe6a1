/** The mailboxes with their services and tokens: one client per service, however many mailboxes share it. */
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Scope } from "../base/scope.ts";
import { Secret } from "../base/secret.ts";
import { keepClientId } from "../config/client-id.ts";
import type { MailboxSettings, Settings } from "../config/settings.ts";
import { findLink } from "../mailbox/links.ts";
import { findState } from "../mailbox/reconcile.ts";
import { MailboxState } from "../mailbox/state.ts";
import { Tokens } from "../mailbox/tokens.ts";
import { type Bandwidth, createBandwidth } from "../service/bandwidth.ts";
import { openService } from "../service/open.ts";
import type { ServicePort } from "../service/port.ts";
import type { DaemonWatch } from "./watching.ts";

/** Beside those for downloads. */
const POLL_CONNECTIONS = 4;

export async function openMailboxes(
  settings: Settings,
  scope: Scope,
  clock: Clock,
  watch: Pick<DaemonWatch, "clientIdMade">,
  stop: AbortSignal,
): Promise<Map<string, MailboxState>> {
  const folder = join(settings.state, "tokens");
  const mailboxes = new Map<string, MailboxState>();
  const services = new Map<MailboxSettings["service"], ServicePort>();
  const bandwidth = createBandwidth(settings.limits.bandwidth ?? [], clock);
  for (const mailbox of settings.mailboxes) {
    const described = mailbox.service;
    const service =
      services.get(described) ??
      scope.use(await open(described, settings, bandwidth, watch, stop), (it) => it.close());
    services.set(described, service);
    const tokens = new Tokens(mailbox, service, described.token, folder, clock);
    mailboxes.set(mailbox.name, new MailboxState(mailbox, service, tokens));
  }
  return mailboxes;
}

/** One client per service, however many mailboxes share it. */
async function open(
  described: MailboxSettings["service"],
  { state, limits }: Settings,
  bandwidth: Bandwidth,
  watch: Pick<DaemonWatch, "clientIdMade">,
  stop: AbortSignal,
): Promise<ServicePort> {
  const own = described.clientId === undefined ? await keepClientId(state) : undefined;
  if (own?.made === true) watch.clientIdMade(described.baseUrl.origin, own.path);
  const clientId = own?.clientId ?? (await described.clientId?.read(stop)) ?? new Secret("");
  const connections = limits.transfers * limits.filesPerTransfer + POLL_CONNECTIONS;
  return openService({ ...described, clientId, connections, idListForm: "repeat", bandwidth });
}

export function sourceOf(state: MailboxState) {
  return {
    mailbox: state.mailbox,
    service: state.service,
    health: state.health,
    linkOf: (trackingId: string, signal: AbortSignal) => findLink(state, trackingId, signal),
    stateOf: (trackingId: string, signal: AbortSignal) => findState(state, trackingId, signal),
  };
}
