/** Checks that the queue, the services and the mail servers answer, and that each mailbox may use its service. */
import { mapLimit } from "../../base/concurrency.ts";
import { asFault, Fault } from "../../base/faults.ts";
import { formatCount, formatSeconds } from "../../base/phrases.ts";
import { asOwnerOf } from "../../base/process.ts";
import type { Secret } from "../../base/secret.ts";
import { LOOPBACK } from "../../config/service.ts";
import type { MailboxSettings, RedisQueueSettings, ServiceSettings } from "../../config/settings.ts";
import { findClientId, loadTokenStores, makeClientId } from "../../host/memory.ts";
import { countMembers, describeHolder } from "../../inbox/members.ts";
import type { Tokens } from "../../mailbox/tokens.ts";
import { describeChannel } from "../../model/notify.ts";
import { checkMailServer } from "../../notify/send.ts";
import { readRedisSecrets } from "../../queue/engine.ts";
import { POLLING_MINOR_VERSION } from "../../service/http.ts";
import type { ServicePort } from "../../service/port.ts";
import {
  canPoll,
  formatVersions,
  LACKS_VERSION,
  openClient,
  openTokens,
  tryMakeTokensFolder,
} from "../client.ts";
import type { Examination, Findings } from "./findings.ts";

const TIMEOUT_MS = 10_000;

export async function checkQueue({ findings, settings, signal }: Examination): Promise<void> {
  const { queue, work } = settings;
  await reportMembers(findings, work);
  if (queue === "embedded") findings.ok("engine", "embedded: one daemon does all the work");
  else await checkRedis(findings, queue, signal);
}

/** Takes no lock: a running daemon is not disturbed. */
async function reportMembers(findings: Findings, work: string): Promise<void> {
  try {
    const count = await countMembers(work);
    const processes = formatCount(count, "process uses", "processes use");
    const users = count === 0 ? "no process uses it now" : `${processes} it: ${await describeHolder(work)}`;
    findings.ok("inbox", users);
  } catch (error) {
    findings.skip("inbox", `the processes that use it cannot be listed: ${asFault(error).message}`);
  }
}

async function checkRedis(findings: Findings, queue: RedisQueueSettings, signal: AbortSignal): Promise<void> {
  const facts = await findings.attempt("Redis", async () => {
    const { inspectQueue } = await import("../../queue/bullmq-connection.ts");
    return inspectQueue(await readRedisSecrets(queue, signal), TIMEOUT_MS, signal);
  });
  if (facts === undefined) {
    findings.skip("memory", "Redis cannot be reached");
    return;
  }
  const { address, version, evictionPolicy } = facts;
  findings.ok("Redis", `${address} answers, version ${version}`);
  if (evictionPolicy === "noeviction") findings.ok("memory", "it evicts no keys when memory is short");
  else {
    findings.warn(
      "memory",
      `its maxmemory-policy is ${evictionPolicy || "unknown"}: it may evict jobs when memory is short`,
      `${commandFor(queue)} CONFIG SET maxmemory-policy noeviction, and set it in the configuration of Redis`,
    );
  }
}

/** The start of a `redis-cli` command. With several servers, each needs the setting. */
function commandFor({ url, cluster, sentinels }: RedisQueueSettings): string {
  if (cluster.length + sentinels.length > 0) return "On each server: redis-cli";
  const tls = url.protocol === "rediss:" ? " --tls" : "";
  return `redis-cli -h ${url.hostname} -p ${url.port || 6379}${tls}`;
}

const AT_ONCE = 4;

/** Beyond this, tokens are renewed too late, and times in the ledger mislead. */
const MAX_CLOCK_DIFFERENCE_MS = 60_000;

export async function checkServices(examination: Examination): Promise<void> {
  const mailboxes = Map.groupBy(examination.settings.mailboxes, ({ service }) => service);
  for (const [service, users] of mailboxes) await checkService(examination, service, users);
}

async function checkService(
  examination: Examination,
  serviceSettings: ServiceSettings,
  mailboxes: readonly MailboxSettings[],
): Promise<void> {
  const { findings, settings, signal } = examination;
  await using scope = new AsyncDisposableStack();
  const clientId = await readClientId(examination, serviceSettings);
  const client = openClient(serviceSettings, clientId ?? makeClientId(), TIMEOUT_MS);
  const service = scope.adopt(client, (it) => it.close());
  const isReached = await checkReach(examination, service, serviceSettings);
  const why = isReached ? "there is no client id" : "the service cannot be reached";
  if (!isReached || clientId === undefined) {
    for (const { name } of mailboxes) findings.skip(name, why);
    return;
  }
  // Another user may not read the program.
  await loadTokenStores();
  await asOwnerOf(settings.state, async () => {
    const folder = await tryMakeTokensFolder(settings.state).catch(asFault);
    // Reported in the order of the configuration, not of the answers.
    const reports = await mapLimit(mailboxes, AT_ONCE, async (mailbox) => {
      if (folder instanceof Fault) return () => findings.failWith(mailbox.name, folder);
      const tokens = await openTokens(mailbox, service, folder);
      return checkMailbox(findings, mailbox, service, tokens, signal);
    });
    for (const report of reports) report();
  });
}

/** Creates no client id: `init` or the first start of the daemon does, and reports its file. */
async function readClientId(
  { findings, settings: { state }, signal }: Examination,
  serviceSettings: ServiceSettings,
): Promise<Secret | undefined> {
  if (serviceSettings.clientId !== undefined) {
    // The check of the secrets has reported the reason.
    const read = await serviceSettings.clientId.read(signal).catch(() => undefined);
    if (read === undefined) findings.skip("client id", "it cannot be read");
    return read;
  }
  const found = await findings.attempt("client id", async () => ({ clientId: await findClientId(state) }));
  if (found !== undefined && found.clientId === undefined) {
    findings.fail(
      "client id",
      "attention",
      "none is configured, and none was created yet",
      "Start the daemon once: it creates one and logs its file. Then ask the service's administrator to register it.",
    );
  }
  return found?.clientId;
}

async function checkReach(
  { findings, signal }: Examination,
  service: ServicePort,
  { baseUrl }: ServiceSettings,
): Promise<boolean> {
  const asked = await findings.attempt("reach", async () => ({
    versions: await service.apiVersions(signal),
  }));
  if (asked === undefined) return false;
  const trusted = baseUrl.protocol === "https:" ? ", and its certificate is trusted" : "";
  findings.ok("reach", `${baseUrl.href} answers${trusted}`);
  if (baseUrl.protocol === "http:" && !LOOPBACK.test(baseUrl.hostname))
    findings.warn("reach", "it uses plain http: secrets travel unencrypted", "Use https.");
  const { versions } = asked;
  const needed = `Inlet needs 1.${POLLING_MINOR_VERSION}`;
  const offered = versions && `it offers ${formatVersions(versions)}`;
  if (versions === undefined) {
    const advice = `${needed} or newer; the mailbox checks show whether it has that.`;
    findings.warn("version", `it ${LACKS_VERSION}`, advice);
  } else if (canPoll(versions)) findings.ok("version", `${offered}; ${needed}`);
  else findings.failWith("version", new Fault("API_VERSION", { detail: offered }));
  checkClock(findings, service);
  return true;
}

/** Skipped if the service does not report its time. */
function checkClock(findings: Findings, service: ServicePort): void {
  const aheadMs = service.clockAheadMs();
  if (aheadMs === undefined) {
    findings.skip("clock", "the service does not report its time");
    return;
  }
  const difference = formatSeconds(Math.abs(aheadMs) / 1000);
  const detail = `this machine's clock is ${difference} ${aheadMs > 0 ? "ahead of" : "behind"} the service's`;
  if (Math.abs(aheadMs) < MAX_CLOCK_DIFFERENCE_MS) findings.ok("clock", detail);
  else findings.warn("clock", detail, "Set the clock, and keep it synchronised: timedatectl set-ntp true");
}

/** Returns how to report it. Throws `STOPPED`. */
async function checkMailbox(
  findings: Findings,
  mailbox: MailboxSettings,
  service: ServicePort,
  tokens: Tokens,
  signal: AbortSignal,
): Promise<() => void> {
  const { name, email } = mailbox;
  try {
    const query = { page: 1, pageSize: 1, active: true, fields: "trackingId" };
    const page = await tokens.use((address) => service.pollReceived(address, query, signal), signal);
    const validUntilMs = tokens.facts?.validUntilMs;
    const who = name === email ? "" : `${email} is `;
    const until = validUntilMs === undefined ? "" : ` until ${new Date(validUntilMs).toISOString()}`;
    return () => {
      findings.ok(name, `${who}verified${until}, and its list can be read`);
      for (const { fault } of page.rejected.slice(0, 1)) findings.warn(name, fault.message, fault.advice);
    };
  } catch (error) {
    const fault = asFault(error);
    if (fault.code === "STOPPED") throw fault;
    const isUnverified = fault.code === "TOKEN_REFUSED" || fault.code === "POLICY_REFUSED";
    return () => findings.failWith(name, fault, isUnverified ? adviceFor(mailbox) : undefined);
  }
}

function adviceFor({ name, service: { clientId, token } }: MailboxSettings): string {
  if (token !== undefined) {
    return `Obtain a new token and put it into ${token.described}, or remove service.verification.`;
  }
  const where = clientId?.described ?? "the state folder's client-id";
  return `Ask the service's administrator to register the client id (${where}) for it, or run: inlet verify-address ${name}`;
}

/** Sends no mail, and does not call webhooks: a receiver could take a call for a notification. */
export async function checkNotify({ findings, settings, signal }: Examination): Promise<void> {
  const { notify = [] } = settings;
  for (const [at, { channel }] of notify.entries()) {
    const check = `notify[${at}]`;
    const described = describeChannel(channel);
    if (channel.kind === "webhook") findings.skip(check, `${described}: inlet notify test calls it`);
    else {
      await findings.attempt(check, async () => {
        await checkMailServer({ ...channel, timeoutMs: Math.min(channel.timeoutMs, TIMEOUT_MS) }, signal);
        findings.ok(check, `${described}: the server answers`);
      });
    }
  }
}
