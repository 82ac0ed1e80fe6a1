/** Opens a transfer: proves its password before any other request, reads its files and checksums, and plans the download. */

import { describeFault, Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { inTurns } from "../base/timers.ts";
import { NO_PASSWORD } from "../model/attempts.ts";
import { type Checksum, checksumOf, nodeAlgorithm } from "../model/checksum.ts";
import { DONE } from "../model/job.ts";
import type { Handoff, Limits, Mailbox } from "../model/mailbox.ts";
import { RESERVED_NAMES } from "../model/manifest.ts";
import { safeNames } from "../model/names.ts";
import { MODE, modeOf, NO_MODE, waitsForPassword } from "../model/record.ts";
import { factsOf } from "../model/route.ts";
import { type TransferFile, takesAnyPassword } from "../model/transfer.ts";
import type { Proof } from "../passwords/port.ts";
import type { ChecksumRow, ServicePort, TransferAccess } from "../service/port.ts";
import { askRoutes } from "./route.ts";
import { goOn, type Run, type Step } from "./run.ts";
import { asOperationFault, failOptional } from "./settle.ts";
import { MANY_FILES } from "./turns.ts";

/** From this many files on, of less than this size on average, one ZIP is faster than single files. */
const ZIP_FROM_FILES = 16;
const ZIP_BELOW_AVERAGE_BYTES = 1024 * 1024;

export interface PlannedFile {
  readonly id: string;
  /** Safe, and unique within the folder. */
  readonly name: string;
  readonly originalName: string;
  readonly bytes: number;
  /** Every checksum that the service has for it: from the list, and from the checksums file. */
  readonly checksums: readonly Checksum[];
}

/** An opened transfer, and how it is downloaded. */
export interface Plan {
  readonly access: TransferAccess;
  readonly way: "files" | "zip";
  /** Every file has a name of its own: the entries of a ZIP have no ids. */
  readonly isZippable: boolean;
  readonly files: readonly PlannedFile[];
  /** Of the listed files. */
  readonly totalBytes: number;
  /** Of the whole transfer, by its information. */
  readonly announcedBytes: number;
  /** A row of the checksums file that may be the confidential message's. */
  readonly messageRow: ChecksumRow | undefined;
  /** Why the transfer cannot be verified, even if every file matches. */
  readonly doubt: Fault | undefined;
}

/** Waits if no password opens it, or if its route says so. Throws `LIMIT_EXCEEDED`. */
export async function openTransfer(run: Run): Promise<Step<Plan>> {
  const { tools, source, signal } = run;
  const { service, mailbox } = source;
  const { transferId } = run.record;
  const request = {
    ...requestOf(run),
    send: (password: Secret) => service.information(accessWith(transferId, password), signal),
    probe: () => source.probe(signal),
    onRefused: () => tools.emit({ type: "password-refused", record: run.record }),
  };
  const proof = await tools.passwords.prove(request, signal);
  if (proof.kind === "waiting") return { kind: "wait", facts: whyWaiting(run, proof), next: DONE };
  run.password = proof.password;
  const access = accessWith(transferId, proof.password);
  const listing = service.files(access, signal, (count) => {
    if (count > MANY_FILES) tools.large.take(service.id, run.key);
  });
  // Both requests go out together.
  const [listed, read] = await Promise.allSettled([listing, service.checksums(access, listing, signal)]);
  if (listed.status === "rejected") throw listed.reason;
  const files = listed.value;
  const totalBytes = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const { totalBytes: announcedBytes, algorithm } = proof.value;
  // An operator vouches for a released transfer, whatever its size.
  if (!run.record.released) {
    checkLimits(files.length, Math.max(totalBytes, announcedBytes), tools.limits);
  }
  const { subject, rows, messageRow, doubt } = useChecksums(run, files, read);
  run.learn({ subject, files: files.length, bytes: totalBytes });
  const held = await askRoutes(run, factsOf(run.record, files));
  if (held !== undefined) return held;
  const names = await safeNames(files, reservedNames(run.handoff));
  const planned: PlannedFile[] = [];
  let unknown: Checksum | undefined;
  for await (const { id, name, bytes, checksum } of inTurns(files)) {
    const own = checksum === undefined ? undefined : checksumOf(checksum, algorithm);
    const all = [own, rows.get(id)?.checksum].filter((it) => it !== undefined);
    const checksums = all.filter(({ algorithm: each }) => nodeAlgorithm(each) !== undefined);
    unknown ??= all.find((it) => !checksums.includes(it));
    planned.push({ id, name: names.get(id) ?? id, originalName: name, bytes, checksums });
  }
  const isZippable = files.length > 0 && new Set(files.map(({ name }) => name)).size === files.length;
  return goOn({
    access,
    way: isZippable ? chooseWay(mailbox.fetch, files.length, totalBytes) : "files",
    isZippable,
    files: planned,
    totalBytes,
    announcedBytes,
    messageRow,
    doubt: doubt ?? (unknown && new Fault("ALGORITHM_UNKNOWN", { detail: unknown.algorithm })),
  });
}

function accessWith(transferId: string, password: Secret): TransferAccess {
  return { transferId, password: password === NO_PASSWORD ? undefined : password };
}

/** The names that no file of a sender may have. */
export function reservedNames({ marker, acknowledgement }: Handoff): string[] {
  return [...RESERVED_NAMES, ...[marker, acknowledgement].filter((name) => name !== undefined)];
}

function chooseWay(fetch: Mailbox["fetch"], count: number, bytes: number): Plan["way"] {
  if (fetch !== "auto") return fetch;
  return count >= ZIP_FROM_FILES && bytes < count * ZIP_BELOW_AVERAGE_BYTES ? "zip" : "files";
}

function whyWaiting(run: Run, { message, obstacle: password }: Proof<unknown> & { kind: "waiting" }) {
  const { reason, fault } = obstacleIn(run);
  if (fault === undefined) return { reason, message, password };
  return { reason, code: fault.code, message: `${describeFault(fault)} ${message}`, password };
}

/** Why it waits if no person has supplied its password. `fault`: why no rule's password is sent. */
function obstacleIn({ record, source }: Run): { readonly reason: string; readonly fault?: Fault } {
  const mode = modeOf(record);
  if (takesAnyPassword(mode)) return { reason: "password" };
  const isAnswered = source.mailbox.rulesWithoutMode !== undefined;
  if (mode.is !== "given" && !isAnswered) return { reason: NO_MODE, fault: new Fault("MODE_UNKNOWN") };
  const detail =
    mode.is === "given" ? JSON.stringify(mode.value.slice(0, 80)) : "the service does not name it";
  return { reason: MODE, fault: new Fault("SECURITY_MODE", { detail }) };
}

function checkLimits(files: number, bytes: number, { maxFiles, maxTransferBytes }: Limits): void {
  const exceeded = (amount: string, allowed: number) =>
    new Fault("LIMIT_EXCEEDED", { detail: `${amount}, and ${allowed} are allowed` });
  if (files > maxFiles) throw exceeded(`${files} files`, maxFiles);
  if (bytes > maxTransferBytes) throw exceeded(`${bytes} bytes`, maxTransferBytes);
}

/** A later request was refused although the password had been accepted: counts a wrong attempt. */
export async function refusePassword(run: Run): Promise<void> {
  if (run.password !== undefined) await run.tools.passwords.refusedLater(requestOf(run));
}

/** Whether the transfer waits for a password, and another attempt would change nothing. */
export async function waitsIdly(run: Run): Promise<boolean> {
  if (!waitsForPassword(run.record) || run.record.reason !== obstacleIn(run).reason) return false;
  // The attempt fails in the same way, and handles the fault.
  return run.tools.passwords.isIdle(requestOf(run), run.signal).catch(() => false);
}

function requestOf({ source, record, signal }: Run) {
  const { mailbox, service } = source;
  const link = async () => (record.passwordInLink ? source.linkOf(record.trackingId, signal) : undefined);
  return { mailbox, service, record, link };
}

interface ReadChecksums {
  readonly subject?: string | undefined;
  /** By file-id. */
  readonly rows: ReadonlyMap<string, ChecksumRow>;
  readonly messageRow?: ChecksumRow | undefined;
  /** The checksums file does not fit the list of files, or cannot be understood. */
  readonly doubt?: Fault | undefined;
}

/** Without a readable checksums file, the checksums in the list of files count. */
function useChecksums(
  run: Run,
  files: readonly TransferFile[],
  read: PromiseSettledResult<Awaited<ReturnType<ServicePort["checksums"]>>>,
): ReadChecksums {
  if (read.status === "fulfilled") {
    const { subject, unlisted, byFileId: rows } = read.value;
    // The message is a file of the transfer, which the list need not show.
    const isMessage = unlisted.length === 1 && run.record.hasMessage !== false;
    const messageRow = isMessage ? unlisted[0] : undefined;
    const doubt = unlisted.length > 0 && !isMessage ? unlistedRows(unlisted) : undefined;
    return { subject, rows, messageRow, doubt };
  }
  const error: unknown = read.reason;
  if (!(error instanceof Fault)) throw error;
  const rows = new Map<string, ChecksumRow>();
  const areListed = files.every(({ checksum }) => checksum !== undefined);
  if (error.verdict === "quarantine") return { rows, doubt: areListed ? undefined : error };
  if (!failOptional(run, "checksums", error)) throw asOperationFault(error);
  return { rows };
}

/** The checksums file names files that are not in the list of files. */
export function unlistedRows(rows: readonly ChecksumRow[]): Fault {
  const names = rows.slice(0, 3).map((row) => JSON.stringify(row.name.slice(0, 80)));
  return new Fault("CHECKSUMS_INCOMPLETE", { detail: `not in the list of files: ${names.join(", ")}` });
}
