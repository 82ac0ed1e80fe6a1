/** A simulated service in the hands of whoever runs it: what it holds, how it misbehaves, what was asked of it. */
import { canonicalAddress } from "../src/model/transfer.ts";
import type { Accounts, Mail } from "./accounts.ts";
import { ScenarioError } from "./errors.ts";
import type { FaultReport, Faults } from "./faults.ts";
import type { Journal, RequestRecord } from "./journal.ts";
import { parseFaultPlan, parseTransferPlan } from "./parse.ts";
import type { PasswordGuard } from "./password-guard.ts";
import type { FaultPlan, Operation, TransferPlan } from "./scenario.ts";
import type { MovableClock } from "./time.ts";
import { replaceAddress, type StoredState, type StoredTransfer, type Transfers } from "./transfers.ts";

/** A transfer as whoever runs the simulator sees it, its password included. */
export interface SimulatedTransfer {
  readonly trackingId: string;
  readonly sender: string;
  readonly state: StoredState;
  readonly password: string;
  readonly recipients: readonly {
    readonly mailbox: string;
    readonly role: "to" | "cc" | "bcc";
    readonly transferId: string;
  }[];
  readonly files: readonly { readonly id: string; readonly name: string; readonly bytes: number }[];
  /** How many passwords were refused in all. */
  readonly refusedPasswords: number;
}

/** Plans are checked: one that does not fit throws a ScenarioError, and so does a tracking-id that there is not. */
export interface Simulator {
  readonly url: string;
  /** The client id that is registered for every address. */
  readonly clientId: string;
  /** In the order in which they were added. */
  transfers(): readonly SimulatedTransfer[];
  addTransfer(plan: TransferPlan): SimulatedTransfer;
  /** The sender takes it back. */
  revoke(trackingId: string): void;
  /** The administrator deletes it. */
  remove(trackingId: string): void;
  /** Puts a proxy address in the place of one, as after the deletion of a user's data. */
  replaceAddress(trackingId: string, old: string, replacement: string): void;
  faults(): readonly FaultReport[];
  /** Returns the id of the fault. */
  addFault(plan: FaultPlan): string;
  /** Whether there was one of this id. */
  removeFault(id: string): boolean;
  clearFaults(): void;
  /** Moves the simulator's time forward. */
  advance(seconds: number): void;
  /** The simulator's time. */
  now(): number;
  /** The last ten thousand requests, oldest first. */
  requests(): readonly RequestRecord[];
  /** How many requests there were of each operation, from the beginning. */
  totals(): Readonly<Record<Operation, number>>;
  /** The passwords that were refused for a transfer, oldest first. */
  refusedPasswords(trackingId: string): readonly string[];
  /** All mails that carried a code, oldest first. */
  mails(): readonly Mail[];
  /** The codes mailed to an address, oldest first. */
  mailedCodes(address: string): readonly string[];
  /** Ends all connections at once, in the middle of whatever they do. May be called twice. */
  close(): Promise<void>;
}

/** What a simulator is made of. */
export interface SimulatorParts {
  readonly url: string;
  readonly clientId: string;
  readonly time: MovableClock;
  readonly accounts: Accounts;
  readonly transfers: Transfers;
  readonly guard: PasswordGuard;
  readonly faults: Faults;
  readonly journal: Journal;
  close(): Promise<void>;
}

export function createSimulator(parts: SimulatorParts): Simulator {
  const { url, clientId, time, accounts, transfers, guard, faults, journal } = parts;
  const find = (trackingId: string): StoredTransfer => {
    const transfer = transfers.find(trackingId);
    if (transfer === undefined) throw new ScenarioError(`there is no transfer ${trackingId}`);
    return transfer;
  };
  const show = (transfer: StoredTransfer): SimulatedTransfer => showTransfer(transfer, transfers, guard);
  return {
    url,
    clientId,
    transfers: () => transfers.newestFirst().reverse().map(show),
    addTransfer: (plan) => show(transfers.add(parseTransferPlan(plan))),
    revoke: (trackingId) => transfers.end(find(trackingId), "Deleted_by_revocation"),
    remove: (trackingId) => transfers.end(find(trackingId), "Deleted_by_admin"),
    replaceAddress: (trackingId, old, replacement) => {
      if (!replaceAddress(find(trackingId), old, replacement)) {
        throw new ScenarioError(`old: ${old} is no address of this transfer`);
      }
    },
    faults: () => faults.reports(),
    addFault: (plan) => faults.add(parseFaultPlan(plan)),
    removeFault: (id) => faults.remove(id),
    clearFaults: () => faults.clear(),
    advance: (seconds) => time.advance(seconds),
    now: () => time.now(),
    requests: () => journal.records(),
    totals: () => journal.totals(),
    refusedPasswords: (trackingId) => guard.refused(find(trackingId).trackingId),
    mails: () => accounts.mails(),
    mailedCodes: (address) =>
      accounts
        .mails()
        .filter((mail) => canonicalAddress(mail.address) === canonicalAddress(address))
        .map(({ code }) => code),
    close: () => parts.close(),
  };
}

function showTransfer(
  transfer: StoredTransfer,
  transfers: Transfers,
  guard: PasswordGuard,
): SimulatedTransfer {
  const { trackingId, sender, password, recipients, files } = transfer;
  return {
    trackingId,
    sender,
    state: transfers.stateOf(transfer),
    password,
    recipients: recipients.map(({ mail, role, transferId }) => ({ mailbox: mail, role, transferId })),
    files: files.map(({ id, name, content }) => ({ id, name, bytes: content.bytes })),
    refusedPasswords: guard.total(trackingId),
  };
}
