/** The confidential message of a transfer, where it holds one. */
import { createHash } from "node:crypto";
import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import { faultOfDisk, finishFile } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import type { Download, ServicePort, TransferAccess } from "../service/port.ts";
import { MESSAGE } from "./plan.ts";

/**
 * The largest EML that is asked for: one byte, so that no file fits beside the message. The interface calls it a number of
 * megabytes, which need not be whole; not 0, which may mean "no limit". Where it is refused, the EML is asked for without it.
 */
const THRESHOLD_MEGABYTES = 0.000_001;
/** What the message itself may have, where a service does not know the threshold: base64 takes a third more. */
const SPARE_BYTES = 16 * 1024 * 1024;

/** The SHA-256 of the message, `undefined` where there is none. */
export async function fetchMessage(
  service: ServicePort,
  access: TransferAccess,
  folder: string,
  /** Of all files of the transfer. */
  totalBytes: number,
  fileMode: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const download = await openMessage(service, access, totalBytes * 1.5 + SPARE_BYTES, signal);
  if (download === undefined) return undefined;
  const path = join(folder, MESSAGE);
  const hash = createHash("sha256");
  try {
    await rm(path, { force: true });
    const file = await open(path, "wx", 0o600);
    try {
      for await (const chunk of download.body) {
        hash.update(chunk);
        await file.appendFile(chunk);
      }
      await finishFile(file, fileMode);
    } finally {
      await file.close();
    }
  } catch (error) {
    throw faultOfDisk(error, path);
  }
  return hash.digest("hex");
}

async function openMessage(
  service: ServicePort,
  access: TransferAccess,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Download | undefined> {
  try {
    return await service.openEml(access, { maxBytes, thresholdMegabytes: THRESHOLD_MEGABYTES }, signal);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (["NOT_FOUND", "NO_SUCH_ENDPOINT", "NOT_SUPPORTED"].includes(error.code)) return undefined;
    if (error.code !== "BAD_REQUEST") throw error;
    return service.openEml(access, { maxBytes }, signal);
  }
}
