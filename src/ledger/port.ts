/** What other folders of the source know of the ledger. */
import type { FileLedger } from "./ledger.ts";

export type { OnDamaged } from "./ledger.ts";
export type { GivenOrder } from "./orders.ts";
export type { Stage } from "./paths.ts";
export type { Quarantined } from "./quarantine.ts";

export type Ledger = Pick<FileLedger, keyof FileLedger>;
