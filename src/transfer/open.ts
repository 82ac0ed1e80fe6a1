/** Opens a transfer: proves its password before any other request, then reads its files and checksums. */

import { describeFault, Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { NO_PASSWORD } from "../model/attempts.ts";
import { type Checksum, checksumOf, nodeAlgorithm } from "../model/checksum.ts";
import { DONE } from "../model/job.ts";
import { MODE, waitsForPassword } from "../model/record.ts";
import { type TransferFile, takesAnyPassword } from "../model/transfer.ts";
import type { Proof } from "../passwords/port.ts";
import type { ChecksumRow, ServicePort, TransferAccess } from "../service/port.ts";
import { asOperationFault, failOptional } from "./answers.ts";
import { MANY_FILES } from "./large.ts";
import type { Run } from "./run.ts";
import { goOn, type Step } from "./step.ts";
import type { Source, TransferTools } from "./tools.ts";

export interface OpenedTransfer {
  readonly access: TransferAccess;
  readonly totalBytes: number;
  readonly files: readonly OpenedFile[];
  readonly subject: string | undefined;
  /** A row of the checksums file that may be the confidential message's. */
  readonly messageRow: ChecksumRow | undefined;
  /** Why the transfer cannot be verified, even if every file matches. */
  readonly doubt: Fault | undefined;
}

interface OpenedFile extends TransferFile {
  /** Every checksum that the service has for it: from the list, and from the checksums file. */
  readonly checksums: readonly Checksum[];
}

/** Waits if no password opens it. Throws `LIMIT_EXCEEDED`. */
export async function openTransfer(run: Run): Promise<Step<OpenedTransfer>> {
  const { tools, source, signal } = run;
  const { service } = source;
  const { transferId } = run.record;
  const accessWith = (password: Secret) => ({
    transferId,
    password: password === NO_PASSWORD ? undefined : password,
  });
  const proof = await tools.passwords.prove(
    {
      ...requestOf(run),
      send: (password) => service.information(accessWith(password), signal),
      ...clientOf(source),
      probe: () => source.probe(signal),
      onRefused: () => tools.emit({ type: "password-refused", record: run.record }),
    },
    signal,
  );
  if (proof.kind === "waiting") return { kind: "wait", facts: whyWaiting(run, proof), next: DONE };
  const access = accessWith(proof.password);
  run.password = proof.password;
  const listing = service.files(access, signal, (count) => {
    if (count > MANY_FILES) tools.large.take(service.id, run.key);
  });
  // Both requests go out together.
  const [listed, read] = await Promise.allSettled([listing, service.checksums(access, listing, signal)]);
  if (listed.status === "rejected") throw listed.reason;
  const files = listed.value;
  const { totalBytes, algorithm } = proof.value;
  // An operator vouches for a released transfer, whatever its size.
  if (!run.record.released) checkLimits(files, totalBytes, tools.limits);
  const { subject, checksums, messageRow, doubt } = useChecksums(run, files, read);
  const opened = files.map((file) => ({
    ...file,
    checksums: [
      ...(file.checksum === undefined ? [] : [checksumOf(file.checksum, algorithm)]),
      ...(checksums.get(file.id) ?? []),
    ],
  }));
  const unknown = opened.flatMap((file) => file.checksums).find(({ algorithm: it }) => !isKnown(it));
  return goOn({
    access,
    totalBytes,
    subject,
    messageRow,
    files: opened.map((file) => ({
      ...file,
      checksums: file.checksums.filter(({ algorithm: it }) => isKnown(it)),
    })),
    doubt: doubt ?? (unknown && new Fault("ALGORITHM_UNKNOWN", { detail: unknown.algorithm })),
  });
}

function whyWaiting({ record }: Run, { message, obstacle: password }: Proof<unknown> & { kind: "waiting" }) {
  const { securityMode } = record;
  if (securityMode === undefined || takesAnyPassword(securityMode))
    return { reason: "password", message, password };
  const fault = new Fault("SECURITY_MODE", { detail: JSON.stringify(securityMode.slice(0, 80)) });
  return { reason: MODE, code: fault.code, message: `${describeFault(fault)} ${message}`, password };
}

/** The service, in the form that the password circuit breaker needs. */
export function clientOf({ service }: Pick<Source, "service">) {
  return { serviceId: service.id, client: service, ownAnswers: () => service.ownAnswers() };
}

function checkLimits(
  files: readonly TransferFile[],
  totalBytes: number,
  { maxFiles, maxTransferBytes }: TransferTools["limits"],
): void {
  const bytes = Math.max(
    totalBytes,
    files.reduce((sum, file) => sum + file.bytes, 0),
  );
  const tooMany = files.length > maxFiles ? `${files.length} files, and ${maxFiles} are allowed` : undefined;
  const tooLarge =
    bytes > maxTransferBytes ? `${bytes} bytes, and ${maxTransferBytes} are allowed` : undefined;
  const detail = tooMany ?? tooLarge;
  if (detail !== undefined) throw new Fault("LIMIT_EXCEEDED", { detail });
}

function isKnown(algorithm: string): boolean {
  return nodeAlgorithm(algorithm) !== undefined;
}

/** A later request was refused although the password had been accepted: counts a wrong attempt. */
export async function refusePassword(run: Run): Promise<void> {
  if (run.password !== undefined) await run.tools.passwords.refusedLater(requestOf(run));
}

/** Whether the transfer waits for a password, and another attempt would change nothing. */
export async function waitsIdly(run: Run): Promise<boolean> {
  if (!waitsForPassword(run.record)) return false;
  // The attempt fails in the same way, and handles the fault.
  return run.tools.passwords.isIdle(requestOf(run), run.signal).catch(() => false);
}

function requestOf({ source, record, signal }: Run) {
  const { mailbox, service, linkOf } = source;
  const { trackingId, sender, passwordInLink, hasNoPassword: hasNone = false } = record;
  const link = async () => (passwordInLink ? linkOf(trackingId, signal) : undefined);
  return { mailbox, serviceId: service.id, query: { trackingId, sender, link, hasNone }, record };
}

interface ReadChecksums {
  readonly subject: string | undefined;
  readonly checksums: ReadonlyMap<string, readonly Checksum[]>;
  readonly messageRow: ChecksumRow | undefined;
  /** The checksums file does not fit the list of files, or cannot be understood. */
  readonly doubt: Fault | undefined;
}

/** Without a readable checksums file, the checksums in the list of files count. */
function useChecksums(
  run: Run,
  files: readonly TransferFile[],
  read: PromiseSettledResult<Awaited<ReturnType<ServicePort["checksums"]>>>,
): ReadChecksums {
  if (read.status === "fulfilled") {
    const { subject, unlisted, byFileId } = read.value;
    // The message is a file of the transfer, which the list need not show.
    const isMessage = unlisted.length === 1 && run.record.hasMessage !== false;
    const checksums = [...byFileId].map(
      ([id, row]) => [id, row.checksum === undefined ? [] : [row.checksum]] as const,
    );
    const messageRow = isMessage ? unlisted[0] : undefined;
    const doubt = unlisted.length > 0 && !isMessage ? unlistedRows(unlisted) : undefined;
    return { subject, checksums: new Map(checksums), messageRow, doubt };
  }
  const error: unknown = read.reason;
  if (!(error instanceof Fault)) throw error;
  const nothing = {
    subject: undefined,
    checksums: new Map<string, readonly Checksum[]>(),
    messageRow: undefined,
  };
  const areListed = files.every(({ checksum }) => checksum !== undefined);
  if (error.verdict === "quarantine") return { ...nothing, doubt: areListed ? undefined : error };
  if (!failOptional(run, "checksums", error)) throw asOperationFault(error);
  return { ...nothing, doubt: undefined };
}

/** The checksums file names files that are not in the list of files. */
export function unlistedRows(rows: readonly ChecksumRow[]): Fault {
  const names = rows.slice(0, 3).map((row) => JSON.stringify(row.name.slice(0, 80)));
  return new Fault("CHECKSUMS_INCOMPLETE", { detail: `not in the list of files: ${names.join(", ")}` });
}
