/** Bodies of any size: files, ZIP, EML, the checksums CSV and language files, as streams. */
import { Fault } from "../base/faults.ts";
import type { Secret } from "../base/secret.ts";
import { monotonicMs } from "../base/timers.ts";
import type { TransferFile } from "../model/transfer.ts";
import { foreignAnswer, kindOfAnswer } from "./answers.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { encodingOf, headerOf, unknownEncoding, unzipped } from "./bodies.ts";
import { type Call, faultOf, type Http, type Query } from "./http.ts";
import type { Answer, AnswerBody } from "./receiving.ts";

/** Gives access to a transfer. Only some transfers can be opened without a password. */
export interface TransferAccess {
  readonly transferId: string;
  readonly password: Secret | undefined;
}

/** The point at which to continue a partial download. */
interface ResumePoint {
  readonly offset: number;
  /** Without it a changed file goes unnoticed: the caller must hash the whole file. */
  readonly etag?: string;
}

export interface DownloadOptions {
  /** A longer body fails with `SIZE_MISMATCH`. Includes the bytes that `resume` skips. */
  readonly maxBytes?: number;
}

export interface FileOptions extends DownloadOptions {
  /** The service may ignore it: check `offset` of the download. */
  readonly resume?: ResumePoint;
}

/** File-ids in a query: one parameter for each, or one with commas. The specification does not say. */
export type IdListForm = "repeat" | "comma";

export interface ZipOptions extends DownloadOptions {
  readonly includeChecksumFile?: boolean;
  /** Only these files, or all but these. */
  readonly only?: readonly string[];
  readonly except?: readonly string[];
}

interface EmlOptions extends DownloadOptions {
  /** The list announces a message: also try the path of older services. */
  readonly isExpected?: boolean;
  /** The largest size of the EML; without it every file is attached. */
  readonly thresholdMegabytes?: number;
}

/** A body that is being received. Read it to its end or call `cancel`: both free the connection. */
export interface Download {
  /** The offset of the body's first byte: 0, or the one of `resume`. */
  readonly offset: number;
  /** The size of the whole file, if the service sends it. */
  readonly totalBytes: number | undefined;
  readonly etag: string | undefined;
  /** The service can send a part of it. */
  readonly canResume: boolean;
  readonly contentType: string | undefined;
  /** Throws a `Fault`, also if it is too slow or shorter than announced. */
  readonly body: AsyncIterable<Uint8Array>;
  cancel(): void;
}

/** A download that is slower ends, because each holds a slot. */
const SLOWEST = { windowMs: 120_000, bytesPerSecond: 1024 };

/** The oldest minor version whose ZIP can be limited to some files. */
const ZIP_SELECTION_MINOR_VERSION = 11;

/** Faults of a service that may have the operation at another path. */
const NO_OPERATION: readonly string[] = ["NO_SUCH_ENDPOINT", "API_VERSION"];

/** `bandwidth`: the limit that every byte is subject to; missing: no limit. */
export function createDownloads(
  http: Http,
  idListForm: IdListForm,
  bandwidth: Pick<Bandwidth, "take"> | undefined,
) {
  /** Older services have these operations below `files`, and may answer `NOT_FOUND` for what the list announces. */
  async function openWhole(
    access: TransferAccess,
    name: "zip" | "eml" | "checksums",
    call: Omit<Call, "path" | "password">,
    options: DownloadOptions & { readonly isExpected?: boolean },
    signal: AbortSignal,
  ): Promise<Download> {
    const missing = options.isExpected ? [...NO_OPERATION, "NOT_FOUND"] : NO_OPERATION;
    const openAt = async (parent: readonly string[]) => {
      const path = ["transfers", access.transferId, ...parent, name];
      return refuseHtml(await open({ ...call, path, password: access.password }, options, signal), call.what);
    };
    try {
      return await openAt([]);
    } catch (error) {
      if (!(error instanceof Fault && missing.includes(error.code))) throw error;
      return await openAt(["files"]).catch((second: unknown) => {
        // The service may take the second path for a wrong file-id, so a proxy's refusal of the first one says more.
        throw second instanceof Fault && error.answeredBy === "intermediary" ? error : second;
      });
    }
  }

  async function open(call: Call, options: FileOptions, signal: AbortSignal): Promise<Download> {
    const { what } = call;
    const { resume, maxBytes } = options;
    const headers = resume === undefined ? {} : rangeHeaders(resume.offset, resume.etag);
    const answer = await http.stream({ ...call, headers }, signal);
    const offset = offsetOf(answer, resume?.offset ?? 0, what);
    const encoding = encodingOf(answer);
    if (encoding !== "identity" && offset > 0) {
      answer.body.cancel();
      throw unknownEncoding(encoding, what);
    }
    const source = unzipped(answer, what);
    const announced = encoding === "gzip" ? undefined : numberOf(headerOf(answer, "content-length"));
    return {
      offset,
      totalBytes: announced === undefined ? undefined : announced + offset,
      etag: headerOf(answer, "etag"),
      canResume: offset > 0 || headerOf(answer, "accept-ranges")?.toLowerCase() === "bytes",
      contentType: headerOf(answer, "content-type"),
      body: guardBody(answer.body, source, { what, offset, maxBytes, bandwidth }, signal),
      cancel: () => answer.body.cancel(),
    };
  }

  return {
    openFile(
      { transferId, password }: TransferAccess,
      file: Pick<TransferFile, "id" | "name">,
      options: FileOptions,
      signal: AbortSignal,
    ): Promise<Download> {
      const path = ["transfers", transferId, "files", file.id];
      const what = `the file ${JSON.stringify(file.name)}`;
      return open({ what, path, password }, options, signal);
    },
    openZip(access: TransferAccess, options: ZipOptions, signal: AbortSignal): Promise<Download> {
      const isSelective = options.only !== undefined || options.except !== undefined;
      const call = {
        what: "the ZIP",
        query: zipQuery(options, idListForm),
        ...(isSelective ? { minorVersion: ZIP_SELECTION_MINOR_VERSION } : {}),
      };
      return openWhole(access, "zip", call, options, signal);
    },
    /** Throws `NOT_FOUND` if the transfer has no confidential message. */
    openEml(access: TransferAccess, options: EmlOptions, signal: AbortSignal): Promise<Download> {
      const query = [["threshold", options.thresholdMegabytes] as const];
      return openWhole(access, "eml", { what: "the EML", query }, options, signal);
    },
    openChecksums: (access: TransferAccess, signal: AbortSignal): Promise<Download> =>
      openWhole(access, "checksums", { what: "the checksums file" }, {}, signal),
    openLanguageFile(packId: string, path: string, signal: AbortSignal): Promise<Download> {
      const segments = ["products", "api.rest", "language-packs", packId, ...path.split("/")];
      return open({ what: `the language file ${path}`, path: segments }, {}, signal);
    },
  };
}

/** A proxy's login page has a success status, but none of these downloads is ever HTML. */
function refuseHtml(download: Download, what: string): Download {
  if (!/^text\/html\b/i.test(download.contentType ?? "")) return download;
  download.cancel();
  throw foreignAnswer("BAD_ANSWER", `${what}: an HTML page came instead`);
}

function zipQuery({ includeChecksumFile, only, except }: ZipOptions, form: IdListForm): Query {
  const ids = only ?? except ?? [];
  const lists = form === "comma" && ids.length > 0 ? [ids.join(",")] : ids;
  return [
    ["include-checksum-file", includeChecksumFile],
    ...lists.map((list) => ["customized-files-ids", list] as const),
    ["is-customized-files-ids-include", except === undefined ? undefined : false],
  ];
}

function rangeHeaders(offset: number, etag: string | undefined): Record<string, string> {
  if (offset === 0) return {};
  // A weak tag promises the same meaning, not the same bytes.
  const strong = etag !== undefined && !etag.startsWith("W/");
  return { range: `bytes=${offset}-`, ...(strong ? { "if-range": etag } : {}) };
}

/** A whole answer begins at 0, whatever was requested; a part must begin at the requested offset. */
function offsetOf(answer: Answer, requested: number, what: string): number {
  if (kindOfAnswer(answer.statusCode) !== "part") return 0;
  const start = /^bytes (\d+)-/.exec(headerOf(answer, "content-range") ?? "")?.[1];
  if (requested > 0 && Number(start) === requested) return requested;
  answer.body.cancel();
  throw foreignAnswer("RANGE_REFUSED", `${what}: the part does not begin at byte ${requested}`);
}

interface BodyGuards {
  readonly what: string;
  readonly offset: number;
  readonly maxBytes: number | undefined;
  readonly bandwidth: Pick<Bandwidth, "take"> | undefined;
}

/**
 * Passes the bytes on within the bandwidth limit, fails after `maxBytes`, and turns every error into a fault. The pace is
 * measured before the limit applies, so that our own waits do not count as slowness of the service.
 */
async function* guardBody(
  received: AnswerBody,
  source: AsyncIterable<Uint8Array>,
  { what, offset, maxBytes, bandwidth }: BodyGuards,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  let bytes = offset;
  try {
    for await (const chunk of guardPace(source)) {
      bytes += chunk.byteLength;
      if (maxBytes !== undefined && bytes > maxBytes) {
        throw new Fault("SIZE_MISMATCH", { detail: `${what}: more than the announced ${maxBytes} bytes` });
      }
      for (let rest = chunk; rest.byteLength > 0; ) {
        const granted = bandwidth?.take(rest.byteLength, signal) ?? rest.byteLength;
        const passing = typeof granted === "number" ? granted : await granted;
        yield rest.subarray(0, passing);
        rest = rest.subarray(passing);
      }
    }
  } catch (error) {
    throw faultOf(error, what, signal, "none");
  } finally {
    received.cancel();
  }
}

/**
 * Passes the bytes on, and throws `SERVICE_TIMEOUT` if too few arrive within a window. Only time spent waiting for the
 * service counts, not the reader's time for the bandwidth limit or the disk.
 */
export async function* guardPace(
  body: AsyncIterable<Uint8Array>,
  nowMs: () => number = monotonicMs,
): AsyncGenerator<Uint8Array, void, undefined> {
  let waitedMs = 0;
  let bytes = 0;
  let sinceMs = nowMs();
  for await (const chunk of body) {
    waitedMs += nowMs() - sinceMs;
    bytes += chunk.byteLength;
    if (waitedMs >= SLOWEST.windowMs) {
      if (bytes < (waitedMs / 1000) * SLOWEST.bytesPerSecond) {
        const detail = `less than ${SLOWEST.bytesPerSecond} bytes a second`;
        throw new Fault("SERVICE_TIMEOUT", { detail, answeredBy: "none" });
      }
      waitedMs = 0;
      bytes = 0;
    }
    yield chunk;
    sinceMs = nowMs();
  }
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
