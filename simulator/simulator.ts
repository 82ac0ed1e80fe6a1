/** The handle of a simulated service: its transfers, its faults, and the requests that it received. */
import { canonicalAddress } from "../src/model/transfer.ts";
import type { Accounts, Mail } from "./accounts.ts";
import { ScenarioError } from "./errors.ts";
import type { FaultReport, Faults } from "./faults.ts";
import type { Journal, RequestRecord } from "./journal.ts";
import type { PasswordGuard } from "./password-guard.ts";
import {
  type FaultPlan,
  type Operation,
  parseFaultPlan,
  parseTransferPlan,
  type TransferPlan,
} from "./scenario.ts";
import type { MovableClock } from "./time.ts";
import { replaceAddress, type StoredState, type StoredTransfer, type Transfers } from "./transfers.ts";

/** A transfer, including its password. */
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
  /** The number of refused passwords. */
  readonly refusedPasswords: number;
}

/** A wrong plan or an unknown tracking-id throws a ScenarioError. */
export interface Simulator {
  readonly url: string;
  /** The client id that is registered for every address. */
  readonly clientId: string;
  /** In the order in which they were added. */
  transfers(): readonly SimulatedTransfer[];
  addTransfer(plan: TransferPlan): SimulatedTransfer;
  /** As the sender. */
  revoke(trackingId: string): void;
  /** As the administrator. */
  remove(trackingId: string): void;
  /** As after the deletion of a user's data. */
  replaceAddress(trackingId: string, old: string, replacement: string): void;
  faults(): readonly FaultReport[];
  /** Returns the id of the fault. */
  addFault(plan: FaultPlan): string;
  /** Whether a fault had this id. */
  removeFault(id: string): boolean;
  clearFaults(): void;
  /** Advances the simulator's clock. */
  advance(seconds: number): void;
  /** The simulator's time. */
  now(): number;
  /** The last ten thousand requests, oldest first. */
  requests(): readonly RequestRecord[];
  /** The number of requests per operation, since the start. */
  totals(): Readonly<Record<Operation, number>>;
  /** The refused passwords of a transfer, oldest first. */
  refusedPasswords(trackingId: string): readonly string[];
  /** All mails that carried a code, oldest first. */
  mails(): readonly Mail[];
  /** The codes mailed to an address, oldest first. */
  mailedCodes(address: string): readonly string[];
  /** Closes all connections at once. May be called twice. */
  close(): Promise<void>;
}

/** The parts of a simulator. */
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
        throw new ScenarioError(`old: ${old} is not an address of this transfer`);
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
