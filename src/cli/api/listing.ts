/** `api received`, `api sent` and `api sent-legacy`: what an address has received and sent. */
import { type Command, Option } from "commander";
import { describeFault, type Fault } from "../../base/faults.ts";
import { findRecipient, type ListedTransfer } from "../../model/transfer.ts";
import { type FieldSelection, type FieldTree, parseFields } from "../../service/fields.ts";
import { allPages, MOST_ENTRIES } from "../../service/polling.ts";
import type { LegacyTransfer, Page, PageQuery, PollQuery, VerifiedAddress } from "../../service/port.ts";
import type { Context, Outcome, Run } from "../context.ts";
import { wholeNumber } from "../numbers.ts";
import { type Column, printRows, say } from "../printing.ts";
import { type ApiOptions, type Session, withService } from "./session.ts";

interface ListOptions extends ApiOptions, PageQuery {
  readonly active?: boolean;
  readonly inactive?: boolean;
  readonly fields?: FieldTree | typeof SERVICE_DEFAULT;
}

/** Entries that cannot be used. */
interface Rejected {
  readonly count: number;
  readonly first: readonly Fault[];
}
const MOST_REASONS = 10;

/** In place of an expression: the service chooses. */
const SERVICE_DEFAULT = "default";

const LAST_PAGE = 1_000_000;

/** What the table shows, and nothing else. */
const SHOWN_FIELDS = {
  trackingId: true,
  status: { sender: { email: true }, recipients: true, state: true },
  transfer: { expirationDate: true, securityMode: { config: { passwordMode: true } } },
} as const satisfies FieldSelection;

export function addListing(api: Command, run: Run): void {
  const directions = [
    ["received", "list the transfers that an address has received"],
    ["sent", "list the transfers that an address has sent"],
  ] as const;
  for (const [direction, summary] of directions) {
    addPaging(api.command(direction).description(summary))
      .addOption(new Option("--active", "only those that can be downloaded").conflicts("inactive"))
      .option("--inactive", "only those that cannot")
      .option(
        "--fields <expression>",
        "which fields to ask for, such as 'status(state),transfer(files)'; 'default' lets the service choose; --json shows them all",
        (text) => (text.trim() === SERVICE_DEFAULT ? SERVICE_DEFAULT : parseFields(text)),
      )
      .action((email: string, _options, command: Command) =>
        run((context) => listTransfers(context, direction, email, command.optsWithGlobals())),
      );
  }
  addPaging(
    api.command("sent-legacy").description("list sent transfers by the deprecated operation of versions 1.x"),
  ).action((email: string, _options, command: Command) =>
    run((context) => listLegacy(context, email, command.optsWithGlobals())),
  );
}

function addPaging(command: Command): Command {
  return command
    .argument("<email>", "a verified address")
    .option("--page <number>", "only this page, counted from 1 (default: all)", wholeNumber(1, LAST_PAGE))
    .option(
      "--page-size <number>",
      `entries per page, at most ${MOST_ENTRIES}`,
      wholeNumber(1, MOST_ENTRIES),
    );
}

function listTransfers(
  context: Context,
  direction: "received" | "sent",
  email: string,
  options: ListOptions,
): Promise<Outcome> {
  return withService(context, options, async (session) => {
    const query = {
      ...fieldsOf(options),
      ...(options.active ? { active: true } : options.inactive ? { active: false } : {}),
    };
    const poll = direction === "received" ? session.service.pollReceived : session.service.pollSent;
    const { entries, rejected } = await collect(session, email, options, (address, page) =>
      poll(address, { ...query, ...page }, context.stop),
    );
    const columns = columnsFor(direction === "received" ? email : undefined);
    printRows(context, options, columns, entries, entries.map(toJson));
    return reportRejected(context, rejected);
  });
}

function fieldsOf({ fields, json }: ListOptions): Pick<PollQuery, "fields" | "keepMore"> {
  if (fields === SERVICE_DEFAULT) return {};
  if (fields === undefined) return { fields: SHOWN_FIELDS };
  return { fields, keepMore: json === true };
}

function listLegacy(context: Context, email: string, options: ListOptions): Promise<Outcome> {
  return withService(context, options, async (session) => {
    const { entries, rejected } = await collect(session, email, options, (address, page) =>
      session.service.pollSentLegacy(address, page, context.stop),
    );
    printRows(context, options, [TRACKING_ID, STATE, RECIPIENTS, HREF], entries, entries.map(toJson));
    return reportRejected(context, rejected);
  });
}

/** One page where one was asked for, else all of them. */
async function collect<Entry extends { readonly trackingId: string }>(
  session: Session,
  email: string,
  options: PageQuery,
  poll: (address: VerifiedAddress, page: PageQuery) => Promise<Page<Entry>>,
): Promise<{ entries: Entry[]; rejected: Rejected }> {
  const address = await session.verified(email);
  const pageSize = options.pageSize ?? MOST_ENTRIES;
  if (options.page !== undefined) {
    const { entries, rejected } = await poll(address, { page: options.page, pageSize });
    return {
      entries: [...entries],
      rejected: { count: rejected.length, first: rejected.map(({ fault }) => fault) },
    };
  }
  const first: Fault[] = [];
  let count = 0;
  const pages = allPages(
    (page) => poll(address, { page, pageSize }),
    ({ fault }) => {
      count++;
      if (first.length < MOST_REASONS) first.push(fault);
    },
    pageSize,
  );
  return { entries: (await Array.fromAsync(pages)).flat(), rejected: { count, first } };
}

function reportRejected(context: Context, { count, first }: Rejected): Outcome {
  const shown = first.slice(0, MOST_REASONS);
  for (const fault of shown) say(context, `inlet: ${describeFault(fault)}`);
  if (count > shown.length) say(context, `inlet: ${count} entries cannot be used in all.`);
  return count === 0 ? "fine" : "failed";
}

const TRACKING_ID: Column<{ readonly trackingId: string }> = {
  title: "TRACKING ID",
  value: (row) => row.trackingId,
};
const STATE: Column<LegacyTransfer | ListedTransfer> = { title: "STATE", value: (row) => row.state };
const RECIPIENTS: Column<LegacyTransfer | ListedTransfer> = {
  title: "RECIPIENTS",
  value: (row) => row.recipients.map((recipient) => recipient.mail).join(", "),
};
const HREF: Column<LegacyTransfer> = { title: "HREF", value: (row) => row.href ?? "" };

/** For a receiver its own transfer-id and the sender; for a sender the recipients. */
function columnsFor(receiver: string | undefined): Column<ListedTransfer>[] {
  const who: Column<ListedTransfer>[] =
    receiver === undefined
      ? [RECIPIENTS]
      : [
          { title: "TRANSFER ID", value: (row) => findRecipient(row.recipients, receiver)?.transferId ?? "" },
          { title: "SENDER", value: (row) => row.sender ?? "" },
        ];
  return [
    TRACKING_ID,
    ...who,
    STATE,
    { title: "PASSWORD", value: (row) => row.passwordMode?.toLowerCase() ?? "" },
    { title: "EXPIRES", value: (row) => row.expires?.toISOString() ?? "" },
  ];
}

/** The download link stays out: it may carry a password. */
function toJson<Entry extends LegacyTransfer | ListedTransfer>(entry: Entry) {
  return { ...entry, recipients: entry.recipients.map(({ mail, transferId }) => ({ mail, transferId })) };
}
