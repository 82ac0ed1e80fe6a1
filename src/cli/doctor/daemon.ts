/** Checks the running daemon, if there is one: its console, who can open it, and whether it polls every mailbox. */

import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { asFault, Fault, systemCode } from "../../base/faults.ts";
import { lookAtLink } from "../../base/files.ts";
import { formatSeconds } from "../../base/phrases.ts";
import { LOOPBACK } from "../../config/service.ts";
import type { HttpSettings, MailboxSettings } from "../../config/settings.ts";
import { explainPermission } from "../../host/permission.ts";
import type { Status } from "../../model/status.ts";
import { askDaemon, statusIn } from "../../operate/status.ts";
import type { Examination, Findings } from "./findings.ts";

export async function checkDaemon({ findings, settings, signal }: Examination): Promise<void> {
  const { http, inbox, mailboxes } = settings;
  if (http === undefined) {
    return findings.ok("console", "http.listen is false: there is no console, and no health check");
  }
  const answer = await askDaemon(http, "/api/status", signal).catch((error: unknown) =>
    explainPermission(asFault(error)),
  );
  if (answer instanceof Fault) return findings.failWith("console", answer);
  if (answer?.status === 401) {
    const detail = `the daemon at ${describe(http)} needs a token, and this user can read none`;
    findings.warn("console", detail, "Run doctor as a user who can read a token of http.tokens.");
    return;
  }
  const status = statusIn(answer);
  const isOurs = status?.daemon.inbox === inbox;
  if (isOurs) {
    findings.ok("console", `the daemon (process ${status.daemon.pid}) answers at ${describe(http)}`);
  } else await checkAddress(findings, http, answer !== undefined, status);
  checkAccess(findings, http);
  if (isOurs) for (const mailbox of mailboxes) checkPolls(findings, mailbox, status);
}

/** Where the daemon of this inbox does not answer: whether another process has the address, or it is free. */
async function checkAddress(
  findings: Findings,
  http: HttpSettings,
  isAnswered: boolean,
  other: Status | undefined,
): Promise<void> {
  const where = describe(http);
  if (other !== undefined) {
    const taken = `${where} is taken by the daemon of ${other.daemon.inbox} (process ${other.daemon.pid})`;
    return findings.fail("console", "usage", taken, "Give each daemon its own http.listen.");
  }
  const code = isAnswered ? "EADDRINUSE" : await tryListening(http);
  if (code === undefined) findings.ok("console", `${where} is free, and no daemon of this inbox answers`);
  else findings.fail("console", "usage", ...describeFailure(http, code));
}

function describeFailure({ listen }: HttpSettings, code: string): [detail: string, advice: string] {
  const where = describe({ listen });
  const taken = `another program listens at ${where}`;
  if ("path" in listen) {
    if (code === "EADDRINUSE")
      return [taken, `Stop it, or change http.listen. It is: ss -lxp src ${listen.path}`];
    const why = code === "ENOENT" ? "its folder does not exist" : `it cannot be made (${code})`;
    const advice = "Create the folder for the daemon's user; under systemd, set RuntimeDirectory=.";
    return [`${where}: ${why}`, advice];
  }
  if (code === "EADDRINUSE")
    return [taken, `Stop it, or change http.listen. To see it: ss -ltnp 'sport = :${listen.port}'`];
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND") {
    const detail = `this machine does not have the address of ${where}`;
    return [detail, "Change http.listen, such as to 127.0.0.1:8460."];
  }
  if (code === "EACCES") return [`this user may not listen at ${where}`, "Choose a port above 1023."];
  return [`nothing can listen at ${where} (${code})`, "Change http.listen."];
}

/** Why the daemon could not listen there; `undefined` if it could. A socket without a listener is replaced at the start. */
async function tryListening({ listen }: HttpSettings): Promise<string | undefined> {
  if ("path" in listen) {
    const found = await lookAtLink(listen.path);
    if (found !== undefined) return found.isSocket() ? undefined : "EEXIST";
    return stat(dirname(listen.path)).then(() => undefined, systemCode);
  }
  const server = createServer();
  try {
    server.listen(listen);
    await once(server, "listening");
    return undefined;
  } catch (error) {
    return systemCode(error);
  } finally {
    server.close();
  }
}

/** A token for actions alone does not change the finding. */
function checkAccess(findings: Findings, http: HttpSettings): void {
  const { listen, read = "open" } = http;
  if ("path" in listen || isLoopback(listen.host) || read !== "open") return;
  findings.warn(
    "access",
    `${describe(http)} is open to the network: everyone who can reach it sees senders, names and states, without a token`,
    "Set http.read: token, listen on 127.0.0.1 or a unix: socket behind a proxy that asks for a password, or let a firewall decide who can connect.",
  );
}

function isLoopback(host: string): boolean {
  return LOOPBACK.test(host.includes(":") ? `[${host}]` : host);
}

/** A poll may take this long before it counts as missing. */
const GRACE_SECONDS = 60;

function checkPolls(findings: Findings, { name, paused }: MailboxSettings, status: Status): void {
  const known = status.mailboxes.find((mailbox) => mailbox.name === name);
  if (known === undefined) {
    const detail = "the running daemon does not know this mailbox: it has an older configuration";
    findings.warn(name, detail, "Reload it: systemctl reload inlet, or send it SIGHUP.");
    return;
  }
  const { lastSuccess, trouble } = known;
  const ago = (iso: string) => formatSeconds((Date.parse(status.at) - Date.parse(iso)) / 1000);
  const polled = lastSuccess === undefined ? [] : [`last polled ${ago(lastSuccess)} ago`];
  const isPaused = known.paused || (paused && lastSuccess === undefined);
  const started = status.daemon.startedAt ?? status.at;
  const never = `never polled since the daemon's start ${ago(started)} ago`;
  const graceMs = (known.pollSeconds + GRACE_SECONDS) * 1000;
  if (isPaused || polled.length > 0)
    findings.ok(name, [...(isPaused ? ["paused"] : []), ...polled].join(", "));
  else if (trouble !== undefined) findings.warn(name, `${never}: ${trouble.message}`, trouble.advice);
  else if (Date.parse(status.at) - Date.parse(started) < graceMs)
    findings.ok(name, "not polled yet: the daemon has just started");
  else findings.warn(name, never, "Look for this mailbox in the log, and restart the daemon.");
}

function describe({ listen }: Pick<HttpSettings, "listen">): string {
  if ("path" in listen) return `unix:${listen.path}`;
  return `${listen.host.includes(":") ? `[${listen.host}]` : listen.host}:${listen.port}`;
}
