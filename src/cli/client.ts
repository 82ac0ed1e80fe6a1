/** Opens the client of a service for one command. */
import { randomBytes } from "node:crypto";
import { Secret } from "../base/secret.ts";
import type { ServiceSettings } from "../config/settings.ts";
import { POLLING_MINOR_VERSION } from "../service/http.ts";
import { openService } from "../service/open.ts";
import type { ApiVersion, ServicePort } from "../service/port.ts";

const CONNECTIONS = 4;

/** `timeoutMs`: a shorter timeout than the configured one. */
export function openClient(
  { baseUrl, acceptLanguage, idListForm, ca, cert, key, proxy, ...settings }: ServiceSettings,
  clientId: Secret,
  timeoutMs: number = settings.timeoutMs,
): ServicePort {
  return openService({
    baseUrl,
    acceptLanguage,
    idListForm,
    ca,
    cert,
    key,
    proxy,
    timeoutMs: Math.min(timeoutMs, settings.timeoutMs),
    connections: CONNECTIONS,
    clientId,
  });
}

/** Even anonymous operations require a well-formed client id. */
export function throwawayClientId(): Secret {
  return new Secret(randomBytes(32).toString("hex"));
}

/** Whether one of the versions can list received transfers. */
export function canPoll(versions: readonly ApiVersion[]): boolean {
  return versions.some(({ major, minor }) => major === 1 && minor >= POLLING_MINOR_VERSION);
}

/** `1.12, 1.13`. */
export function formatVersions(versions: readonly ApiVersion[]): string {
  return versions.map(({ major, minor }) => `${major}.${minor}`).join(", ") || "none";
}
