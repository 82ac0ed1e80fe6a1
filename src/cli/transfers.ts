/** Columns of the tables of transfers. */
import { shownFolder } from "../model/record.ts";
import type { Context } from "./context.ts";
import { type Column, timeColumn } from "./printing.ts";

interface TransferRow {
  readonly state: string;
  readonly mailbox: string;
  readonly sender: string;
  readonly trackingId: string;
  readonly reason?: string | null | undefined;
  readonly folder?: string | null | undefined;
  readonly inbox?: string | null | undefined;
}

/** Columns of a table of transfers. `timeOf`: the time in the first column, shown in `zone`. */
export function transferColumns<Row extends TransferRow>(
  context: Context,
  zone: string | undefined,
  timeOf: (row: Row) => string,
): Column<Row>[] {
  return [
    timeColumn(context, "WHEN", zone, timeOf),
    { title: "STATE", value: ({ state }) => state },
    { title: "MAILBOX", value: ({ mailbox }) => mailbox },
    { title: "SENDER", value: ({ sender }) => sender },
    { title: "TRACKING ID", value: ({ trackingId }) => trackingId },
    { title: "REASON", value: ({ reason }) => reason ?? "" },
    { title: "FOLDER", value: ({ folder, inbox }) => (folder ? shownFolder({ folder, inbox }) : "") },
  ];
}
