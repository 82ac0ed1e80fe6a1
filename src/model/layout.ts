/** The placeholders that a layout of the inbox may hold, as `{name}`. */
export const PLACEHOLDERS = [
  "mailbox",
  "sender",
  "senderDomain",
  "trackingId",
  "transferId",
  "subject",
  "year",
  "month",
  "day",
] as const;

export type Placeholder = (typeof PLACEHOLDERS)[number];
