/** Checks the running daemon, if there is one: its console, who can open it, its mailboxes and its troubles. */

import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { FAULT_CODES } from "../../base/fault-codes.ts";
import { systemCode } from "../../base/faults.ts";
import { lookAtLink } from "../../base/files.ts";
import { formatSeconds } from "../../base/phrases.ts";
import { LOOPBACK } from "../../config/service.ts";
import type { HttpSettings } from "../../config/settings.ts";
import { countMembers } from "../../inbox/members.ts";
import type { Status } from "../../model/status.ts";
import { describeListen, findDaemon, probe } from "../../operate/client.ts";
import { statusIn } from "../../operate/status.ts";
import type { Examination, Findings } from "./findings.ts";

export async function checkDaemon({ findings, settings, signal }: Examination): Promise<void> {
  const { http, inbox, work, mailboxes } = settings;
  const found = await findings.attempt("socket", async () => {
    const daemon = await findDaemon(settings, "", signal);
    return { path: daemon?.path, status: statusIn(await daemon?.ask("GET", "/api/status")) };
  });
  const { path, status } = found ?? {};
  const isOurs = status?.daemon.inbox === inbox;
  const isRunning = isOurs || (await countMembers(work)) > 0;
  if (isOurs) findings.ok("socket", `the daemon (process ${status.daemon.pid}) answers at ${path}`);
  else if (isRunning && found !== undefined) {
    const { advice } = FAULT_CODES.SOCKET_UNSAFE;
    findings.warn("socket", "a daemon of this inbox runs, but none answers here on its socket", advice);
  }
  if (http === undefined) findings.ok("console", "http.listen is false: there is no console");
  else {
    await findings.attempt("console", () => checkAddress(findings, http, inbox, isRunning, signal));
    checkAccess(findings, http);
  }
  if (!isOurs) return;
  for (const { name } of mailboxes) checkPolls(findings, name, status);
  for (const { what, message, advice } of status.troubles) findings.warn(what, message, advice);
}

/** Whether another process has the address, or it is free. What answers there can claim anything. */
async function checkAddress(
  findings: Findings,
  http: HttpSettings,
  inbox: string,
  isRunning: boolean,
  signal: AbortSignal,
): Promise<void> {
  const where = describeListen(http.listen);
  const answer = await probe(http.listen, "/api/status", signal);
  const other = statusIn(answer);
  const isConsole = answer?.status === 401 || other?.daemon.inbox === inbox;
  if (isConsole && isRunning) return findings.ok("console", `the console answers at ${where}`);
  if (other !== undefined && !isConsole) {
    const taken = `${where} is taken by the daemon of ${other.daemon.inbox} (process ${other.daemon.pid})`;
    return findings.fail("console", "usage", taken, "Give each daemon its own http.listen.");
  }
  const code = answer === undefined ? await tryListening(http) : "EADDRINUSE";
  if (code === undefined)
    return findings.ok("console", `${where} is free, and no daemon of this inbox answers`);
  const [why, advice] = FAILURES[code] ?? [`nothing can listen there (${code})`, "Change http.listen."];
  findings.fail("console", "usage", `${where}: ${why}`, advice);
}

/** By the system's code. */
const FAILURES: Readonly<Record<string, readonly [why: string, advice: string]>> = {
  EADDRINUSE: [
    "another program listens there",
    "Stop it, or change http.listen. To see it: ss -ltnp, or ss -lxp for a socket.",
  ],
  EADDRNOTAVAIL: ["this machine does not have that address", "Change http.listen."],
  EACCES: ["this user may not listen there", "Choose a port above 1023."],
  ENOENT: [
    "its folder does not exist",
    "Create the folder for the daemon's user; under systemd, set RuntimeDirectory=.",
  ],
};

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

/** Who can read. A token for actions alone stops no reader. */
function checkAccess(findings: Findings, http: HttpSettings): void {
  const { listen, read = "open" } = http;
  if ("path" in listen || listen.host === "::1" || LOOPBACK.test(listen.host) || read !== "open") return;
  findings.warn(
    "access",
    `${describeListen(http.listen)} is open to the network: everyone who can reach it sees senders, names and states, without a token`,
    "Set http.read: token, listen on 127.0.0.1 or a unix: socket behind a proxy that asks for a password, or let a firewall decide who can connect.",
  );
}

/** Only when it was polled: faults of polls are among the troubles. */
function checkPolls(findings: Findings, name: string, status: Status): void {
  const known = status.mailboxes.find((mailbox) => mailbox.name === name);
  if (known === undefined) {
    const detail = "the running daemon does not know this mailbox: it has an older configuration";
    findings.warn(name, detail, "Reload it: systemctl reload inlet, or send it SIGHUP.");
    return;
  }
  const { lastSuccess, paused } = known;
  const seconds = (Date.parse(status.at) - Date.parse(lastSuccess ?? status.at)) / 1000;
  const polled = lastSuccess === undefined ? "not polled yet" : `last polled ${formatSeconds(seconds)} ago`;
  findings.ok(name, paused ? `paused, ${polled}` : polled);
}
