/** Fetches the confidential message of a transfer. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { finishFile } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { rm, withFile } from "../base/files.ts";
import { sumFile, sumOf } from "../base/sums.ts";
import { matchesChecksum, nodeAlgorithm } from "../model/checksum.ts";
import { MESSAGE, type MessageRow, type ProvenMessage } from "../model/manifest.ts";
import type { ChecksumRow, Download } from "../service/port.ts";
import type { Plan } from "./open-transfer.ts";
import type { Run } from "./run.ts";
import { asOperationFault, failOptional, kindOfFailure } from "./settle.ts";

/**
 * The limit of the EML's size: one byte, so that no file fits beside the message. The interface takes megabytes, which
 * need not be whole; 0 may mean "no limit".
 */
const THRESHOLD_MEGABYTES = 0.000_001;
/** Room for the message itself, if a service ignores the threshold and adds the files: base64 takes a third more. */
const SPARE_BYTES = 16 * 1024 * 1024;

/** `fault`: why the service does not provide it. */
export type Message =
  | { readonly kind: "present"; readonly file: ProvenMessage }
  | { readonly kind: "none" }
  | { readonly kind: "refused"; readonly fault: Fault };

/** Throws if another attempt may help. */
export async function fetchMessage(run: Run, plan: Plan): Promise<Message> {
  const { hasMessage } = run.record;
  if (hasMessage === false) return { kind: "none" };
  try {
    const file = await downloadMessage(run, plan);
    if (file !== undefined) return { kind: "present", file };
    if (!hasMessage) return { kind: "none" };
    return { kind: "refused", fault: new Fault("MESSAGE_REFUSED", { detail: "the answer is empty" }) };
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (error.code === "SIZE_MISMATCH") return refused(error);
    if (!failOptional(run, "message", error)) throw asOperationFault(error);
    // If the list does not say, a refusal means that there is no message.
    if (!hasMessage && kindOfFailure(error) === "refused") return { kind: "none" };
    return refused(error);
  }
}

function refused(cause: Fault): Message {
  return { kind: "refused", fault: new Fault("MESSAGE_REFUSED", { detail: cause.message, cause }) };
}

/** `undefined` if the answer is empty. */
async function downloadMessage(run: Run, plan: Plan): Promise<ProvenMessage | undefined> {
  const { folder } = await run.openStage();
  const path = join(folder, MESSAGE);
  const hash = createHash("sha256");
  let bytes = 0;
  const { body, cancel } = await openMessage(run, plan);
  try {
    await rm(path, { force: true });
    await withFile(path, "wx", async (file) => {
      for await (const chunk of body) {
        if (bytes === 0) demandMessage(chunk);
        hash.update(chunk);
        bytes += chunk.byteLength;
        await file.write(chunk);
      }
      if (bytes > 0) await finishFile(file, run.handoff.fileMode);
    });
    if (bytes === 0) await rm(path, { force: true });
  } catch (error) {
    // If this fails, the next attempt removes the file.
    await rm(path, { force: true }).catch(() => {});
    throw error;
  } finally {
    cancel();
  }
  return bytes === 0 ? undefined : { name: MESSAGE, size: bytes, sha256: sumOf(hash) };
}

/** A message begins with the name of a header field; pages and error documents do not. */
function demandMessage(beginning: Uint8Array): void {
  const text = Buffer.from(beginning.subarray(0, 64)).toString("latin1").trimStart();
  if (!/^[<{[]/.test(text)) return;
  const detail = "the EML: another document came instead";
  throw new Fault("BAD_ANSWER", { detail, answeredBy: "intermediary" });
}

/** A service that refuses the threshold, or does not find what it cannot parse, is asked without it. */
async function openMessage({ source, record, signal }: Run, plan: Plan): Promise<Download> {
  const { service } = source;
  const options = { maxBytes: maxBytes(plan), isExpected: record.hasMessage === true };
  const small = { ...options, thresholdMegabytes: THRESHOLD_MEGABYTES };
  try {
    return await service.openEml(plan.access, small, signal);
  } catch (error) {
    const mayBeThreshold =
      error instanceof Fault &&
      (kindOfFailure(error) === "refused" || ["BAD_REQUEST", "NO_SUCH_ENDPOINT"].includes(error.code));
    if (!mayBeThreshold) throw error;
    return service.openEml(plan.access, options, signal);
  }
}

function maxBytes({ totalBytes }: Plan): number {
  return totalBytes * 1.5 + SPARE_BYTES;
}

/**
 * Compares the row that may be the message's with the EML, and with the message's file where the list names it. `undefined`
 * if the row is not the message's.
 */
export async function compareRow(
  run: Run,
  plan: Plan,
  { name, checksum }: ChecksumRow,
  { kind }: Message,
): Promise<MessageRow | undefined> {
  if (kind === "none") return undefined;
  const sent = checksum && { checksum: checksum.value, algorithm: checksum.algorithm };
  const found = (compared: MessageRow["compared"]) => ({ originalName: name, ...sent, compared });
  const algorithm = checksum && nodeAlgorithm(checksum.algorithm);
  if (algorithm === undefined) return found("none");
  const isSame = (hex: string) => matchesChecksum(Buffer.from(hex, "hex"), checksum?.value ?? "");
  if (kind === "present") {
    const { folder } = await run.openStage();
    if (isSame((await sumFile(join(folder, MESSAGE), run.signal, algorithm)) ?? "")) return found("eml");
  }
  const { messageFileId: id } = run.record;
  if (id === undefined) return found("none");
  try {
    const hash = createHash(algorithm);
    const options = { maxBytes: maxBytes(plan) };
    const { body } = await run.source.service.openFile(plan.access, { id, name }, options, run.signal);
    for await (const chunk of body) hash.update(chunk);
    return isSame(hash.digest("hex")) ? found("file") : undefined;
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    if (!failOptional(run, "message", error)) throw asOperationFault(error);
    return found("none");
  }
}
