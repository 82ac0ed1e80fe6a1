/** Fetches the content of a transfer into its stage: its files, one by one or as a ZIP, and its message. */
import { Fault } from "../base/faults.ts";
import type { Contents } from "../model/manifest.ts";
import type { TransferAccess } from "../service/port.ts";
import { adoptContent } from "./adopt.ts";
import { failOptional } from "./answers.ts";
import { type FetchContext, type Fetched, fetchFiles } from "./fetch.ts";
import { fetchZip, MAY_BE_DAMAGE } from "./fetch-zip.ts";
import { compareRow, fetchMessage, type Message } from "./message.ts";
import { type OpenedTransfer, unlistedRows } from "./open.ts";
import { type Plan, planTransfer } from "./plan.ts";
import type { Run } from "./run.ts";

export interface FetchedContents {
  readonly contents: Contents;
  /** A file that does not match its checksum, or a checksum without a file. */
  readonly doubt: Fault | undefined;
  readonly message: Message;
}

export async function fetchContents(run: Run, transfer: OpenedTransfer): Promise<FetchedContents> {
  const { access } = transfer;
  const plan = await planTransfer(transfer, run.source.mailbox, run.handoff, run.tools.inbox);
  const { files, doubt, message } = await fetchAll(run, access, plan);
  const { messageRow: row } = transfer;
  const messageRow = row && (await compareRow(run, access, row, message, plan.totalBytes));
  const contents: Contents = {
    subject: run.record.subject,
    message: message.kind,
    messageFile: message.kind === "present" ? message.file : undefined,
    messageRow,
    files: files.map(({ name, originalName, bytes: size, checksums, sha256, isProven }) => {
      const { value: checksum, algorithm } = checksums[0] ?? {};
      return { name, originalName, size, checksum, algorithm, sha256, verified: isProven };
    }),
  };
  run.contents = contents;
  const stranger = row && messageRow === undefined ? unlistedRows([row]) : undefined;
  return { contents, doubt: doubt ?? stranger, message };
}

/** Reserves room first. The files and the message are requested together. */
async function fetchAll(
  run: Run,
  access: TransferAccess,
  plan: Plan,
): Promise<Fetched & Pick<FetchedContents, "message">> {
  const { tools } = run;
  const stage = await run.openStage();
  const presentBytes = await adoptContent(tools, stage, plan);
  await tools.ledger.stages.reclaim(stage);
  const reservation = await tools.inbox.reserve(run.key, plan.neededBytes - presentBytes, plan.files.length);
  let done = 0;
  const progress = (bytes: number, receivedBytes: number) => {
    done += bytes;
    const doneBytes = Math.min(done, plan.totalBytes);
    const { totalBytes } = plan;
    tools.emit({ type: "transfer-progressed", record: run.record, doneBytes, totalBytes, receivedBytes });
  };
  const context: FetchContext = {
    service: run.source.service,
    access,
    stage,
    parallel: tools.limits.filesPerTransfer,
    fileMode: run.handoff.fileMode,
    onFound: (bytes) => progress(bytes, 0),
    onBody: (canResume) => run.pace.awaitBytes(canResume),
    onBytes(bytes) {
      run.pace.received(bytes);
      reservation.use(bytes);
      progress(bytes, bytes);
    },
  };
  try {
    const [fetched, message] = await Promise.allSettled([
      fetchEither(run, context, plan),
      fetchMessage(run, access, plan.totalBytes),
    ]);
    if (fetched.status === "rejected") throw fetched.reason;
    if (message.status === "rejected") throw message.reason;
    return { ...fetched.value, message: message.value };
  } catch (error) {
    if (error instanceof Fault && error.code === "DISK_FULL") reservation.ranShort();
    throw error;
  } finally {
    reservation.release();
  }
}

/** If the ZIP is refused or damaged, single files are fetched instead. */
async function fetchEither(run: Run, context: FetchContext, plan: Plan): Promise<Fetched> {
  const { signal } = run;
  if (plan.way === "files") return fetchFiles(context, plan, signal);
  return fetchZip(context, plan, signal).catch((error: unknown) => {
    if (!(error instanceof Fault)) throw error;
    const isDamage = MAY_BE_DAMAGE.has(error.code);
    if (!isDamage && !failOptional(run, "zip", error)) throw error;
    return fetchFiles(context, plan, signal);
  });
}
