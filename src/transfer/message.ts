/** Fetches the confidential message of a transfer. */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { finishFile } from "../base/durable.ts";
import { Fault } from "../base/faults.ts";
import { rename, rm, withFile } from "../base/files.ts";
import { sumFile, sumOf } from "../base/sums.ts";
import type { Inbox } from "../inbox/port.ts";
import { matchesChecksum, nodeAlgorithm } from "../model/checksum.ts";
import { MESSAGE, type MessageRow, type ProvenMessage } from "../model/manifest.ts";
import type { ChecksumRow, Download } from "../service/port.ts";
import { type EmlPart, EmlReader } from "./eml.ts";
import type { FetchedFile, LostFile } from "./fetch.ts";
import type { Plan } from "./open-transfer.ts";
import type { Run } from "./run.ts";
import { asOperationFault, failOptional, kindOfFailure } from "./settle.ts";

/** Room for the message itself. Anything larger holds files. */
const SPARE_BYTES = 16 * 1024 * 1024;
/** Of the bytes of files, in an EML that holds them: base64 takes a third more, and has line ends. */
const EMBEDDED_SHARE = 1.4;
const READ_BYTES = 256 * 1024;

/** `fault`: why the service does not provide it. */
export type Message =
  | { readonly kind: "present"; readonly file: ProvenMessage }
  | { readonly kind: "none" }
  | { readonly kind: "refused"; readonly fault: Fault };

/** Throws if another attempt may help. `files`: those of the transfer, which are fetched meanwhile. */
export async function fetchMessage(
  run: Run,
  plan: Plan,
  files: Promise<readonly (FetchedFile | LostFile)[]>,
): Promise<Message> {
  const { hasMessage } = run.record;
  if (hasMessage === false) return { kind: "none" };
  try {
    const file = await downloadMessage(run, plan, files);
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
async function downloadMessage(
  run: Run,
  plan: Plan,
  files: Promise<readonly (FetchedFile | LostFile)[]>,
): Promise<ProvenMessage | undefined> {
  const { folder } = await run.openStage();
  const path = join(folder, MESSAGE);
  const hash = createHash("sha256");
  let bytes = 0;
  const reader = new EmlReader(new Set(plan.files.map((file) => file.bytes)));
  let room: Awaited<ReturnType<Inbox["reserve"]>> | undefined;
  const makeRoom = async () => {
    room ??= await run.tools.inbox.reserve(run.key, plan.totalBytes * EMBEDDED_SHARE, 1);
  };
  const options = { maxBytes: maxBytes(plan), isExpected: run.record.hasMessage === true, makeRoom };
  let download: Download | undefined;
  try {
    download = await run.source.service.openMessage(plan.access, options, run.signal);
    const { body } = download;
    await rm(path, { force: true });
    await withFile(path, "wx", async (file) => {
      for await (const chunk of body) {
        if (bytes === 0) demandMessage(chunk);
        bytes += chunk.byteLength;
        if (bytes > SPARE_BYTES) await makeRoom();
        hash.update(chunk);
        reader.push(chunk);
        await file.write(chunk);
        room?.use(chunk.byteLength);
      }
      if (bytes > 0) await finishFile(file, run.handoff.fileMode);
    });
    reader.end();
    if (bytes === 0) await rm(path, { force: true });
    const message = bytes === 0 ? undefined : ({ name: MESSAGE, size: bytes, sha256: sumOf(hash) } as const);
    // If the files fail, so does the attempt.
    const fetched = await files.catch(() => []);
    const sums = new Set(fetched.flatMap((file) => ("sha256" in file ? [file.sha256] : [])));
    const copies = reader.found.filter(({ sha256 }) => sums.has(sha256));
    return message && copies.length > 0 ? await takeOut(run, path, bytes, copies) : message;
  } catch (error) {
    // If this fails, the next attempt removes the file.
    await rm(path, { force: true }).catch(() => {});
    throw error;
  } finally {
    download?.cancel();
    room?.release();
  }
}

/** Keeps the message without these parts: they are delivered as files. */
async function takeOut(
  run: Run,
  path: string,
  size: number,
  parts: readonly EmlPart[],
): Promise<ProvenMessage> {
  const { zip } = await run.openStage();
  const hash = createHash("sha256");
  const buffer = new Uint8Array(READ_BYTES);
  let [at, kept] = [0, 0];
  await rm(zip, { force: true });
  await withFile(path, "r", (source) =>
    withFile(zip, "wx", async (file) => {
      for (const { start, end } of [
        ...parts.toSorted((a, b) => a.start - b.start),
        { start: size, end: size },
      ]) {
        for (let count = -1; at < start && count !== 0; at += count) {
          run.signal.throwIfAborted();
          count = Math.min(await source.read(buffer, at), start - at);
          const piece = buffer.subarray(0, count);
          hash.update(piece);
          await file.write(piece);
          kept += count;
        }
        at = Math.max(at, end);
      }
      await finishFile(file, run.handoff.fileMode);
    }),
  );
  await rename(zip, path);
  return { name: MESSAGE, size: kept, sha256: sumOf(hash) };
}

/** A message begins with the name of a header field; pages and error documents do not. */
function demandMessage(beginning: Uint8Array): void {
  const text = Buffer.from(beginning.subarray(0, 64)).toString("latin1").trimStart();
  if (!/^[<{[]/.test(text)) return;
  const detail = "the EML: another document came instead";
  throw new Fault("BAD_ANSWER", { detail, answeredBy: "intermediary" });
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
