/**
 * A small service, written from the published descriptions of the interface alone: it shares no code with the simulated
 * service or with Inlet. It takes no request that a strict server would refuse, and records what it refused.
 */
import { createHash, randomBytes } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { listen } from "./servers.ts";
import { writeZip } from "./zip-writer.ts";

interface DescribedFile {
  readonly name: string;
  readonly bytes: Buffer;
  /** Why the service has removed the file: it stays in lists, and cannot be downloaded. */
  readonly removed?: string;
}

export interface DescribedTransfer {
  readonly trackingId: string;
  readonly from?: string;
  readonly to: readonly string[];
  readonly cc?: readonly string[];
  readonly password: string;
  readonly files: readonly DescribedFile[];
  /** The text of a confidential message. */
  readonly message?: string;
  /** Default `ONE_TIME_PASSWORD`. */
  readonly mode?: "EID" | "ONE_TIME_PASSWORD" | "QUICK";
  /** All its operations answer 501 with this number. */
  readonly unsupported?: 5001 | 5002;
  /** Without checksums, the service has none for its files. */
  readonly hasNoChecksums?: boolean;
}

export interface DescribedOptions {
  readonly transfers: readonly DescribedTransfer[];
  /** The threshold of an EML: a whole number of megabytes, or refused whatever it is. Default `int32`. */
  readonly threshold?: "int32" | "refused";
  /** Where ZIP, EML and checksums are: beside `files`, or below. Default `beside`. */
  readonly paths?: "beside" | "below";
  /** The shortest time between two tokens; an earlier request is answered with 429. Default 0. */
  readonly tokenEveryMs?: number;
  /** Single files are refused by policy: 403 with 3010. */
  readonly refusesFiles?: boolean;
  /** Fields of lists that are refused, such as `cc`. */
  readonly unknownFields?: readonly string[];
  /** The first ZIPs break off at this share of their bytes. */
  readonly breakZip?: { readonly share: number; readonly times: number };
}

export interface DescribedRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  status: number;
  /** Bytes of the answer. */
  bytes: number;
}

/** Statuses of requests that should not have been sent. */
const REFUSED: readonly number[] = [400, 404, 405, 406, 429, 501];

export async function openDescribedService(options: DescribedOptions) {
  const clientId = randomBytes(40).toString("hex");
  const requests: DescribedRequest[] = [];
  const service: Service = { ...options, clientId, tokens: new Map(), brokenZips: 0, lastTokenMs: undefined };
  const server = createServer(async (message, response) => {
    const { pathname: path, searchParams: query } = new URL(message.url ?? "/", "http://service");
    const seen: DescribedRequest = { method: message.method ?? "", path, query, status: 0, bytes: 0 };
    requests.push(seen);
    const body = Buffer.concat(await message.toArray());
    send(answer(service, message, path, query, body), seen, response);
  });
  const url = await listen(server);
  return {
    url,
    clientId,
    requests,
    refused: () => requests.filter(({ status }) => REFUSED.includes(status)),
  };
}

interface Service extends DescribedOptions {
  readonly clientId: string;
  /** By address. */
  readonly tokens: Map<string, string>;
  brokenZips: number;
  lastTokenMs: number | undefined;
}

interface Reply {
  readonly status?: number;
  readonly type?: string;
  readonly body: Buffer;
  /** Ends after this share of its bytes, with the connection. */
  readonly share?: number;
}

function send(
  { status = 200, type = "application/json", body, share }: Reply,
  seen: DescribedRequest,
  response: ServerResponse,
) {
  const part = share === undefined ? body : body.subarray(0, Math.floor(body.length * share));
  seen.status = status;
  seen.bytes = part.length;
  response.writeHead(status, body.length === 0 ? {} : { "content-type": type });
  if (share === undefined) response.end(part);
  else response.write(part, () => setImmediate(() => response.destroy()));
}

function error(status: number, errorCode: number): Reply {
  return { status, body: Buffer.from(JSON.stringify({ errorCode, errorMessage: "Refused" })) };
}

function data(value: unknown): Reply {
  return { body: Buffer.from(JSON.stringify({ data: value, meta: {} })) };
}

const INT32 = /^\d{1,9}$/;

/** The operation of each path and method, with its parameters and the type of its answer. */
const ROUTES: readonly (readonly [
  method: string,
  path: RegExp,
  type: string,
  parameters: readonly string[],
  Handler,
])[] = [
  ["POST", /^\/api\/users\/([^/]+)\/verification\/token$/, "application/json", [], giveToken],
  [
    "GET",
    /^\/api\/users\/([^/]+)\/transfers\/received-transfers$/,
    "application/json",
    ["page", "page-size", "active", "fields"],
    list,
  ],
  ["GET", /^\/api\/transfers\/([^/]+)$/, "application/json", [], onTransfer(information)],
  ["GET", /^\/api\/transfers\/([^/]+)\/files$/, "application/json", [], onTransfer(listFiles)],
  [
    "GET",
    /^\/api\/transfers\/([^/]+)\/((?:files\/)?zip)$/,
    "application/zip",
    ["include-checksum-file", "customized-files-ids", "is-customized-files-ids-include"],
    onTransfer(zip),
  ],
  [
    "GET",
    /^\/api\/transfers\/([^/]+)\/((?:files\/)?eml)$/,
    "application/octet-stream",
    ["threshold"],
    onTransfer(eml),
  ],
  ["GET", /^\/api\/transfers\/([^/]+)\/((?:files\/)?checksums)$/, "text/csv", [], onTransfer(checksums)],
  ["GET", /^\/api\/transfers\/([^/]+)\/files\/([^/]+)$/, "application/octet-stream", [], onTransfer(file)],
];

interface Asked {
  readonly service: Service;
  /** The parts of the path. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage["headers"];
  readonly body: Buffer;
}

type Handler = (asked: Asked) => Reply;

function answer(
  service: Service,
  { method = "", headers }: IncomingMessage,
  path: string,
  query: URLSearchParams,
  body: Buffer,
): Reply {
  const alike = ROUTES.filter(([, pattern]) => pattern.test(path));
  const route = alike.find(([its]) => its === method);
  if (route === undefined) return error(alike.length > 0 ? 405 : 404, 1006);
  const [, pattern, type, parameters, handler] = route;
  const parts = (pattern.exec(path) ?? []).slice(1).map(decodeURIComponent);
  // ZIP, EML and checksums exist at one of two paths.
  const isEither = parts[1] !== undefined && /^(files\/)?(zip|eml|checksums)$/.test(parts[1]);
  const isBelow = parts[1]?.startsWith("files/") === true;
  if (isEither && isBelow !== (service.paths === "below")) {
    // Below `files` it is the id of a file.
    return isBelow ? error(404, 2003) : error(404, 1006);
  }
  const accepted = (headers.accept ?? "*/*").split(",").map((part) => part.split(";")[0]?.trim());
  if (!accepted.some((one) => one === type || one === "*/*" || one === `${type.split("/")[0]}/*`))
    return { status: 406, body: EMPTY };
  return (
    judgeHeaders(service, headers) ??
    ([...query.keys()].some((name) => !parameters.includes(name)) ? error(400, 1004) : undefined) ??
    (body.length > 0 && headers["content-type"] !== "application/json" ? error(400, 1004) : undefined) ??
    handler({ service, parts, query, headers, body })
  );
}

const EMPTY = Buffer.alloc(0);

function judgeHeaders({ clientId }: Service, headers: IncomingMessage["headers"]): Reply | undefined {
  const [major, minor] = [headers["x-cs-majorapiversion"], headers["x-cs-minimumminorapiversion"]];
  const id = headers["x-cs-clientid"];
  if ([major, minor, headers["x-cs-productkey"], id].includes(undefined)) return error(400, 1002);
  if (!(INT32.test(String(major)) && INT32.test(String(minor)))) return error(400, 1004);
  if (headers["x-cs-productkey"] !== "api.rest") return error(400, 1004);
  if (!/^[a-zA-Z0-9]{50,4000}$/.test(String(id))) return error(400, 1004);
  if (major !== "1" || Number(minor) > 12) return error(404, 2004);
  return id === clientId ? undefined : error(403, 3002);
}

function giveToken({ service, parts: [email = ""], body }: Asked): Reply {
  if (!email.includes("@")) return error(400, 1005);
  if (body.length > 0) return error(403, 3002);
  const nowMs = performance.now();
  if (nowMs - (service.lastTokenMs ?? -Infinity) < (service.tokenEveryMs ?? 0)) return error(429, 2007);
  service.lastTokenMs = nowMs;
  const token = service.tokens.get(email) ?? randomBytes(20).toString("hex");
  service.tokens.set(email, token);
  return data({ token, validUntil: "2099-01-01T00:00:00+00:00" });
}

function list({ service, parts: [email = ""], query, headers }: Asked): Reply {
  const token = headers["x-cs-verificationtoken"];
  if (token === undefined || token !== service.tokens.get(email)) return error(401, 3002);
  const [page, size] = [query.get("page") ?? "1", query.get("page-size") ?? "10"];
  const isWrong = !INT32.test(page) || !INT32.test(size) || page === "0" || size === "0";
  if (isWrong || !["true", "false", null].includes(query.get("active"))) return error(400, 1004);
  const fields =
    query.get("fields") ?? "trackingId,status(sender(email),recipients,state),transfer(recipients)";
  const words = fields.match(/\w+/g) ?? [];
  const isBalanced = fields.split("(").length === fields.split(")").length;
  if (!isBalanced || words.some((word) => !FIELDS.includes(word) || service.unknownFields?.includes(word)))
    return error(400, 1004);
  const own =
    query.get("active") === "false"
      ? []
      : service.transfers.filter(({ to, cc = [] }) => [...to, ...cc].includes(email));
  const [first, count] = [(Number(page) - 1) * Math.min(Number(size), 100), Math.min(Number(size), 100)];
  return data(own.slice(first, first + count).map((transfer) => select(entryOf(transfer), words)));
}

const FIELDS =
  "trackingId status sender email notificationFailed recipients mail id downloadUrl fileDownloads state files removed removalCause warnings emlCreationFailed transfer to cc bcc expirationDate fileChecksumAlgorithm fileName size checksum confidentialMessageFileId notificationMessage subject body securityMode name config passwordMode".split(
    " ",
  );

/** The named parts; of a part whose own parts are not named, all of it. */
function select(value: unknown, words: readonly string[]): unknown {
  if (Array.isArray(value)) return value.map((entry) => select(entry, words));
  if (typeof value !== "object" || value === null) return value;
  const named = Object.entries(value).filter(([name]) => words.includes(name));
  const chosen = named.length > 0 ? named : Object.entries(value);
  return Object.fromEntries(chosen.map(([name, part]) => [name, select(part, words)]));
}

function entryOf({
  trackingId,
  from = "anna@supplier.example",
  to,
  cc = [],
  files,
  message,
  mode,
}: DescribedTransfer) {
  const mails = (addresses: readonly string[]) => addresses.map((mail) => ({ mail }));
  return {
    trackingId,
    status: {
      sender: { email: from, notificationFailed: false },
      recipients: [...to, ...cc].map((mail) => ({
        mail,
        id: idOf(trackingId, mail),
        downloadUrl: `https://service.example/download?id=${idOf(trackingId, mail)}`,
        fileDownloads: [],
        notificationFailed: false,
      })),
      state: "ACTIVE",
      warnings: files.some(({ removed }) => removed !== undefined),
      emlCreationFailed: false,
      files: files.map(({ name, removed }) => ({
        id: idOf(trackingId, name),
        removed: removed !== undefined,
        removalCause: removed ?? null,
      })),
    },
    transfer: {
      recipients: { to: mails(to), cc: mails(cc), bcc: [] },
      expirationDate: "2099-01-01T00:00:00+00:00",
      fileChecksumAlgorithm: "SHA-256",
      confidentialMessageFileId: message === undefined ? null : idOf(trackingId, "message"),
      notificationMessage: { subject: `About ${trackingId}`, body: "" },
      securityMode: { name: mode ?? "ONE_TIME_PASSWORD", config: { passwordMode: "MANUAL" } },
    },
  };
}

/** Ten letters and digits. */
function idOf(trackingId: string, what: string): string {
  return createHash("sha256").update(`${trackingId}\0${what}`).digest("hex").slice(0, 10);
}

function onTransfer(operation: (transfer: DescribedTransfer, asked: Asked) => Reply): Handler {
  const handler: Handler = (asked) => {
    const { service, parts, headers } = asked;
    const [transferId = ""] = parts;
    if (!/^[A-Za-z0-9]{10}$/.test(transferId)) return error(400, 1005);
    const transfer = service.transfers.find(({ trackingId, to, cc = [] }) =>
      [...to, ...cc].some((mail) => idOf(trackingId, mail) === transferId),
    );
    if (transfer === undefined) return error(404, 2003);
    if (transfer.unsupported !== undefined) return error(501, transfer.unsupported);
    const password = headers["x-cs-password"];
    if (password === undefined) return error(400, 1002);
    return decodeURIComponent(String(password)) === transfer.password
      ? operation(transfer, asked)
      : error(401, 3003);
  };
  return handler;
}

function information({ files, hasNoChecksums }: DescribedTransfer): Reply {
  const totalSize = files.reduce((sum, { bytes }) => sum + bytes.length, 0);
  return data({ totalSize, checksumAlgorithm: hasNoChecksums ? "" : "SHA-256" });
}

function listFiles(
  { trackingId, files, hasNoChecksums }: DescribedTransfer,
  { parts: [transferId] }: Asked,
): Reply {
  return data(
    files.map(({ name, bytes }) => ({
      id: idOf(trackingId, name),
      fileName: name,
      size: bytes.length,
      checksum: hasNoChecksums ? "" : sumOf(bytes),
      href: `/api/transfers/${transferId}/files/${idOf(trackingId, name)}`,
    })),
  );
}

function sumOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function file({ trackingId, files }: DescribedTransfer, { service, parts: [, fileId] }: Asked): Reply {
  if (service.refusesFiles) return error(403, 3010);
  const found = files.find(({ name }) => idOf(trackingId, name) === fileId);
  if (found === undefined || found.removed !== undefined) return error(404, 2003);
  return { type: "application/octet-stream", body: found.bytes };
}

function zip({ trackingId, files }: DescribedTransfer, { service, query }: Asked): Reply {
  const ids = query.getAll("customized-files-ids").flatMap((ids) => ids.split(","));
  const isInclude = (query.get("is-customized-files-ids-include") ?? "true") === "true";
  const there = files.filter(({ removed }) => removed === undefined);
  const chosen = there.filter(
    ({ name }) => ids.length === 0 || ids.includes(idOf(trackingId, name)) === isInclude,
  );
  const body = writeZip(chosen.map(({ name, bytes: content }) => ({ name, content })));
  const { share, times } = service.breakZip ?? { share: 1, times: 0 };
  if (service.brokenZips >= times) return { type: "application/zip", body };
  service.brokenZips += 1;
  return { type: "application/zip", body, share };
}

const MEGABYTE = 1_000_000;

/** Every file is embedded that fits beside the message. */
function eml(
  { files, message, from = "anna@supplier.example" }: DescribedTransfer,
  { service, query }: Asked,
): Reply {
  const threshold = query.get("threshold");
  const isWrong = threshold !== null && (service.threshold === "refused" || !INT32.test(threshold));
  if (isWrong) return error(400, 1004);
  if (message === undefined) return error(404, 2003);
  let room = threshold === null ? Number.POSITIVE_INFINITY : Number(threshold) * MEGABYTE;
  const parts = [`Content-Type: text/plain; charset=utf-8\r\n\r\n${message}`];
  for (const { name, bytes } of files) {
    room -= (bytes.length * 4) / 3;
    if (room < 0) break;
    const lines = bytes.toString("base64").replace(/.{76}/g, "$&\r\n");
    parts.push(
      `Content-Type: application/octet-stream\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename*=UTF-8''${encodeURIComponent(name)}\r\n\r\n${lines}`,
    );
  }
  const head = `From: ${from}\r\nSubject: Message\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="=_part"\r\n\r\n`;
  const body = Buffer.from(`${head}--=_part\r\n${parts.join("\r\n--=_part\r\n")}\r\n--=_part--\r\n`);
  return { type: "application/octet-stream", body };
}

function checksums({ trackingId, files, hasNoChecksums }: DescribedTransfer): Reply {
  const rows = files.map(({ name, bytes }) => [name, hasNoChecksums ? "" : `${sumOf(bytes)} (SHA-256)`]);
  const lines = [["Subject", `About ${trackingId}`], ["File Name", "Checksum"], ...rows];
  const text = lines
    .map((cells) => cells.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(","))
    .join("\r\n");
  return { type: "text/csv", body: Buffer.from(text) };
}
