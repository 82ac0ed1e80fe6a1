/** Opens the client of a service for one command. */
import { join } from "node:path";
import { systemClock } from "../base/clock.ts";
import { makeFolderDurably } from "../base/durable.ts";
import { lookAt } from "../base/files.ts";
import type { Secret } from "../base/secret.ts";
import type { MailboxSettings, ServiceSettings } from "../config/settings.ts";
import { loadTokenStores } from "../host/memory.ts";
import { Tokens } from "../mailbox/tokens.ts";
import { POLLING_MINOR_VERSION } from "../service/http.ts";
import type { ServicePort } from "../service/port.ts";
import { openService } from "../service/service.ts";
import type { ApiVersion } from "../service/wire.ts";

const MAX_REQUESTS = 4;

/** Even anonymous operations need a well-formed client id. `maxTimeoutMs`: a shorter timeout than the configured one. */
export function openClient(
  settings: ServiceSettings,
  clientId: Secret,
  maxTimeoutMs: number = settings.timeoutMs,
): ServicePort {
  const timeoutMs = Math.min(maxTimeoutMs, settings.timeoutMs);
  return openService({ ...settings, timeoutMs, maxRequests: () => MAX_REQUESTS, clientId });
}

/** Obtains tokens of a mailbox, and keeps them in a folder, if one is given, as the daemon does. */
export async function openTokens(mailbox: MailboxSettings, service: ServicePort, folder: string | undefined) {
  const openStore = await loadTokenStores();
  // A token that is not kept is obtained again.
  const store = folder === undefined ? { read: () => undefined, write: async () => {} } : openStore(folder);
  return new Tokens({ mailbox, service, configured: mailbox.service.token, store, clock: systemClock });
}

/** Whether one of the versions can list received transfers. */
export function canPoll(versions: readonly ApiVersion[]): boolean {
  return versions.some(({ major, minor }) => major === 1 && minor >= POLLING_MINOR_VERSION);
}

/** Completes a sentence about a service. */
export const LACKS_VERSION =
  "does not report its version: it is older than 1.13, or the base URL is not quite right";

/** `1.12, 1.13`. */
export function formatVersions(versions: readonly ApiVersion[]): string {
  return versions.map(({ major, minor }) => `${major}.${minor}`).join(", ") || "none";
}

/** Creates the daemon's folder of tokens if it is missing; `undefined` before the daemon's first start. */
export async function tryMakeTokensFolder(state: string): Promise<string | undefined> {
  if (!(await lookAt(state))?.isDirectory()) return undefined;
  const folder = join(state, "tokens");
  await makeFolderDurably(folder, 0o700);
  return folder;
}
