/** The handle of a simulated service: its transfers, its faults, and the requests that it received. */
import type { Clock } from "../src/base/clock.ts";
import { canonicalAddress } from "../src/model/transfer.ts";
import type { World } from "./call.ts";
import { ScenarioError } from "./errors.ts";
import type { Faults } from "./faults.ts";
import type { Journal } from "./journal.ts";
import { type FaultPlan, parseFaultPlan, parseTransferPlan, type TransferPlan } from "./scenario.ts";
import { replaceAddress, type StoredTransfer } from "./transfers.ts";

export class MovableClock implements Clock {
  readonly #clock: Clock;
  #aheadMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now() + this.#aheadMs;
  }

  advance(seconds: number): void {
    this.#aheadMs += seconds * 1000;
  }
}

interface Parts {
  readonly world: World;
  readonly time: MovableClock;
  readonly faults: Faults;
  readonly journal: Journal;
  close(): Promise<void>;
}

export type Simulator = ReturnType<typeof createSimulator>;
/** A transfer, including its password. */
export type SimulatedTransfer = ReturnType<typeof showTransfer>;

/** A wrong plan or an unknown tracking-id throws a ScenarioError. */
export function createSimulator({ world, time, faults, journal, close }: Parts) {
  const { accounts, transfers, guard } = world;
  const find = (trackingId: string): StoredTransfer => {
    const transfer = transfers.find(trackingId);
    if (transfer === undefined) throw new ScenarioError(`there is no transfer ${trackingId}`);
    return transfer;
  };
  return {
    url: world.url(),
    /** The client id that is registered for every address. */
    clientId: world.settings.clientId,
    /** In the order in which they were added. */
    transfers: () => transfers.all().map((transfer) => showTransfer(transfer, world)),
    addTransfer: (plan: TransferPlan) => showTransfer(transfers.add(parseTransferPlan(plan)), world),
    /** As the sender. */
    revoke: (trackingId: string) => transfers.end(find(trackingId), "Deleted_by_revocation"),
    /** As the administrator. */
    remove: (trackingId: string) => transfers.end(find(trackingId), "Deleted_by_admin"),
    /** As after the deletion of a user's data. */
    replaceAddress: (trackingId: string, old: string, replacement: string) => {
      if (!replaceAddress(find(trackingId), old, replacement)) {
        throw new ScenarioError(`old: ${old} is not an address of this transfer`);
      }
    },
    faults: () => faults.reports(),
    /** Returns the id of the fault. */
    addFault: (plan: FaultPlan) => faults.add(parseFaultPlan(plan)),
    /** Returns whether a fault had this id. */
    removeFault: (id: string) => faults.remove(id),
    clearFaults: () => faults.clear(),
    /** Advances the simulator's clock. */
    advance: (seconds: number) => time.advance(seconds),
    /** The simulator's time. */
    now: () => time.now(),
    /** The last ten thousand requests, oldest first. */
    requests: () => journal.records(),
    /** The number of requests per operation, since the start. */
    totals: () => journal.totals(),
    /** The refused passwords of a transfer, oldest first. */
    refusedPasswords: (trackingId: string) => guard.refused(find(trackingId).trackingId),
    /** All mails that carried a code, oldest first. */
    mails: () => accounts.mails(),
    /** The codes mailed to an address, oldest first. */
    mailedCodes: (address: string) =>
      accounts
        .mails()
        .filter((mail) => canonicalAddress(mail.address) === canonicalAddress(address))
        .map(({ code }) => code),
    /** Closes all connections at once. May be called twice. */
    close,
  };
}

function showTransfer(transfer: StoredTransfer, { transfers, guard }: World) {
  const { trackingId, sender, password, recipients, files } = transfer;
  return {
    trackingId,
    sender,
    state: transfers.stateOf(transfer),
    password,
    recipients: recipients.map(({ mail, role, transferId }) => ({ mailbox: mail, role, transferId })),
    files: files.map(({ id, name, content }) => ({ id, name, bytes: content.bytes })),
    /** The number of refused passwords. */
    refusedPasswords: guard.total(trackingId),
  };
}
