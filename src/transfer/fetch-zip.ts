/** Downloads a transfer as one ZIP and unpacks it. The result is the same as with single files. */

import { durableStep } from "../base/disk.ts";
import { onDisk } from "../base/durable.ts";
import type { FaultCode } from "../base/fault-codes.ts";
import { Fault } from "../base/faults.ts";
import { type OpenFile, rm, withFile } from "../base/files.ts";
import type { FetchContext, Fetched } from "./fetch.ts";
import type { Plan } from "./plan.ts";

/** Room in a ZIP for headers and names, beyond its files. */
const OVERHEAD = { perFile: 4096, whole: 16 * 1024 * 1024 };
/** The time that unpacking may take: a fixed part, and a part for each mebibyte. */
const DEADLINE_MS = { whole: 60_000, perMebibyte: 1_000 };

/** Faults that a second download may repair. */
export const MAY_BE_DAMAGE: ReadonlySet<FaultCode> = new Set([
  "ARCHIVE_WRONG",
  "CHECKSUM_MISMATCH",
  "SIZE_MISMATCH",
]);

/** A broken or wrong archive is fetched again once. */
export async function fetchZip(context: FetchContext, plan: Plan, signal: AbortSignal): Promise<Fetched> {
  try {
    return await fetchOnce(context, plan, signal);
  } catch (error) {
    if (!(error instanceof Fault && MAY_BE_DAMAGE.has(error.code))) throw error;
    return await fetchOnce(context, plan, signal);
  } finally {
    await rm(context.stage.zip, { force: true });
  }
}

async function fetchOnce(context: FetchContext, plan: Plan, signal: AbortSignal): Promise<Fetched> {
  await download(context, plan, signal);
  durableStep("ZIP fetched");
  const digests = new Map<string, string>();
  const wanted = plan.files.map((file) => ({
    originalName: file.originalName,
    target: file.name,
    bytes: file.bytes,
    checksums: file.checksums,
    onDigest: (sha256: string) => void digests.set(file.id, sha256),
  }));
  const limits = {
    maxEntries: plan.files.length,
    maxBytes: plan.totalBytes,
    fileMode: context.fileMode,
    deadlineMs: DEADLINE_MS.whole + (plan.totalBytes / 1024 ** 2) * DEADLINE_MS.perMebibyte,
  };
  // Loaded only if it is needed.
  const { unpackZip } = await import("./unpack.ts");
  await unpackZip(context.stage.zip, wanted, context.stage.folder, limits, signal);
  durableStep("ZIP unpacked");
  return {
    files: plan.files.map((file) => ({
      ...file,
      sha256: digests.get(file.id) ?? "",
      isProven: file.checksums.length > 0,
    })),
    doubt: undefined,
  };
}

/** The service makes a new ZIP for each request, so a broken download cannot be resumed. */
async function download(context: FetchContext, plan: Plan, signal: AbortSignal): Promise<void> {
  const { service, access, onBytes } = context;
  const { zip } = context.stage;
  const maxBytes = plan.totalBytes + plan.files.length * OVERHEAD.perFile + OVERHEAD.whole;
  await rm(zip, { force: true });
  const receive = async (file: OpenFile) => {
    const { body } = await service.openZip(access, { maxBytes }, signal);
    for await (const chunk of body) {
      await file.write(chunk);
      onBytes(chunk.byteLength);
    }
  };
  await onDisk(zip, () => withFile(zip, "wx", receive));
}
