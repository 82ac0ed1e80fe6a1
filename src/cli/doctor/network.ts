/** Checks that the queue and the services can be reached, and that each mailbox may use its service. */
import { systemClock } from "../../base/clock.ts";
import { mapLimit } from "../../base/concurrency.ts";
import { asFault, Fault } from "../../base/faults.ts";
import { formatCount, formatSeconds } from "../../base/phrases.ts";
import { asOwnerOf } from "../../base/process.ts";
import { Scope } from "../../base/scope.ts";
import type { Secret } from "../../base/secret.ts";
import { findClientId, loadTokenStores, type TokenStore } from "../../config/memory.ts";
import { LOOPBACK } from "../../config/service.ts";
import type {
  MailboxSettings,
  RedisQueueSettings,
  ServiceSettings,
  Settings,
} from "../../config/settings.ts";
import { countMembers, describeHolder } from "../../inbox/members.ts";
import { Tokens } from "../../mailbox/tokens.ts";
import { readRedisSecrets } from "../../queue/open.ts";
import { POLLING_MINOR_VERSION } from "../../service/http.ts";
import type { ServicePort } from "../../service/port.ts";
import { canPoll, formatVersions, openClient, openTokensFolder, throwawayClientId } from "../client.ts";
import { Findings } from "./findings.ts";

const QUEUE = "queue";
const TIMEOUT_MS = 10_000;

export async function checkQueue(
  findings: Findings,
  { queue, work }: Settings,
  signal: AbortSignal,
): Promise<void> {
  await reportMembers(findings, work);
  if (queue === "embedded") findings.ok(QUEUE, "engine", "embedded: one daemon does all the work");
  else await checkRedis(findings, queue, signal);
}

/** Takes no lock: a running daemon is not disturbed. */
async function reportMembers(findings: Findings, work: string): Promise<void> {
  try {
    const count = await countMembers(work);
    const processes = formatCount(count, "process uses", "processes use");
    const users = count === 0 ? "no process uses it now" : `${processes} it: ${await describeHolder(work)}`;
    findings.ok(QUEUE, "inbox", users);
  } catch (error) {
    findings.skip(QUEUE, "inbox", `the processes that use it cannot be listed: ${asFault(error).message}`);
  }
}

async function checkRedis(findings: Findings, queue: RedisQueueSettings, signal: AbortSignal): Promise<void> {
  try {
    const { inspectQueue } = await import("../../queue/bullmq-connection.ts");
    const redis = await readRedisSecrets(queue, signal);
    const { address, version, evictionPolicy, persistence } = await inspectQueue(redis, TIMEOUT_MS, signal);
    findings.ok(QUEUE, "Redis", `${address} answers, version ${version}`);
    if (evictionPolicy === "noeviction")
      findings.ok(QUEUE, "memory", "it evicts no keys when memory is short");
    else {
      findings.warn(
        QUEUE,
        "memory",
        `its maxmemory-policy is ${evictionPolicy || "unknown"}: it may evict jobs when memory is short`,
        `${commandFor(queue)} CONFIG SET maxmemory-policy noeviction, and set it in the configuration of Redis`,
      );
    }
    findings.ok(QUEUE, "persistence", persistence);
  } catch (error) {
    const fault = asFault(error);
    if (fault.code === "STOPPED") throw fault;
    findings.failWith(QUEUE, "Redis", fault);
    for (const check of ["memory", "persistence"]) findings.skip(QUEUE, check, "Redis cannot be reached");
  }
}

/** The start of a `redis-cli` command. With several servers, each needs the setting. */
function commandFor({ url, cluster, sentinels }: RedisQueueSettings): string {
  if (cluster.length + sentinels.length > 0) return "On each server: redis-cli";
  const tls = url.protocol === "rediss:" ? " --tls" : "";
  return `redis-cli -h ${url.hostname} -p ${url.port || 6379}${tls}`;
}

const SERVICE = "service";
const AT_ONCE = 4;

/** Beyond this, tokens are renewed too late, and times in the ledger mislead. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

export async function checkServices(
  findings: Findings,
  settings: Settings,
  signal: AbortSignal,
): Promise<void> {
  const mailboxes = Map.groupBy(settings.mailboxes, ({ service }) => service);
  for (const [service, users] of mailboxes) await checkService(findings, settings, service, users, signal);
}

async function checkService(
  findings: Findings,
  settings: Settings,
  serviceSettings: ServiceSettings,
  mailboxes: readonly MailboxSettings[],
  signal: AbortSignal,
): Promise<void> {
  await using scope = new Scope();
  const clientId = await readClientId(findings, serviceSettings, settings.state, signal);
  const service = scope.use(openClient(serviceSettings, clientId ?? throwawayClientId(), TIMEOUT_MS), (it) =>
    it.close(),
  );
  const isReached = await checkReach(findings, service, serviceSettings, signal);
  const why = isReached ? "there is no client id" : "the service cannot be reached";
  if (!isReached || clientId === undefined) {
    for (const { name } of mailboxes) findings.skip(SERVICE, name, why);
    return;
  }
  const openTokens = await loadTokenStores();
  const check = async () => {
    await using tokens = new Scope();
    const folder = await openTokensFolder(tokens, settings.state).catch((error: unknown) => asFault(error));
    if (!(folder instanceof Fault)) {
      return checkMailboxes(findings, openTokens(folder), mailboxes, service, signal);
    }
    for (const { name } of mailboxes) findings.failWith(SERVICE, name, folder);
  };
  await asOwnerOf(settings.state, check);
}

async function checkMailboxes(
  findings: Findings,
  tokenStore: TokenStore,
  mailboxes: readonly MailboxSettings[],
  service: ServicePort,
  signal: AbortSignal,
): Promise<void> {
  // Reported in the order of the configuration, not of the answers.
  const found = await mapLimit(mailboxes, AT_ONCE, async (mailbox) => {
    // Added to the others below.
    const own = new Findings(() => {});
    const tokens = new Tokens(mailbox, service, mailbox.service.token, tokenStore, systemClock);
    await checkMailbox(own, mailbox, service, tokens, signal);
    return own;
  });
  for (const each of found) findings.addAll(each);
}

/** Creates no client id: `init` or the first start of the daemon does, and reports its file. */
async function readClientId(
  findings: Findings,
  serviceSettings: ServiceSettings,
  state: string,
  signal: AbortSignal,
): Promise<Secret | undefined> {
  if (serviceSettings.clientId !== undefined) {
    // The check of the secrets has reported the reason.
    const read = await serviceSettings.clientId.read(signal).catch(() => undefined);
    if (read === undefined) findings.skip(SERVICE, "client id", "it cannot be read");
    return read;
  }
  const clientId = await findClientId(state).catch(asFault);
  if (clientId instanceof Fault) {
    findings.failWith(SERVICE, "client id", clientId);
    return undefined;
  }
  if (clientId === undefined) {
    findings.fail(
      SERVICE,
      "client id",
      "attention",
      "none is configured, and none was created yet",
      "Start the daemon once: it creates one and logs its file. Then ask the service's administrator to register it.",
    );
  }
  return clientId;
}

async function checkReach(
  findings: Findings,
  service: ServicePort,
  { baseUrl }: ServiceSettings,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const versions = await service.apiVersions(signal);
    const isPlain = baseUrl.protocol === "http:" && !LOOPBACK.test(baseUrl.hostname);
    const isTrusted = baseUrl.protocol === "https:";
    findings.ok(
      SERVICE,
      "reach",
      `${baseUrl.href} answers${isTrusted ? ", and its certificate is trusted" : ""}`,
    );
    if (isPlain)
      findings.warn(SERVICE, "reach", "it uses plain http: secrets travel unencrypted", "Use https.");
    reportVersion(findings, versions);
    await checkClock(findings, service, signal);
    return true;
  } catch (error) {
    const fault = asFault(error);
    if (fault.code === "STOPPED") throw fault;
    findings.failWith(SERVICE, "reach", fault);
    return false;
  }
}

function reportVersion(findings: Findings, versions: Awaited<ReturnType<ServicePort["apiVersions"]>>): void {
  const needed = `1.${POLLING_MINOR_VERSION}`;
  if (versions === undefined) {
    findings.warn(
      SERVICE,
      "version",
      "it does not report its version: it is older than 1.13, or the base URL is not quite right",
      `Inlet needs ${needed} or newer; the mailbox checks show whether it has that.`,
    );
    return;
  }
  const offered = `it offers ${formatVersions(versions)}`;
  if (canPoll(versions)) findings.ok(SERVICE, "version", `${offered}; Inlet needs ${needed}`);
  else findings.failWith(SERVICE, "version", new Fault("API_VERSION", { detail: offered }));
}

/** Skipped if the service does not report its time. */
async function checkClock(findings: Findings, service: ServicePort, signal: AbortSignal): Promise<void> {
  const askedMs = Date.now();
  // The other checks report a service that does not answer.
  const time = await service.serverTime(signal).catch(() => undefined);
  const nowMs = (askedMs + Date.now()) / 2;
  if (time === undefined) return findings.skip(SERVICE, "clock", "the service does not report its time");
  const aheadMs = nowMs - time.getTime();
  const difference = formatSeconds(Math.abs(aheadMs) / 1000);
  // The service reports whole seconds.
  if (Math.abs(aheadMs) < 2_000)
    findings.ok(SERVICE, "clock", "this machine's clock agrees with the service's");
  else if (Math.abs(aheadMs) < MAX_CLOCK_DIFFERENCE_MS) {
    findings.ok(
      SERVICE,
      "clock",
      `this machine's clock is ${difference} ${aheadMs > 0 ? "ahead of" : "behind"} the service's`,
    );
  } else {
    findings.warn(
      SERVICE,
      "clock",
      `this machine's clock is ${difference} ${aheadMs > 0 ? "ahead of" : "behind"} the service's`,
      "Set the clock, and keep it synchronised: timedatectl set-ntp true",
    );
  }
}

async function checkMailbox(
  findings: Findings,
  mailbox: MailboxSettings,
  service: ServicePort,
  tokens: Tokens,
  signal: AbortSignal,
): Promise<void> {
  const { name, email } = mailbox;
  try {
    const query = { page: 1, pageSize: 1, active: true, fields: { trackingId: true } } as const;
    const page = await tokens.use((address) => service.pollReceived(address, query, signal), signal);
    const until = tokens.facts?.validUntilMs;
    const who = name === email ? "" : `${email} is `;
    findings.ok(
      SERVICE,
      name,
      `${who}verified${until === undefined ? "" : ` until ${new Date(until).toISOString()}`}, and its list can be read`,
    );
    for (const { fault } of page.rejected.slice(0, 1))
      findings.warn(SERVICE, name, fault.message, fault.advice);
  } catch (error) {
    const fault = asFault(error);
    if (fault.code === "STOPPED") throw fault;
    const isUnverified = fault.code === "TOKEN_REFUSED" || fault.code === "POLICY_REFUSED";
    findings.failWith(SERVICE, name, fault, isUnverified ? adviceFor(mailbox) : undefined);
  }
}

function adviceFor({ name, service: { clientId, token } }: MailboxSettings): string {
  if (token !== undefined) {
    return `Obtain a new token and put it into ${token.described}, or remove service.verification.`;
  }
  const where = clientId?.described ?? "the state folder's client-id";
  return `Ask the service's administrator to register the client id (${where}) for it, or run: inlet verify-address ${name}`;
}
