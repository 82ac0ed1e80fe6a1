/** Checks the running daemon, if there is one: its console, who can open it, its mailboxes and its troubles. */

import { once } from "node:events";
import { stat } from "node:fs/promises";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { systemCode } from "../../base/faults.ts";
import { lookAtLink } from "../../base/files.ts";
import { formatSeconds } from "../../base/phrases.ts";
import { LOOPBACK } from "../../config/service.ts";
import type { HttpSettings } from "../../config/settings.ts";
import type { Status } from "../../model/status.ts";
import { describeListen } from "../../operate/client.ts";
import { askDaemon, statusIn } from "../../operate/status.ts";
import type { Examination, Findings } from "./findings.ts";

export async function checkDaemon({ findings, settings, signal }: Examination): Promise<void> {
  const { http, inbox, mailboxes } = settings;
  if (http === undefined) {
    return findings.ok("console", "http.listen is false: there is no console, and no health check");
  }
  // In an array: without a daemon the answer is `undefined`, as the result of a failed check is.
  const asked = await findings.attempt("console", async () => [await askDaemon(http, "/api/status", signal)]);
  if (asked === undefined) return;
  const [answer] = asked;
  if (answer?.status === 401) {
    const detail = `the daemon at ${describeListen(http.listen)} needs a token, and this user can read none`;
    return findings.warn("console", detail, "Run doctor as a user who can read a token of http.tokens.");
  }
  const status = statusIn(answer);
  const isOurs = status?.daemon.inbox === inbox;
  if (!isOurs) await checkAddress(findings, http, answer !== undefined, status);
  checkAccess(findings, http);
  if (!isOurs) return;
  findings.ok(
    "console",
    `the daemon (process ${status.daemon.pid}) answers at ${describeListen(http.listen)}`,
  );
  for (const { name } of mailboxes) checkPolls(findings, name, status);
  for (const { what, message, advice } of status.troubles) findings.warn(what, message, advice);
}

/** Where the daemon of this inbox does not answer: whether another process has the address, or it is free. */
async function checkAddress(
  findings: Findings,
  http: HttpSettings,
  isAnswered: boolean,
  other: Status | undefined,
): Promise<void> {
  const where = describeListen(http.listen);
  if (other !== undefined) {
    const taken = `${where} is taken by the daemon of ${other.daemon.inbox} (process ${other.daemon.pid})`;
    return findings.fail("console", "usage", taken, "Give each daemon its own http.listen.");
  }
  const code = isAnswered ? "EADDRINUSE" : await tryListening(http);
  if (code === undefined) {
    return findings.ok("console", `${where} is free, and no daemon of this inbox answers`);
  }
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
