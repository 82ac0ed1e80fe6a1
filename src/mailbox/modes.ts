/**
 * The security modes of listed transfers. Where a list lacks one, all are asked for once more, alone. A service that has never
 * named a mode, in whole answers to such requests, names none: this is recorded for its version.
 */
import { asFault } from "../base/faults.ts";
import { type ListedTransfer, TRANSFER_STATES } from "../model/transfer.ts";
import type { VerifiedAddress } from "../service/port.ts";
import type { MailboxState, PollTools } from "./state.ts";

const MODE_ONLY = { active: true, fields: "trackingId,transfer(securityMode)" };

/** An intermediary may lose modes now and then. So many answers without any say that the service names none. */
const ANSWERS = 3;

/** Facts about a service. Once it has named a mode, a missing one is unknown. */
const NAMES_MODES = "names modes";
const NAMES_NONE = "names no modes";

export function lacksMode({ securityMode, state }: ListedTransfer): boolean {
  return securityMode.is === "unknown" && TRANSFER_STATES[state] === "open";
}

/** Returns a function that completes each page of one list. `isKnown`: as in `listReceived`. */
export function createModeFinder(
  { ledger: { services } }: Pick<PollTools, "ledger">,
  state: MailboxState,
  address: VerifiedAddress,
  isKnown: (trackingId: string) => boolean,
  signal: AbortSignal,
) {
  const { service, transfers, mailbox } = state;
  const namesModes = async (entries: readonly ListedTransfer[]) => {
    const isShown = entries.some(({ securityMode }) => securityMode.is === "given");
    if (isShown) await services.add(service.id, NAMES_MODES);
    return isShown || services.has(service.id, NAMES_MODES);
  };
  const ask = async (): Promise<readonly ListedTransfer[]> => {
    const version = JSON.stringify((await service.apiVersions(signal).catch(() => null)) ?? null);
    const isRecorded = await services.has(service.id, NAMES_NONE, version);
    state.hasNoModes = isRecorded && !(await namesModes([]));
    for (let left = ANSWERS; left > 0 && !state.hasNoModes; left--) {
      const list = service.listReceived(address, MODE_ONLY, () => {}, signal, isKnown);
      const answer = (await Array.fromAsync(list).catch(noneIfRefused)).flat();
      if (answer.length === 0 || (await namesModes(answer))) return answer;
    }
    if (!isRecorded) await services.add(service.id, NAMES_NONE, version);
    state.hasNoModes = true;
    return [];
  };
  let asking: ReturnType<typeof ask> | undefined;
  return async (page: readonly ListedTransfer[]): Promise<readonly ListedTransfer[]> => {
    await namesModes(page);
    if (!page.some(lacksMode)) return page;
    const isNew = !state.hasNoModes || page.some(({ trackingId }) => !transfers.open.has(trackingId));
    if (isNew) asking ??= ask();
    const found = new Map((await asking)?.map((entry) => [entry.trackingId, entry.securityMode]));
    const isNone = state.hasNoModes || mailbox.rulesWithoutMode === true;
    const otherwise = { is: isNone ? "none" : "unknown" } as const;
    const complete = (entry: ListedTransfer) => {
      const named = found.get(entry.trackingId);
      return { ...entry, securityMode: named?.is === "given" ? named : otherwise };
    };
    return page.map((entry) => (lacksMode(entry) ? complete(entry) : entry));
  };
}

/** The service does not know the field. */
function noneIfRefused(error: unknown): [] {
  if (asFault(error).code !== "BAD_REQUEST") throw error;
  return [];
}
