/** A simulated service and its client, which end with the test. */
import { expect, onTestFinished } from "vitest";
import { openSimulator, type SimulatorOptions } from "../../simulator/open.ts";
import type { Scenario, TransferPlan } from "../../simulator/scenario.ts";
import type { SimulatedTransfer, Simulator } from "../../simulator/simulator.ts";
import type { FaultCode, Verdict } from "../../src/base/fault-codes.ts";
import { Secret } from "../../src/base/secret.ts";
import type { ServicePort, TransferAccess, VerifiedAddress } from "../../src/service/port.ts";
import { openService, type ServiceOptions } from "../../src/service/service.ts";
import { MAILBOX, NO_PROXY, PASSWORD } from "./settings.ts";

/** Never aborts. */
export const SIGNAL = new AbortController().signal;

export function transferPlan(plan: Partial<TransferPlan> = {}): TransferPlan {
  return {
    from: "anna@supplier.example",
    to: [MAILBOX],
    subject: "Order 4711",
    password: PASSWORD,
    files: [
      { name: "a.txt", text: "Hello" },
      { name: "Größe, 2.csv", text: "1;2\n3;4\n" },
    ],
    ...plan,
  };
}

export async function openTestSimulator(
  scenario: Scenario = {},
  options: SimulatorOptions = {},
): Promise<Simulator> {
  const simulator = await openSimulator(scenario, options);
  onTestFinished(() => simulator.close());
  return simulator;
}

export function openTestService(
  simulator: Pick<Simulator, "url" | "clientId">,
  options: Partial<ServiceOptions> = {},
): ServicePort {
  const service = openService({
    baseUrl: new URL(simulator.url),
    clientId: new Secret(simulator.clientId),
    acceptLanguage: "en",
    userAgent: "inlet/test",
    proxy: NO_PROXY,
    ca: undefined,
    cert: undefined,
    key: undefined,
    timeoutMs: 20_000,
    maxRequests: () => 16,
    idListForm: "repeat",
    ...options,
  });
  onTestFinished(() => service.close());
  return service;
}

export interface Pair {
  readonly simulator: Simulator;
  readonly service: ServicePort;
  /** The first transfer of the scenario. */
  readonly transfer: SimulatedTransfer;
  readonly access: TransferAccess;
}

export async function openPair(
  scenario: Scenario = {},
  options: Partial<ServiceOptions> = {},
): Promise<Pair> {
  const simulator = await openTestSimulator({ transfers: [transferPlan()], ...scenario });
  const service = openTestService(simulator, options);
  const [transfer] = simulator.transfers();
  if (transfer === undefined) throw new Error("the scenario has no transfer");
  return { simulator, service, transfer, access: accessTo(transfer) };
}

export function accessTo(transfer: SimulatedTransfer, mailbox: string = MAILBOX): TransferAccess {
  const own = transfer.recipients.find((recipient) => recipient.mailbox === mailbox);
  if (own === undefined) throw new Error(`${mailbox} is no recipient`);
  return { transferId: own.transferId, password: new Secret(transfer.password) };
}

export function firstFile({ files }: SimulatedTransfer): { id: string; name: string } {
  const [file] = files;
  if (file === undefined) throw new Error("the transfer has no file");
  return file;
}

export async function verify(service: ServicePort, email: string = MAILBOX): Promise<VerifiedAddress> {
  return { email, token: (await service.obtainToken(email, undefined, SIGNAL)).token };
}

export async function expectFault(work: Promise<unknown>, code: FaultCode, verdict?: Verdict): Promise<void> {
  await expect(work).rejects.toMatchObject(verdict === undefined ? { code } : { code, verdict });
}

/** Every path in the specification, and further paths that services have. */
export const KNOWN_FIELDS =
  "trackingId,status(sender(email),recipients,state),transfer(recipients(to,cc),expirationDate," +
  "securityMode(config(passwordMode)),confidentialMessageFileId,files,notificationMessage(subject,body)," +
  "fileChecksumAlgorithm)";
