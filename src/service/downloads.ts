/** Bodies of any size: files, ZIP, EML, the checksums CSV and language files, as streams. */
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { Fault } from "../base/faults.ts";
import { kindOfAnswer } from "./answers.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { encodingOf, headerOf, unknownEncoding } from "./bodies.ts";
import { type Call, faultOf, type Http } from "./http.ts";
import { guardPace } from "./pace.ts";
import type {
  Download,
  DownloadOptions,
  FileOptions,
  IdListForm,
  ServicePort,
  TransferAccess,
  ZipOptions,
} from "./port.ts";
import type { Answer, AnswerBody } from "./receiving.ts";

/** The oldest minor version whose ZIP can be limited to some files. */
const ZIP_SELECTION_MINOR_VERSION = 11;

/** Answers of a service that keeps an operation at another path. */
const NO_OPERATION: readonly string[] = ["NO_SUCH_ENDPOINT", "API_VERSION"];

export type Downloads = Pick<
  ServicePort,
  "openFile" | "openZip" | "openEml" | "openChecksums" | "openLanguageFile"
>;

/** `bandwidth`: what every byte passes through; missing: no limit. */
export function createDownloads(
  http: Http,
  idListForm: IdListForm,
  bandwidth: Bandwidth | undefined,
): Downloads {
  const line = { http, bandwidth };
  /** Operations that the service keeps below `files`: these are asked for there first. */
  const below = new Set<string>();

  async function openWhole(
    access: TransferAccess,
    name: "zip" | "eml" | "checksums",
    call: Omit<Call, "path" | "password">,
    options: DownloadOptions & { readonly isExpected?: boolean },
    signal: AbortSignal,
  ): Promise<Download> {
    const isBelow = below.has(name);
    const missing = options.isExpected || isBelow ? [...NO_OPERATION, "NOT_FOUND"] : NO_OPERATION;
    const openAt = async (place: readonly string[]) => {
      const path = ["transfers", access.transferId, ...place, name];
      return noPage(
        await open(line, { ...call, path, password: access.password }, options, signal),
        call.what,
      );
    };
    try {
      return await openAt(isBelow ? ["files"] : []);
    } catch (error) {
      if (!(error instanceof Fault && missing.includes(error.code))) throw error;
      const download = await openAt(isBelow ? [] : ["files"]).catch((second: unknown) => {
        // The service may take the name for a file-id, and refuse that: what a proxy said of the first path is all that
        // is known.
        throw second instanceof Fault && error.word === "intermediary" ? error : second;
      });
      if (isBelow) below.delete(name);
      else below.add(name);
      return download;
    }
  }

  return {
    openFile({ transferId, password }, file, options, signal) {
      const path = ["transfers", transferId, "files", file.id];
      return open(line, { what: `the file ${JSON.stringify(file.name)}`, path, password }, options, signal);
    },
    openZip(access, options, signal) {
      const isSelective = options.only !== undefined || options.except !== undefined;
      const call = {
        what: "the ZIP",
        query: zipQuery(options, options.idListForm ?? idListForm),
        ...(isSelective ? { minorVersion: ZIP_SELECTION_MINOR_VERSION } : {}),
      };
      return openWhole(access, "zip", call, options, signal);
    },
    openEml(access, options, signal) {
      const threshold = options.thresholdMegabytes;
      const query = threshold === undefined ? [] : [["threshold", String(threshold)] as const];
      return openWhole(access, "eml", { what: "the EML", query }, options, signal);
    },
    openChecksums(access, signal) {
      return openWhole(access, "checksums", { what: "the checksums file" }, {}, signal);
    },
    openLanguageFile(packId, path, signal) {
      const segments = ["products", "api.rest", "language-packs", packId, ...path.split("/")];
      return open(line, { what: `the language file ${path}`, path: segments }, {}, signal);
    },
  };
}

/** A login page of a proxy is a success to HTTP, but none of these is ever a page. */
function noPage(download: Download, what: string): Download {
  if (!/^text\/html\b/i.test(download.contentType ?? "")) return download;
  download.cancel();
  throw new Fault("BAD_ANSWER", { detail: `${what}: a page for people came instead`, word: "intermediary" });
}

function zipQuery(options: ZipOptions, form: IdListForm): (readonly [string, string])[] {
  const ids = options.only ?? options.except ?? [];
  const lists = form === "comma" && ids.length > 0 ? [ids.join(",")] : ids;
  return [
    ...(options.includeChecksumFile === undefined
      ? []
      : [["include-checksum-file", String(options.includeChecksumFile)] as const]),
    ...lists.map((list) => ["customized-files-ids", list] as const),
    ...(options.except === undefined ? [] : [["is-customized-files-ids-include", "false"] as const]),
  ];
}

interface Line {
  readonly http: Http;
  readonly bandwidth: Bandwidth | undefined;
}

async function open(
  { http, bandwidth }: Line,
  call: Call,
  options: FileOptions,
  signal: AbortSignal,
): Promise<Download> {
  const { resume } = options;
  const headers = resume === undefined ? {} : rangeHeaders(resume.offset, resume.etag);
  const answer = await http.stream({ ...call, headers }, signal);
  const offset = offsetOf(answer, resume?.offset ?? 0, call.what);
  const encoding = encodingOf(answer);
  if (!["identity", "gzip"].includes(encoding) || (encoding === "gzip" && offset > 0)) {
    answer.body.cancel();
    throw unknownEncoding(encoding, call.what);
  }
  const sentBytes = numberOf(headerOf(answer, "content-length"));
  const announced = encoding === "gzip" ? undefined : sentBytes;
  const source = encoding === "gzip" ? pipeline(answer.body, createGunzip(), () => {}) : answer.body;
  return {
    offset,
    totalBytes: announced === undefined ? undefined : announced + offset,
    etag: headerOf(answer, "etag"),
    canResume: offset > 0 || headerOf(answer, "accept-ranges")?.toLowerCase() === "bytes",
    contentType: headerOf(answer, "content-type"),
    body: watch(
      answer.body,
      source,
      { what: call.what, offset, maxBytes: options.maxBytes, bandwidth },
      signal,
    ),
    cancel: () => answer.body.cancel(),
  };
}

function rangeHeaders(offset: number, etag: string | undefined): Record<string, string> {
  if (offset === 0) return {};
  // A weak tag promises the same meaning, not the same bytes.
  const strong = etag !== undefined && !etag.startsWith("W/");
  return { range: `bytes=${offset}-`, ...(strong ? { "if-range": etag } : {}) };
}

/** A whole answer begins at the beginning, whatever was asked for; a part must begin where we asked. */
function offsetOf(answer: Answer, asked: number, what: string): number {
  if (kindOfAnswer(answer.statusCode) !== "part") return 0;
  const start = /^bytes (\d+)-/.exec(headerOf(answer, "content-range") ?? "")?.[1];
  if (asked > 0 && Number(start) === asked) return asked;
  answer.body.cancel();
  const detail = `${what}: another part came than the one from byte ${asked}`;
  throw new Fault("RANGE_REFUSED", { detail, word: "intermediary" });
}

interface Watched {
  readonly what: string;
  readonly offset: number;
  readonly maxBytes: number | undefined;
  readonly bandwidth: Bandwidth | undefined;
}

/**
 * Passes the bytes on as fast as they may, stops at the first one too many, and turns what breaks into a fault. The
 * service is judged before its bytes are held back, so that nothing of our own making counts as its slowness.
 */
async function* watch(
  received: AnswerBody,
  source: AsyncIterable<Uint8Array>,
  { what, offset, maxBytes, bandwidth }: Watched,
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
    throw faultOf(error, what, signal, "silence");
  } finally {
    received.cancel();
  }
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
}
