/** Lists the known transfers from the work folder, for commands and the console. Changes nothing. */
import { mapLimit } from "../base/concurrency.ts";
import { Fault } from "../base/faults.ts";
import { addressForm, makeMatcher, textForm } from "../base/normal-form.ts";
import type { MailboxSettings } from "../config/settings.ts";
import type { LedgerPeek } from "../ledger/peek.ts";
import type { OnDamaged } from "../ledger/port.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import { type State, shownFolder, type TransferRecord } from "../model/record.ts";
import { canonicalAddress } from "../model/transfer.ts";
import type { PageRequest, TransferFilter, TransferList, TransferView } from "../model/views.ts";

/** A mailbox's name, and the settings that its password attempts depend on. */
export type MailboxFacts = Pick<MailboxSettings, "name" | "service" | "passwordAttempts">;

/** Unreadable records that an answer names. */
const MAX_DAMAGED = 100;

/** Transfers whose password attempts are counted at the same time. */
const AT_ONCE = 32;

/** In these states, a transfer's round is open and has a note in the ledger, so only the notes have to be read. */
const NOTED: ReadonlySet<State | undefined> = new Set<State>(["downloading", "waiting", "checking"]);

/** A page beyond the last one is empty. Throws the faults of `select`. */
export async function listTransfers(
  peek: LedgerPeek,
  mailboxes: readonly MailboxFacts[],
  select: (onDamaged: OnDamaged) => AsyncIterable<TransferRecord>,
  { page, size, sort = "newest" }: PageRequest,
): Promise<TransferList> {
  const damaged = new Set<string>();
  const onDamaged = (path: string) => void (damaged.size < MAX_DAMAGED && damaged.add(path));
  const { first, total } = await takeFirst(select(onDamaged), page * size, sort);
  const format = await makeFormatter(peek, mailboxes);
  const transfers = await mapLimit(first.slice((page - 1) * size), AT_ONCE, format);
  const pages = Math.max(1, Math.ceil(total / size));
  return { total, page, pages, size, transfers, damaged: [...damaged] };
}

/** In no particular order. `onDamaged`: for each record that is skipped. Throws `DISK_UNREADABLE` and `STOPPED`. */
export async function* selectTransfers(
  peek: LedgerPeek,
  filter: TransferFilter,
  onDamaged: OnDamaged,
  signal?: AbortSignal,
): AsyncGenerator<TransferRecord, void, undefined> {
  const matches = makeFilter(filter);
  const records = NOTED.has(filter.state) ? peek.open(onDamaged) : peek.all(onDamaged);
  for await (const record of records) {
    if (signal?.aborted) throw new Fault("STOPPED");
    if (matches(record)) yield record;
  }
}

function makeFilter(filter: TransferFilter): (record: TransferRecord) => boolean {
  const { state, reason, ids, search = "" } = filter;
  const isSender = makeMatcher(filter.sender, addressForm);
  const isMailbox = makeMatcher(filter.mailbox, textForm);
  const wanted = ids && new Set(ids);
  const text = fold(search);
  return (record) =>
    (state === undefined || record.state === state) &&
    (reason === undefined || fold(record.reason ?? "") === fold(reason)) &&
    (wanted === undefined || wanted.has(record.trackingId)) &&
    isMailbox(record.mailbox) &&
    isSender(record.sender) &&
    (text === "" || textsOf(record).some((field) => fold(field).includes(text)));
}

function textsOf({
  trackingId,
  sender,
  mailbox,
  message = "",
  inbox,
  folder = "",
}: TransferRecord): string[] {
  return [trackingId, sender, mailbox, message, shownFolder({ inbox, folder })];
}

function fold(text: string): string {
  return text.normalize("NFC").toLowerCase();
}

/** Keeps at most about twice the limit in memory, however many records there are. */
async function takeFirst(
  records: AsyncIterable<TransferRecord>,
  limit: number,
  sort: NonNullable<PageRequest["sort"]>,
) {
  let [first, total]: [TransferRecord[], number] = [[], 0];
  const cut = () => first.toSorted(COMPARATORS[sort]).slice(0, limit);
  for await (const record of records) {
    total++;
    first.push(record);
    if (first.length >= 2 * limit + 100) first = cut();
  }
  return { first: cut(), total };
}

/** Sorts after every time. */
const NEVER = "~";

const COMPARATORS: Readonly<
  Record<NonNullable<PageRequest["sort"]>, (one: TransferRecord, other: TransferRecord) => number>
> = {
  newest: (one, other) => compare(timeOf(other), timeOf(one)),
  expires: (one, other) =>
    compare(one.expires ?? NEVER, other.expires ?? NEVER) || compare(timeOf(other), timeOf(one)),
};

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}

/** Formats many records: the folder of password attempts is listed once. */
export async function makeFormatter(
  peek: LedgerPeek,
  mailboxes: readonly MailboxFacts[],
): Promise<(record: TransferRecord) => Promise<TransferView>> {
  const countOf = await peek.countAttempts();
  const services = new Map(
    mailboxes.map(({ name, service, passwordAttempts }) => [
      canonicalAddress(name),
      { serviceId: serviceIdOf(service.baseUrl), passwordAttempts },
    ]),
  );
  return async (record) => {
    const service = services.get(canonicalAddress(record.mailbox));
    return formatTransfer(record, service && (await countOf(record, service)));
  };
}

/** A transfer as JSON: every key is always present. */
export function formatTransfer(record: TransferRecord, passwordsSpent: number | undefined): TransferView {
  return {
    mailbox: record.mailbox,
    trackingId: record.trackingId,
    transferId: record.transferId,
    sender: record.sender,
    state: record.state,
    reason: record.reason ?? null,
    message: record.message ?? null,
    until: record.until ?? null,
    expires: record.expires ?? null,
    folder: record.folder ?? null,
    inbox: record.inbox ?? null,
    route: record.route ?? null,
    subject: record.subject ?? null,
    files: record.files ?? null,
    bytes: record.bytes ?? null,
    verified: record.verified ?? null,
    released: record.released ?? null,
    passwordsSpent: passwordsSpent ?? null,
    round: record.round,
    at: record.at,
  };
}

/** When the transfer entered its state. */
export function timeOf({ at, state }: Pick<TransferRecord, "at" | "state">): string {
  return at[state] ?? Object.values(at).toSorted().at(-1) ?? "";
}
