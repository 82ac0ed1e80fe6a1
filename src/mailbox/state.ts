/** What is known of a mailbox between two polls. All of it can be learnt again: nothing here is durable. */
import type { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { TransferState } from "../model/transfer.ts";
import type { ServicePort } from "../service/port.ts";
import type { Tokens } from "./tokens.ts";

/** How many transfers of a mailbox are open at most: a service can list any number. */
export const MOST_OPEN = 10_000;

/** What the service says of a transfer; `undefined` where it does not list it. */
export type StateOf = (trackingId: string) => TransferState | undefined;

export class MailboxState {
  readonly mailbox: Mailbox;
  readonly service: ServicePort;
  readonly tokens: Tokens;
  /** Listed transfers that need nothing more, and the poll that saw them last: their records are not read again. */
  settled = new Map<string, number>();
  /** Which fields of the list are asked for. */
  fields: "wanted" | "needed" = "wanted";
  /** The service has given the wanted fields. */
  givesWanted = false;
  /** When the service last refused the wanted ones, by the process's own clock. */
  fieldsRefusedMs = 0;
  /** How many polls have begun. */
  polls = 0;
  /** Transfers with a record that is not final. */
  undelivered = new Map<string, { expiresMs: number }>();
  /** Links of open transfers that carry the password. */
  links = new Map<string, Secret>();
  /** Of every transfer that the service lists, for transfers that vanished; missing: not asked lately. */
  history: Promise<StateOf> | undefined;
  /** How many entries of the list the last poll could not use, and why, in short: the same is not reported again. */
  rejected = { entries: 0, summary: "" };
  /** Those of which it was reported that they expire soon. */
  readonly warned = new Set<string>();
  /** Those that wait for a password, and were tried with what these settings say and with what was supplied then. */
  readonly tried = new Map<string, string | undefined>();
  /** Since when polls fail, in milliseconds, and why the last one did. */
  failing: { readonly sinceMs: number; readonly fault: Fault } | undefined;

  constructor(mailbox: Mailbox, service: ServicePort, tokens: Tokens) {
    this.mailbox = mailbox;
    this.service = service;
    this.tokens = tokens;
  }

  /** Takes over what the settings do not change, from the state before they did. */
  inherit(before: MailboxState): void {
    const { settled, polls, undelivered, links, rejected, warned, failing } = before;
    Object.assign(this, { settled, polls, undelivered, links, rejected, warned, failing });
    const { fields, fieldsRefusedMs, givesWanted } = before;
    Object.assign(this, { fields, fieldsRefusedMs, givesWanted });
  }
}
