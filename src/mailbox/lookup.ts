/** Looks single transfers up in the service's list: their links, and their states. */

import { asFault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { setTimeout } from "../base/timers.ts";
import type { Mailbox } from "../model/mailbox.ts";
import type { TransferRecord } from "../model/record.ts";
import { findRecipient, type TransferState } from "../model/transfer.ts";
import type { Rejected, ServicePort } from "../service/port.ts";
import { type KnownTransfers, withPassword } from "./known-transfers.ts";
import type { Tokens } from "./tokens.ts";

/** How long one reading of the whole list is used. */
const KEPT_MS = 60_000;

/** The state of a transfer at the service; `undefined` if the service does not list it. */
type StateOf = (trackingId: string) => TransferState | undefined;

export class Lookup {
  readonly #mailbox: Mailbox;
  readonly #service: ServicePort;
  readonly #tokens: Tokens;
  readonly #transfers: KnownTransfers;
  #states: Promise<StateOf> | undefined;

  constructor(mailbox: Mailbox, service: ServicePort, tokens: Tokens, transfers: KnownTransfers) {
    this.#mailbox = mailbox;
    this.#service = service;
    this.#tokens = tokens;
    this.#transfers = transfers;
  }

  /**
   * The link of a transfer; `undefined` if it carries no password. If this process does not know the link, it reads the
   * list, and then knows the links of all open transfers.
   */
  async linkOf(trackingId: string, signal: AbortSignal): Promise<Secret | undefined> {
    const known = this.#transfers.linkOf(trackingId);
    if (known !== undefined) return known;
    let found: Secret | undefined;
    await this.#tokens.use(async (address) => {
      const query = { active: true, fields: { trackingId: true, status: { recipients: true } } } as const;
      // Polls report entries that cannot be read.
      for await (const page of this.#service.listReceived(address, query, () => {}, signal)) {
        for (const { trackingId: listed, recipients } of page) {
          const link = findRecipient(recipients, this.#mailbox.email)?.downloadUrl;
          this.#transfers.keepLink(listed, link);
          if (listed === trackingId) found = withPassword(link);
        }
      }
    }, signal);
    return found;
  }

  /**
   * The state of one transfer; `undefined` if the service does not list it. One reading of the list answers for all
   * transfers that vanished. For any other transfer a missing entry says nothing: it may be newer than the reading.
   */
  async stateOf(
    { trackingId, vanished }: Pick<TransferRecord, "trackingId" | "vanished">,
    signal: AbortSignal,
  ): Promise<TransferState | undefined> {
    for (;;) {
      const shared = this.#states;
      if (shared === undefined) return (await this.#readStates(signal))(trackingId);
      try {
        const found = (await shared)(trackingId);
        if (found !== undefined || vanished) return found;
        return (await this.#readStates(signal))(trackingId);
      } catch (error) {
        // The job that read the list was stopped: this one was not.
        if (signal.aborted || asFault(error).code !== "STOPPED") throw error;
      }
    }
  }

  /** Later calls share a successful reading for `KEPT_MS`. A failed one is not kept. */
  #readStates(signal: AbortSignal): Promise<StateOf> {
    const states = this.#listStates(signal);
    const forget = () => {
      if (this.#states === states) this.#states = undefined;
    };
    this.#states = states;
    states.then(() => setTimeout(forget, KEPT_MS).unref(), forget);
    return states;
  }

  /**
   * An entry that cannot be read counts as `unknown`. If it has no tracking-id, every missing transfer counts as `unknown`.
   */
  #listStates(signal: AbortSignal): Promise<StateOf> {
    return this.#tokens.use(async (address) => {
      const states = new Map<string, TransferState>();
      let stateOfMissing: "unknown" | undefined;
      const reject = ({ trackingId }: Rejected) => {
        if (trackingId === undefined) stateOfMissing = "unknown";
        else states.set(trackingId, "unknown");
      };
      const query = { fields: { trackingId: true, status: { state: true } } } as const;
      // Polls report entries that cannot be read.
      for await (const page of this.#service.listReceived(address, query, reject, signal)) {
        for (const entry of page) states.set(entry.trackingId, entry.state);
      }
      return (trackingId) => states.get(trackingId) ?? stateOfMissing;
    }, signal);
  }
}
