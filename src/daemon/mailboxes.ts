/** The mailboxes with their services and tokens: one client per service, however many mailboxes share it. */

import { hash } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { Secret } from "../base/secret.ts";
import type { MailboxSettings } from "../config/settings.ts";
import { keepClientId, type loadTokenStores } from "../host/memory.ts";
import type { Ledger } from "../ledger/port.ts";
import { MailboxState } from "../mailbox/state.ts";
import { Tokens } from "../mailbox/tokens.ts";
import type { Emit } from "../model/events.ts";
import { type MailboxId, mailboxIdOf } from "../model/transfer.ts";
import { Bandwidth } from "../service/bandwidth.ts";
import type { ServicePort } from "../service/port.ts";
import type { openService } from "../service/service.ts";
import type { LiveSettings } from "./live-settings.ts";

/** A reload replaces entries of `states`; a running download keeps the entry it began with. */
export type Mailboxes = Awaited<ReturnType<typeof openMailboxes>>;

/** Retention deletes nothing while the clock is wrong by more than this. */
const MAX_CLOCK_ERROR_MS = 60 * 60_000;

interface MailboxesTools {
  readonly clock: Clock;
  readonly emit: Emit;
  readonly stop: AbortSignal;
  readonly facts: Ledger["services"];
  readonly openService: typeof openService;
  readonly loadTokenStores: typeof loadTokenStores;
}

export async function openMailboxes(
  live: LiveSettings,
  scope: AsyncDisposableStack,
  { clock, emit, stop, facts, openService, loadTokenStores }: MailboxesTools,
) {
  const settings = live.now;
  const openTokens = await loadTokenStores();
  const tokenStore = openTokens(join(settings.state, "tokens"));
  const bandwidth = new Bandwidth(() => live.now.limits.bandwidth, clock);
  /** By fingerprint. */
  const services = new Map<string, ServicePort>();
  /** By settings object, which a pause keeps: then no secret is read again, because its source may be away. */
  const opened = new WeakMap<MailboxSettings["service"], ServicePort>();
  const states = new Map<MailboxId, MailboxState>();

  /** Services that no mailbox uses stay open until the end: a download may still run. */
  const serviceFor = async (wanted: MailboxSettings["service"]): Promise<ServicePort> => {
    const own = wanted.clientId === undefined ? await keepClientId(settings.state) : undefined;
    if (own?.isNew === true) {
      emit({ type: "client-id-created", origin: wanted.baseUrl.origin, path: own.path });
    }
    const clientId = own?.clientId ?? (await wanted.clientId?.read(stop)) ?? new Secret("");
    const key = fingerprint(wanted, clientId);
    const known = services.get(key);
    if (known !== undefined) return known;
    const maxRequests = () => live.now.limits.requests;
    const service = openService({ ...wanted, clientId, maxRequests, bandwidth, facts });
    scope.adopt(service, (it) => it.close());
    services.set(key, service);
    return service;
  };

  /**
   * Opens the services of new settings. The returned function replaces the mailboxes. Throws `SECRET_UNREADABLE`, and
   * then nothing has changed.
   */
  const prepare = async (mailboxes: readonly MailboxSettings[]) => {
    for (const { service } of mailboxes) {
      if (!opened.has(service)) opened.set(service, await serviceFor(service));
    }
    return () => {
      const wanted = new Set(mailboxes.map(({ name }) => mailboxIdOf(name)));
      for (const id of states.keys()) if (!wanted.has(id)) states.delete(id);
      for (const mailbox of mailboxes) {
        const service = opened.get(mailbox.service) as ServicePort;
        const configured = mailbox.service.token;
        const tokens = new Tokens({ mailbox, service, configured, store: tokenStore, clock });
        const id = mailboxIdOf(mailbox.name);
        const known = states.get(id);
        const isSame =
          known?.service === service && mailboxIdOf(known.mailbox.email) === mailboxIdOf(mailbox.email);
        states.set(id, new MailboxState(mailbox, service, tokens, isSame ? known : undefined));
      }
    };
  };

  const apply = await prepare(settings.mailboxes);
  apply();
  /** Whether our clock agrees with the clocks of the services. False until a service has sent its time. */
  const isClockRight = () => {
    const known = [...services.values()].map((it) => it.clockAheadMs()).filter((it) => it !== undefined);
    return known.length > 0 && known.every((aheadMs) => Math.abs(aheadMs) <= MAX_CLOCK_ERROR_MS);
  };
  return { states: states as ReadonlyMap<MailboxId, MailboxState>, prepare, isClockRight };
}

/** Equal for services that are reached in the same way, as the same client. */
function fingerprint(service: MailboxSettings["service"], clientId: Secret): string {
  const { baseUrl, acceptLanguage, userAgent, idListForm, ca, cert, key, proxy, timeoutMs } = service;
  const tls = [ca, cert, key];
  const texts = [acceptLanguage, userAgent, idListForm];
  const facts = [baseUrl.href, clientId.reveal(), texts, tls, proxy, timeoutMs];
  return hash("sha256", JSON.stringify(facts));
}
