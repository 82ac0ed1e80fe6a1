/**
 * Where a mailbox starts (`since`). Earlier transfers are recorded as ignored, and never downloaded unless an operator
 * retries them. The service does not say when a transfer was sent, so the time of the first poll that lists it is used
 * instead.
 */
import type { Mailbox } from "../model/mailbox.ts";
import type { Decision } from "../model/order.ts";
import type { ServicePort, VerifiedAddress } from "../service/port.ts";
import type { MailboxState, PollTools } from "./state.ts";

/** Whether a transfer that is not known yet came too early. */
export type IsTooEarly = (trackingId: string) => boolean;

/** What the start of a mailbox says about transfers that are not known yet. */
export interface Start {
  readonly isTooEarly: IsTooEarly;
  /** For a transfer that may have been delivered before, because records are missing. */
  verdictOn(trackingId: string): "ask" | Decision | undefined;
}

/**
 * For `now`, and where records are missing, the first poll begins with reading the whole list, and records every transfer in
 * it. The record survives a crash.
 */
export async function readStart(
  { ledger, clock }: Pick<PollTools, "ledger" | "clock">,
  { mailbox, service }: Pick<MailboxState, "mailbox" | "service">,
  address: VerifiedAddress,
  signal: AbortSignal,
): Promise<Start> {
  const { since, name } = mailbox;
  const { starts } = ledger;
  const readOrCreate = async (doubtId?: string) => {
    const known = await starts.read(name, doubtId);
    if (known !== undefined) return known;
    const listed = await listAll(service, address, signal);
    return starts.create(name, listed, new Date(clock.now()).toISOString(), doubtId);
  };
  // Our own clock may be wrong, and nothing must be left out because of that.
  const serviceNowMs = () => clock.now() - (service.clockAheadMs() ?? 0);
  const doubt = await starts.doubtAbout(name);
  const doubtful = doubt && (await readOrCreate(doubt.id));
  return {
    isTooEarly: await isTooEarlyFor(since, () => readOrCreate(), serviceNowMs),
    verdictOn: (trackingId) => (doubtful?.has(trackingId) ? doubt?.verdict : undefined),
  };
}

/**
 * `before`: the transfers that were listed when the mailbox started; `undefined`: it has not started yet, so every listed
 * transfer is too early.
 */
export async function isTooEarlyFor(
  since: Mailbox["since"],
  before: () => Promise<ReadonlySet<string> | undefined>,
  nowMs: () => number,
): Promise<IsTooEarly> {
  if (since === undefined) return () => false;
  if (since !== "now") return () => nowMs() < since;
  const known = await before();
  return (trackingId) => known?.has(trackingId) ?? true;
}

async function listAll(
  service: ServicePort,
  address: VerifiedAddress,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const listed = new Set<string>();
  const note = (trackingId: string) => {
    listed.add(trackingId);
    return true;
  };
  const query = { active: true, fields: "trackingId" };
  // Yields nothing: a noted entry counts as known, and one without a readable id is taken up once it can be read.
  await Array.fromAsync(service.listReceived(address, query, () => {}, signal, note));
  return listed;
}
