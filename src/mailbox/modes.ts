/**
 * The security modes of listed transfers. Where a list lacks one, all are asked for once more, alone. A service that has never
 * named a mode, in whole answers to such requests, names none: this is recorded for its version.
 */
import { tolerate } from "../base/faults.ts";
import { type ListedTransfer, TRANSFER_STATES } from "../model/transfer.ts";
import type { MailboxState, PollTools } from "./state.ts";

export const MODE_ONLY = { active: true, fields: "trackingId,transfer(securityMode)" };

/** An intermediary may lose modes now and then. So many answers without any say that the service names none. */
const ANSWERS = 3;

type Entries = readonly ListedTransfer[];

export function lacksMode({ securityMode, state }: ListedTransfer): boolean {
  return securityMode.is === "unknown" && TRANSFER_STATES[state] === "open";
}

/** Returns a function that completes each page of one list. `readAlone`: reads the list with `MODE_ONLY`. */
export function createModeFinder(
  { services }: PollTools["ledger"],
  state: MailboxState,
  readAlone: () => AsyncIterable<Entries>,
  signal: AbortSignal,
): (page: Entries) => Promise<Entries> {
  const { service, transfers, mailbox } = state;
  /** Once the service has named a mode, for any of its mailboxes, a missing one is unknown. */
  const namesModes = async (entries: Entries) => {
    const isShown = entries.some(({ securityMode }) => securityMode.is === "given");
    if (isShown) await services.add(service.id, "names modes");
    return isShown || services.has(service.id, "names modes");
  };
  const ask = async (): Promise<Entries> => {
    const fact = [service.id, "names no modes", await service.askVersion(signal)] as const;
    state.hasNoModes = (await services.has(...fact)) && !(await namesModes([]));
    for (let left = ANSWERS; left > 0 && !state.hasNoModes; left--) {
      // A service that does not know the field says nothing about modes.
      const answer = (await Array.fromAsync(readAlone()).catch(tolerate("BAD_REQUEST"))) ?? [];
      if (answer.length === 0 || (await namesModes(answer.flat()))) return answer.flat();
    }
    if (!state.hasNoModes) await services.add(...fact);
    state.hasNoModes = true;
    return [];
  };
  let asking: Promise<Entries> | undefined;
  return async (page) => {
    await namesModes(page);
    if (!page.some(lacksMode)) return page;
    const isNew = !state.hasNoModes || page.some(({ trackingId }) => !transfers.open.has(trackingId));
    if (isNew) asking ??= ask();
    const found = new Map((await asking)?.map((entry) => [entry.trackingId, entry.securityMode]));
    const isNone = state.hasNoModes || mailbox.rulesWithoutMode === true;
    return page.map((entry) => {
      const mode = found.get(entry.trackingId) ?? entry.securityMode;
      const securityMode = mode.is === "unknown" && isNone ? ({ is: "none" } as const) : mode;
      return lacksMode(entry) ? { ...entry, securityMode } : entry;
    });
  };
}
