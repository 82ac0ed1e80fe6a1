/** Opens the client of a service for the time of one command. */
import type { Secret } from "../base/secret.ts";
import type { ServiceSettings } from "../config/settings.ts";
import { openService } from "../service/open.ts";
import type { ServicePort } from "../service/port.ts";

/** Enough for one person at a terminal. */
const CONNECTIONS = 4;

/** `timeoutMs`: where the command is less patient than the settings. */
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
