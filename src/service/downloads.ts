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
import type { ChosenWay, Ways } from "./ways.ts";

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

interface MessageOptions extends Omit<EmlOptions, "thresholdMegabytes"> {
  makeRoom(): Promise<void>;
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

/**
 * The limits of an EML, in the sequence in which they are tried. One byte, so that no file fits beside the message; the
 * smallest whole number for services that take no other, because 0 may mean "no limit"; and none.
 */
const THRESHOLDS = [0.000_001, 1, undefined];
const LIMITS = THRESHOLDS.map((megabytes) => `threshold ${megabytes ?? "refused"}`);

/** `bandwidth`: the limit that every byte is subject to; missing: no limit. */
export function createDownloads(
  http: Http,
  idListForm: IdListForm,
  bandwidth: Pick<Bandwidth, "take"> | undefined,
  ways: Ways,
) {
  /** Which of the two paths exists differs by version. */
  function openWhole(
    access: TransferAccess,
    name: "zip" | "eml" | "checksums",
    call: Omit<Call, "path" | "password">,
    options: DownloadOptions & { readonly isExpected?: boolean },
    signal: AbortSignal,
  ): Promise<Download> {
    const paths = [name, `files/${name}`] as const;
    const openAt = async (path: string) => {
      const segments = ["transfers", access.transferId, ...path.split("/")];
      const whole = { ...call, path: segments, password: access.password };
      return refuseHtml(await open(whole, options, signal), call.what);
    };
    const ask = async (chosen: ChosenWay) => {
      const { opened, taken } = await openEither(openAt, paths, chosen, options.isExpected);
      if (taken !== undefined) await ways.note(paths, taken, signal);
      if (opened instanceof Fault) throw opened;
      return opened;
    };
    return ways.take(paths, ask, signal);
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

  /** Throws `NOT_FOUND` if the transfer has no confidential message. */
  function openEml(access: TransferAccess, options: EmlOptions, signal: AbortSignal): Promise<Download> {
    const query = [["threshold", options.thresholdMegabytes] as const];
    return openWhole(access, "eml", { what: "the EML", query }, options, signal);
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
    openEml,
    /**
     * The EML, with as few files as possible. Calls `makeRoom` before it requests all of them. Throws `NOT_FOUND` if the
     * transfer has no confidential message.
     */
    openMessage(access: TransferAccess, options: MessageOptions, signal: AbortSignal): Promise<Download> {
      const openWithin = (thresholdMegabytes?: number) =>
        openEml(access, { ...options, ...(thresholdMegabytes && { thresholdMegabytes }) }, signal);
      const ask = async ({ way }: ChosenWay) => {
        const found = await findLimit(openWithin, options.makeRoom, LIMITS.indexOf(way));
        if (found.isProven) await ways.note(LIMITS, found.limit, signal);
        return found.download;
      };
      return ways.take(LIMITS, ask, signal);
    },
    openChecksums: (access: TransferAccess, signal: AbortSignal): Promise<Download> =>
      openWhole(access, "checksums", { what: "the checksums file" }, {}, signal),
    openLanguageFile(packId: string, path: string, signal: AbortSignal): Promise<Download> {
      const segments = ["products", "api.rest", "language-packs", packId, ...path.split("/")];
      return open({ what: `the language file ${path}`, path: segments }, {}, signal);
    },
  };
}

/** `taken`: the service has this path, as far as it has itself said so. */
async function openEither(
  openAt: (path: string) => Promise<Download>,
  [direct, below]: readonly [string, string],
  { way, isSure }: ChosenWay,
  isExpected = false,
): Promise<{ readonly opened: Download | Fault; readonly taken?: string }> {
  const isBelow = way === below;
  // Without the operation, a service may take its name for the id of a file.
  const unsure = isBelow ? ["NOT_FOUND", "BAD_REQUEST"] : isExpected ? ["NOT_FOUND"] : [];
  const first = await openAt(way).catch(asFaultOf(isSure ? NO_OPERATION : [...NO_OPERATION, ...unsure]));
  if (!(first instanceof Fault)) return { opened: first, taken: way };
  const other = isBelow ? direct : below;
  const second = await openAt(other).catch(asFaultOf());
  const isThere = !(second instanceof Fault) || (second.code === "BAD_REQUEST" && !isForeign(second));
  // A refusal by a proxy proves nothing about a path, and says more than one of a path that may not exist.
  const isFirst = second instanceof Fault && (second.code === "NO_SUCH_ENDPOINT" || isForeign(first));
  const opened = isFirst ? first : second;
  return isThere && !isForeign(first) ? { opened, taken: other } : { opened };
}

/** Tries one limit after the other. `isProven`: the service itself has refused those before. */
async function findLimit(
  openWithin: (megabytes?: number) => Promise<Download>,
  makeRoom: () => Promise<void>,
  first: number,
) {
  for (let at = first, isProven = true; ; at++) {
    const megabytes = THRESHOLDS[at];
    if (megabytes === undefined) await makeRoom();
    const opened = await openWithin(megabytes).catch((error: unknown) => {
      if (megabytes === undefined || !(error instanceof Fault && isAboutValue(error))) throw error;
      return error;
    });
    if (!(opened instanceof Fault)) return { download: opened, limit: LIMITS[at] ?? "", isProven };
    isProven &&= opened.answeredBy === "service";
    // "Not found" may be about the value, or there is no message.
    if (opened.code !== "BAD_REQUEST") (await openWithin()).cancel();
  }
}

/** For `catch`: returns a fault, by default any; and throws every other error again. */
function asFaultOf(codes?: readonly string[]): (error: unknown) => Fault {
  return (error) => {
    if (error instanceof Fault && codes?.includes(error.code) !== false) return error;
    throw error;
  };
}

function isForeign({ answeredBy }: Fault): boolean {
  return answeredBy === "intermediary";
}

/** Whether the service may have refused the value of a parameter. Some answer "not found" to a value that they cannot parse. */
function isAboutValue({ code, answeredBy }: Fault): boolean {
  return answeredBy !== "unsent" && [...NO_OPERATION, "NOT_FOUND", "BAD_REQUEST"].includes(code);
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
