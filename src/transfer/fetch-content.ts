/** Fetches and verifies the content of a transfer: its files, one by one or as a ZIP, and its message. */
import { durableStep } from "../base/disk.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { asFault, Fault } from "../base/faults.ts";
import { type OpenFile, rm, withFile } from "../base/files.ts";
import type { Sum } from "../base/sums.ts";
import type { Mailbox } from "../model/mailbox.ts";
import { bytesOf, type Contents, type Proven } from "../model/manifest.ts";
import type { ZipOptions } from "../service/port.ts";
import { type FetchContext, type FetchedFile, fetchFiles, hasCode, type LostFile } from "./fetch.ts";
import { compareRow, fetchMessage } from "./message.ts";
import { type Plan, type PlannedFile, unlistedRows } from "./open-transfer.ts";
import { adoptContent } from "./reuse.ts";
import type { Run } from "./run.ts";
import { failOptional } from "./settle.ts";

/** Room in a ZIP for headers and names, beyond its files. */
const ZIP_OVERHEAD = { perFile: 4096, whole: 16 * 1024 * 1024 };

/** Of the removed files, so many are named to people, with so many characters. */
const MAX_SHOWN = 3;
const MAX_NAME = 80;

/** Faults of a ZIP whose files may be sound. */
const DAMAGE: readonly FaultCode[] = ["ARCHIVE_WRONG", "CHECKSUM_MISMATCH", "SIZE_MISMATCH"];
/** So many file-ids fit into the address of a request. */
const MOST_IDS = 100;

/** Throws what may be incomplete or wrong, once everything is fetched. An operator vouches for a released transfer. */
export async function fetchContents(run: Run, plan: Plan): Promise<Proven> {
  const { hasMessage, released } = run.record;
  const { messageRow: row } = plan;
  const { files: all, message } = await fetchAll(run, plan);
  const files = all.filter((file) => "sha256" in file);
  const lost = all.filter((file) => "removed" in file);
  const messageRow = row && (await compareRow(run, plan, row, message));
  const contents: Proven = {
    subject: run.record.subject,
    message: message.kind,
    messageFile: message.kind === "present" ? message.file : undefined,
    messageRow,
    ...(lost.length > 0 ? { missing: lost.map(describeLost) } : {}),
    files: files.map((file) => {
      const { name, originalName, bytes: size, checksums, sha256, doubt } = file;
      const { value: checksum, algorithm } = checksums[0] ?? {};
      const verified = doubt === undefined && checksums.length > 0;
      return { name, originalName, size, checksum, algorithm, sha256, verified };
    }),
  };
  run.contents = contents;
  const mismatch = files.find(({ doubt }) => doubt !== undefined)?.doubt;
  const stranger = row && messageRow === undefined ? unlistedRows([row]) : undefined;
  const refusal = message.kind === "refused" ? message.fault : undefined;
  const withheld = hasMessage ? refusal : undefined;
  const unproven = doubtOf(contents, plan, run.source.mailbox);
  const fault = plan.doubt ?? mismatch ?? removalOf(lost) ?? stranger ?? withheld ?? unproven;
  if (fault !== undefined && !released) throw fault;
  if (refusal !== undefined) run.tools.emit({ type: "message-refused", record: run.record, fault: refusal });
  return contents;
}

function describeLost({ originalName, bytes: size, checksums: [sent], removed: { cause } }: LostFile) {
  const checksum = sent && { checksum: sent.value, algorithm: sent.algorithm };
  return { originalName, size, ...checksum, ...(cause === "" ? {} : { cause }) };
}

function removalOf(lost: readonly LostFile[]): Fault | undefined {
  if (lost.length === 0) return undefined;
  const shown = lost.slice(0, MAX_SHOWN).map(({ originalName, removed: { cause } }) => {
    const name = JSON.stringify(originalName.slice(0, MAX_NAME));
    return cause === "" ? name : `${name} (${JSON.stringify(cause)})`;
  });
  const more = lost.length > MAX_SHOWN ? [`${lost.length - MAX_SHOWN} more`] : [];
  return new Fault("FILE_REMOVED", { detail: [...shown, ...more].join(", ") });
}

/** Why the contents may be incomplete or wrong although each file is as listed. */
function doubtOf(contents: Contents, { announcedBytes }: Plan, { verify }: Mailbox): Fault | undefined {
  const { files, message } = contents;
  const listedBytes = bytesOf(contents);
  // A service may count the confidential message, whose size it announces nowhere.
  const mayBeMore = message !== "none";
  if (mayBeMore ? listedBytes > announcedBytes : listedBytes !== announcedBytes) {
    const detail = `the service announces ${announcedBytes} bytes in total and lists files of ${listedBytes} bytes`;
    return new Fault("SIZE_MISMATCH", { detail });
  }
  if (verify === "prefer") return undefined;
  const unproven = files.find((file) => !file.verified);
  if (unproven !== undefined) {
    return new Fault("UNVERIFIABLE", { detail: JSON.stringify(unproven.originalName) });
  }
  if (files.length > 0 || message === "present") return undefined;
  return new Fault("UNVERIFIABLE", { detail: "it holds neither a file nor a message" });
}

/** Where the service does not give out single files, the ZIP is fetched, which takes other room. */
async function fetchAll(run: Run, plan: Plan) {
  if (plan.way === "zip" || !plan.isZippable) return fetchBy(run, plan);
  const { ledger, clock } = run.tools;
  const fact = [run.source.service.id, "refuses single files"];
  const isRefused = await ledger.services.isUsual(clock.now(), ...fact);
  try {
    if (!isRefused) return await fetchBy(run, plan);
  } catch (error) {
    if (!refusesSingleFiles(error)) throw error;
  }
  const fetched = await fetchBy(run, { ...plan, way: "zip" });
  // What the disk does not keep is found out again.
  if (!isRefused) await ledger.services.addTime(clock.now(), ...fact).catch(() => {});
  return fetched;
}

/** Other operations of the transfer were allowed, and what fails of the message is not thrown. */
function refusesSingleFiles(error: unknown): boolean {
  return hasCode(error, "POLICY_REFUSED", "ACCESS_REFUSED", "NOT_LICENSED") && error.answeredBy === "service";
}

/** Reserves room first. The files and the message are requested together. */
async function fetchBy(run: Run, plan: Plan) {
  const { tools } = run;
  const { totalBytes } = plan;
  const stage = await run.openStage();
  const presentBytes = await adoptContent(run, stage, plan);
  await tools.ledger.reclaim(stage);
  const announcedBytes = Math.max(totalBytes, plan.announcedBytes);
  // A ZIP and its files exist at the same time.
  const neededBytes = plan.way === "zip" ? announcedBytes * 2 : announcedBytes;
  const reservation = await tools.inbox.reserve(run.key, neededBytes - presentBytes, plan.files.length);
  let done = 0;
  const progress = (bytes: number, receivedBytes: number) => {
    done += bytes;
    const doneBytes = Math.min(done, totalBytes);
    tools.emit({ type: "transfer-progressed", record: run.record, doneBytes, totalBytes, receivedBytes });
  };
  const context: FetchContext = {
    run,
    plan,
    stage,
    onFound: (bytes) => progress(bytes, 0),
    onBytes(bytes) {
      run.pace.received(bytes);
      reservation.use(bytes);
      progress(bytes, bytes);
    },
  };
  try {
    const fetching = fetchEither(context);
    const [files, message] = await Promise.allSettled([fetching, fetchMessage(run, plan, fetching)]);
    if (files.status === "rejected") throw files.reason;
    if (message.status === "rejected") throw message.reason;
    return { files: files.value, message: message.value };
  } catch (error) {
    if (asFault(error).code === "DISK_FULL") reservation.ranShort();
    throw error;
  } finally {
    reservation.release();
  }
}

/** If the ZIP is refused or damaged, single files are fetched for what it lacks. */
async function fetchEither(context: FetchContext): Promise<readonly (FetchedFile | LostFile)[]> {
  const { run, plan, stage } = context;
  const fetched = new Map<PlannedFile, FetchedFile>();
  try {
    if (plan.way === "zip") await fetchZip(context, fetched);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (!DAMAGE.includes(error.code) && !failOptional(run, "zip", error)) throw error;
  } finally {
    await rm(stage.zip, { force: true });
  }
  const others = plan.files.filter((file) => !fetched.has(file));
  const all = new Map<PlannedFile, FetchedFile | LostFile>(fetched);
  for (const [at, file] of (await fetchFiles(context, others)).entries()) all.set(others[at] ?? file, file);
  return plan.files.map((file) => all.get(file)).filter((file) => file !== undefined);
}

/**
 * The result is the same as with single files. The service makes a new ZIP for each request, so one that broke off cannot be
 * resumed: its whole files are kept, and another ZIP is requested for the others, as long as each brings a file.
 */
async function fetchZip(context: FetchContext, fetched: Map<PlannedFile, FetchedFile>): Promise<void> {
  const { run, plan, stage } = context;
  const { files } = plan;
  const add = (file: PlannedFile, sha256: Sum) => void fetched.set(file, { ...file, sha256 });
  while (fetched.size < files.length) {
    const before = fetched.size;
    const missing = files.filter((file) => !fetched.has(file)).slice(0, MOST_IDS);
    const wanted = before === 0 ? files : missing;
    try {
      await receiveZip(context, before === 0 ? {} : { only: missing.map(({ id }) => id) });
      durableStep("ZIP fetched");
      for (const [file, sum] of await unpack(context, wanted, fetched)) add(file, sum);
      durableStep("ZIP unpacked");
    } catch (error) {
      const isBreak = hasCode(error, "CONNECTION_LOST", "SERVICE_TIMEOUT");
      if (!isBreak && !hasCode(error, ...DAMAGE)) throw error;
      const { salvageZip } = await import("./salvage.ts");
      const target = { fileMode: run.handoff.fileMode, has: (file: PlannedFile) => fetched.has(file), add };
      await salvageZip(stage.zip, files, stage.folder, target, run.signal);
      if (!isBreak || fetched.size === before) throw error;
    }
  }
}

async function receiveZip({ run, plan, stage, onBytes }: FetchContext, options: ZipOptions): Promise<void> {
  const { access, files, totalBytes } = plan;
  const maxBytes = totalBytes + files.length * ZIP_OVERHEAD.perFile + ZIP_OVERHEAD.whole;
  await rm(stage.zip, { force: true });
  await withFile(stage.zip, "wx", async (file: OpenFile) => {
    const { body } = await run.source.service.openZip(access, { ...options, maxBytes }, run.signal);
    for await (const chunk of body) {
      await file.write(chunk);
      onBytes(chunk.byteLength);
    }
  });
}

/** A service may send other files than requested: then the ZIP must have all of the transfer. */
async function unpack(
  { run, plan, stage }: FetchContext,
  wanted: readonly PlannedFile[],
  fetched: Map<PlannedFile, FetchedFile>,
) {
  // Loaded only if it is needed.
  const { unpackZip } = await import("./unpack.ts");
  const { fileMode } = run.handoff;
  const unpackAs = (files: readonly PlannedFile[]) =>
    unpackZip(stage.zip, files, stage.folder, { fileMode }, run.signal);
  try {
    return await unpackAs(wanted);
  } catch (error) {
    if (wanted === plan.files || !hasCode(error, "ARCHIVE_WRONG")) throw error;
    // They are replaced.
    fetched.clear();
    return unpackAs(plan.files);
  }
}
