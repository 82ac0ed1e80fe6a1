/** What flows and commands know of the client of a transfer service. */

export type { ChecksumRow } from "./checksums.ts";
export type { Download, TransferAccess, ZipOptions } from "./downloads.ts";
export type { PageQuery, PollQuery, VerifiedAddress } from "./polling.ts";
export type { ServicePort } from "./service.ts";
export type { Page, Rejected } from "./wire.ts";
