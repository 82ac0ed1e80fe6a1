/** A transfer service of a world: it answers the interface over HTTP, and counts what it is sent. */
import { chooseLanguage } from "../../../simulator/accept.ts";
import { DEFAULT_FIELDS } from "../../../simulator/fields.ts";
import { planRange, wantsRange } from "../../../simulator/ranges.ts";
import { formatDate } from "../../../simulator/reply.ts";
import type { TransferState } from "../../../src/model/transfer.ts";
import type { Random } from "../ground/random.ts";
import {
  FINE,
  type SentFile,
  type SentTransfer,
  type ServiceHabits,
  type StoredTransfer,
  type Weather,
} from "../plan/sent.ts";
import {
  type Answer,
  htmlPage,
  jsonAnswer,
  NOTHING,
  type Outcome,
  ownAnswer,
  Refusal,
  type RefusalName,
  refusalAnswer,
} from "./answers.ts";
import {
  algorithmOf,
  checksumsCsv,
  entryOf,
  foldAddress,
  type Held,
  type HeldRecipient,
  hold,
  listedChecksum,
  messageFileId,
  messageFileOf,
  sumOf,
  zipOf,
} from "./holdings.ts";
import {
  booleanOf,
  type Call,
  type Incoming,
  integerOf,
  operationOf,
  parseInteger,
  passwordOf,
  type RequestEntry,
  segmentsOf,
  selectionOf,
} from "./requests.ts";
import { drawMood, isAway, outcomeOf } from "./weather.ts";

export interface WorldServiceOptions {
  readonly number: number;
  /** Its base URL, without a slash at its end. */
  readonly url: string;
  /** The client id that an administrator has registered. */
  readonly clientId: string;
  /** Tokens that are valid for every address, and for ever. */
  readonly tokens?: readonly string[];
  readonly habits?: ServiceHabits | undefined;
  /** Of all services. The last one is the latest. */
  readonly transfers: readonly StoredTransfer[];
  readonly random: Random;
  /** The true time. */
  readonly nowMs: () => number;
}

const VERSION = { major: 1, minor: 13 };
const CLIENT_ID = /^[A-Za-z0-9]{50,4000}$/;
const DEFAULT_PAGE_SIZE = 10;
const LARGEST_PAGE_SIZE = 100;
const DELETES_AFTER = 5;

/** By security mode. */
const UNSUPPORTED: Readonly<Record<string, RefusalName>> = {
  QUICK: "modeNotSupported",
  EID: "providerNotSupported",
};

export class WorldService {
  readonly number: number;
  readonly url: string;
  readonly habits: ServiceHabits;
  readonly transfers: readonly StoredTransfer[];
  readonly random: Random;
  weather: Weather = FINE;
  /** Lists may have lacked to whom transfers were sent, and their modes. */
  hasHidden = false;
  /** Ids of files that arrive with other bytes. */
  readonly damaged = new Set<string>();
  /** Called when a request arrives. */
  onRequest: (entry: RequestEntry) => void = () => {};
  /** Called when its answer or its failure has reached the process. */
  onAnswered: (entry: RequestEntry) => void = () => {};
  readonly #basePath: string;
  readonly #clientId: string;
  readonly #nowMs: () => number;
  /** The latest first. */
  readonly #held: readonly Held[];
  readonly #byTransferId = new Map<string, { readonly held: Held; readonly recipient: HeldRecipient }>();
  readonly #fixedTokens: ReadonlySet<string>;
  readonly #tokens = new Map<string, { readonly address: string; readonly untilMs: number }>();
  #tokenCount = 0;
  readonly #issuedMs: number[] = [];
  /** Wrong passwords by transfer-id, where they lock it. */
  readonly #wrong = new Map<string, number>();

  constructor(options: WorldServiceOptions) {
    const { number, url, clientId, tokens = [], habits = {}, transfers, random, nowMs } = options;
    this.number = number;
    this.url = url;
    this.habits = habits;
    this.random = random;
    this.transfers = transfers.filter(({ service }) => service === number);
    this.#basePath = new URL(url).pathname.replace(/\/$/, "");
    this.#clientId = clientId;
    this.#nowMs = nowMs;
    this.#fixedTokens = new Set(tokens);
    this.#held = this.transfers.map(hold).reverse();
    for (const held of this.#held) {
      for (const recipient of held.recipients) {
        this.#byTransferId.set(recipient.transferId, { held, recipient });
      }
    }
  }

  stateOf({ state, expiresMs }: StoredTransfer): TransferState | "unsent" {
    return state === "active" && this.#nowMs() >= expiresMs ? "deleted_by_expiration" : state;
  }

  /** Whether it has given this token to the owner of the address. */
  isTokenOf(address: string, token: string): boolean {
    return this.#tokens.get(token)?.address === foldAddress(address);
  }

  /** An administrator resets all verifications. */
  forgetTokens(): void {
    this.#tokens.clear();
  }

  /** Whether the connection for this request fails. */
  isAway(path: string): boolean {
    return isAway(this.weather, path, this.random);
  }

  receive(request: Incoming): Outcome {
    const call = this.#read(request);
    const { entry } = call;
    this.onRequest(entry);
    const { weather, random } = this;
    const mood = drawMood(weather, entry, random);
    if (mood !== undefined) entry.mood = mood;
    const outcome = outcomeOf(entry, {
      weather,
      random,
      answer: () => this.#answer(call),
      refuse: (reason, headers) => refusalAnswer(this.#nowMs(), reason, headers),
    });
    if (outcome.answer !== undefined && outcome.cutAt !== "head") {
      entry.status = outcome.answer.status;
      if (entry.operation === "list" && entry.status === 400) this.hasHidden = true;
      if (outcome.answer.errorCode !== undefined) entry.errorCode = outcome.answer.errorCode;
      const retryAfter = outcome.answer.headers["retry-after"];
      if (retryAfter !== undefined) entry.retryAfter = retryAfter;
    }
    return outcome;
  }

  // Requests

  #read({ process, origin, method, path: target, headers, body }: Incoming): Call {
    const [path = "", text = ""] = target.split("?", 2);
    const query = new URLSearchParams(text);
    const segments = segmentsOf(path, this.#basePath);
    const [area, name] = segments;
    const transferId = area === "transfers" ? name : undefined;
    const entry: RequestEntry = {
      atMs: this.#nowMs(),
      process,
      service: this.number,
      origin,
      method,
      path,
      query: text,
      operation: operationOf(method, segments, this.#hasPath("files")),
      transferId,
      trackingId: this.#byTransferId.get(transferId ?? "")?.held.transfer.trackingId,
      address: area === "users" ? name : undefined,
      fields: query.get("fields") ?? undefined,
      password: passwordOf(headers, query),
      token: headers["x-cs-verificationtoken"] ?? query.get("verification-token") ?? undefined,
      clientId: headers["x-cs-clientid"] ?? query.get("client-id") ?? undefined,
    };
    return { entry, headers, body, query, segments };
  }

  #hasPath(kind: "short" | "files"): boolean {
    const { paths = "short" } = this.habits;
    return paths === kind || paths === "both";
  }

  // Answers

  #answer(call: Call): Answer {
    try {
      return this.#act(call);
    } catch (error) {
      if (error instanceof Refusal) return refusalAnswer(this.#nowMs(), error.reason, error.headers);
      throw error;
    }
  }

  #act(call: Call): Answer {
    const { entry, segments } = call;
    if (entry.operation === "status") return this.#json({ apiVersions: { uiApiVersions: [VERSION] } });
    if (segments.length === 0) return htmlPage(404);
    this.#checkHeaders(call);
    switch (entry.operation) {
      case "list":
        return this.#list(call);
      case "token":
        return this.#issueToken(call);
      case "information":
        return this.#information(this.#open(call), call);
      case "files":
        return this.#listFiles(this.#open(call), call);
      case "file":
        return this.#sendFile(this.#open(call), call);
      case "zip":
      case "eml":
      case "checksums":
        if (segments.length === 3 && !this.#hasPath("short")) throw new Refusal("noSuchEndpoint");
        return this.#sendSpecial(entry.operation, this.#open(call), call);
      default:
        return this.#actOtherwise(call);
    }
  }

  #actOtherwise({ entry, segments }: Call): Answer {
    const isVerification = segments[0] === "users" && segments[2] === "verification" && segments.length === 3;
    if (entry.method !== "GET" || !isVerification) throw new Refusal("noSuchEndpoint");
    const { address = "", token, clientId } = entry;
    const isRegistered = clientId === this.#clientId;
    const verified = isRegistered && token !== undefined && this.#isValid(token, address);
    const untilMs = this.#tokens.get(token ?? "")?.untilMs ?? Number.POSITIVE_INFINITY;
    const validUntil = verified && Number.isFinite(untilMs) ? formatDate(untilMs) : null;
    const verificationMethods = isRegistered ? ["CLIENT_ID", "EMAIL"] : ["EMAIL"];
    return this.#json({ data: { verified, validUntil, verificationMethods }, meta: {} });
  }

  /** Of every request but that for the status. */
  #checkHeaders({ headers, query, entry }: Call): void {
    const given = (header: string, twin: string) => {
      const value = headers[header] ?? query.get(twin) ?? "";
      if (value === "") throw new Refusal("parameterMissing");
      return value;
    };
    const major = parseInteger(given("x-cs-majorapiversion", "major-api-version"));
    const minor = parseInteger(given("x-cs-minimumminorapiversion", "minimum-minor-api-version"));
    if (given("x-cs-productkey", "product-key") !== "api.rest") throw new Refusal("badValue");
    if (entry.clientId === undefined) throw new Refusal("parameterMissing");
    if (!CLIENT_ID.test(entry.clientId)) throw new Refusal("badValue");
    if (major !== VERSION.major || minor > VERSION.minor) throw new Refusal("versionNotServed");
  }

  #issueToken({ entry: { address = "", clientId }, body }: Call): Answer {
    // No code was ever mailed.
    if (body.trim() !== "") throw new Refusal("tokenRefused");
    if (clientId !== this.#clientId) throw new Refusal("policyRefused");
    const { tokenMs = Number.POSITIVE_INFINITY, tokenLimit } = this.habits;
    if (tokenLimit !== undefined) {
      const [freeMs = 0] = this.#issuedMs.slice(-tokenLimit.count).map((ms) => ms + tokenLimit.ms);
      const waitMs = this.#issuedMs.length < tokenLimit.count ? 0 : freeMs - this.#nowMs();
      const headers = tokenLimit.saysUntil ? { "retry-after": String(Math.ceil(waitMs / 1_000)) } : {};
      if (waitMs > 0) throw new Refusal("tooManyRequests", headers);
      this.#issuedMs.push(this.#nowMs());
    }
    const untilMs = this.#nowMs() + tokenMs;
    const token = `Token-${this.number}-${++this.#tokenCount}-${this.random.int(2 ** 32).toString(36)}`;
    this.#tokens.set(token, { address: foldAddress(address), untilMs });
    const validUntil = Number.isFinite(untilMs) ? formatDate(untilMs) : null;
    return this.#json({ data: { token, validUntil }, meta: {} });
  }

  #isValid(token: string, address: string): boolean {
    if (this.#fixedTokens.has(token)) return true;
    const issued = this.#tokens.get(token);
    return issued !== undefined && issued.address === foldAddress(address) && this.#nowMs() < issued.untilMs;
  }

  #list({ entry, query }: Call): Answer {
    const { address: email = "", token = "", clientId, mood } = entry;
    const { habits, url } = this;
    if (clientId !== this.#clientId || !this.#isValid(token, email)) throw new Refusal("tokenRefused");
    const fields = entry.fields ?? DEFAULT_FIELDS;
    const selection = selectionOf(fields, habits.refusesFields === true);
    const asked = integerOf(query, "page", 1);
    // The page before comes again.
    const page = mood === "cutting" && asked > 1 ? asked - 1 : asked;
    const largest = Math.min(LARGEST_PAGE_SIZE, habits.pageCap ?? LARGEST_PAGE_SIZE);
    const size = Math.min(integerOf(query, "page-size", DEFAULT_PAGE_SIZE), largest);
    const active = booleanOf(query, "active");
    const address = foldAddress(email);
    const listed = this.#held.flatMap((held) => {
      const state = this.stateOf(held.transfer);
      const isActive =
        habits.ignoresActive === true || active === undefined || active === (state === "active");
      const isMine = held.recipients.some((recipient) => recipient.address === address);
      if (state === "unsent" || !isMine || !isActive) return [];
      const view = { habits, url, address, state: this.#wordOf(state), fields, selection };
      return mood === "forgetful" && this.random.chance(0.5) ? [] : [() => entryOf(held, view)];
    });
    const entries = listed.slice((page - 1) * size, page * size).map((write) => write());
    const shown = mood === "stripping" ? this.#strip(entries) : entries;
    const text = `{"data":[${shown.join(",")}],"meta":{}}`;
    if (mood !== "cutting" || asked > 1) return this.#json(text);
    return { ...this.#json(text.slice(0, 1 + this.random.int(text.length - 1))), isOwn: false };
  }

  /** Services write states in two ways. */
  #wordOf(state: TransferState): string {
    return this.number % 2 === 0 ? state.charAt(0).toUpperCase() + state.slice(1) : state.toUpperCase();
  }

  /** An intermediary removes one field from some entries, or always the same one from all. */
  #strip(entries: readonly string[]): readonly string[] {
    const { strips } = this.weather;
    const what = strips ?? this.random.pick(["mode", "message", "recipients", "addressees"] as const);
    this.hasHidden ||= what === "mode" || what === "addressees";
    return entries.map((text) => {
      if (strips === undefined && this.random.chance(0.3)) return text;
      const { status = {}, transfer = {}, ...rest } = JSON.parse(text);
      if (what === "mode") delete transfer.securityMode;
      if (what === "message") delete transfer.confidentialMessageFileId;
      if (what === "recipients") delete status.recipients;
      if (what === "addressees") delete transfer.recipients;
      return JSON.stringify({ ...rest, status, transfer });
    });
  }

  /** The transfer of a request, if its password opens it. Counts wrong passwords. */
  #open({ entry }: Call): StoredTransfer {
    const { transferId = "", password } = entry;
    const found = this.#byTransferId.get(transferId);
    if (found === undefined) throw new Refusal("noSuchEntity");
    const { transfer } = found.held;
    transfer.opened++;
    const state = this.stateOf(transfer);
    if (["unsent", "processing", "pending", "failed"].includes(state)) throw new Refusal("noSuchEntity");
    if (state !== "active" && state !== "unknown") throw new Refusal("transferDeleted");
    const unsupported = UNSUPPORTED[transfer.securityMode ?? ""];
    if (unsupported !== undefined) {
      if (password !== undefined) entry.verdict = "unsupported";
      throw new Refusal(unsupported);
    }
    if (password === undefined) throw new Refusal("parameterMissing");
    const lockedUntilMs = transfer.lockedUntilMs.get(transferId) ?? 0;
    if (this.#nowMs() < lockedUntilMs) throw this.#locked(entry, lockedUntilMs);
    if (password !== transfer.password) throw this.#countWrong(transfer, transferId, entry);
    entry.verdict = "accepted";
    return transfer;
  }

  #countWrong(transfer: StoredTransfer, transferId: string, entry: RequestEntry): Refusal {
    const { onWrong = { after: DELETES_AFTER } } = this.habits;
    transfer.wrong++;
    entry.isWrong = true;
    const isLocking = onWrong.lockMs !== undefined;
    const wrong = isLocking ? (this.#wrong.get(transferId) ?? 0) + 1 : transfer.wrong;
    this.#wrong.set(transferId, wrong);
    if (wrong < onWrong.after) {
      entry.verdict = "refused";
      return new Refusal("passwordRefused");
    }
    if (onWrong.lockMs === undefined) {
      transfer.state = "deleted_by_security";
      entry.verdict = "deleted";
      return new Refusal("transferDeleted");
    }
    const untilMs = this.#nowMs() + onWrong.lockMs;
    transfer.lockedUntilMs.set(transferId, untilMs);
    this.#wrong.delete(transferId);
    return this.#locked(entry, untilMs);
  }

  #locked(entry: RequestEntry, untilMs: number): Refusal {
    entry.verdict = "locked";
    // What it says may be shorter than what it does.
    const seconds = Math.ceil((this.habits.onWrong?.saysMs ?? untilMs - this.#nowMs()) / 1_000);
    const headers = this.habits.onWrong?.saysUntil ? { "retry-after": String(seconds) } : {};
    return new Refusal("transferLocked", headers);
  }

  #information(transfer: StoredTransfer, { entry }: Call): Answer {
    const { files, message } = transfer;
    const bytes = files.reduce((sum, { bytes: each }) => sum + each.length, message?.length ?? 0);
    const totalSize = entry.mood === "lying" ? Math.floor(bytes / 4) : bytes;
    return this.#json({ data: { totalSize, checksumAlgorithm: algorithmOf(transfer) }, meta: {} });
  }

  #listFiles(transfer: StoredTransfer, { entry }: Call): Answer {
    const lie = entry.mood === "lying" ? this.random.pick(["size", "checksum"] as const) : undefined;
    const { transferId, clientId = "", password = "" } = entry;
    const hasSums = transfer.files.some((file) => listedChecksum(transfer, file) !== "");
    if (lie === "checksum" && hasSums) entry.isFalse = true;
    const query = `client-id=${clientId}&product-key=api.rest&password=${encodeURIComponent(password)}`;
    const data = transfer.files.map((file, at) => {
      const checksum = listedChecksum(transfer, file);
      return {
        id: file.id,
        fileName: file.name,
        size: file.bytes.length + (lie === "size" ? 1 + at : 0),
        checksum: checksum === "" ? "" : sumOf(transfer.files, at, lie === "checksum"),
        href: `/api/transfers/${transferId}/files/${file.id}?${query}`,
      };
    });
    return this.#json({ data, meta: {} });
  }

  #sendFile(transfer: StoredTransfer, { segments, entry, headers }: Call): Answer {
    const id = segments[3] ?? "";
    const { message } = transfer;
    const file = transfer.files.find((each) => each.id === id);
    const isMessage = message !== undefined && id === messageFileId(transfer);
    if (file === undefined && !isMessage) throw new Refusal("noSuchEntity");
    if (file === undefined) return this.#content("text/html", messageFileOf(message ?? NOTHING), headers);
    const bytes = this.#bytesOf(file);
    const sent = entry.mood === "lying" ? this.#falsify(bytes) : bytes;
    return this.#content("application/octet-stream", sent, headers, `"${file.sha256}"`);
  }

  #sendSpecial(kind: "zip" | "eml" | "checksums", transfer: StoredTransfer, call: Call): Answer {
    const { headers, query, entry } = call;
    const isLying = entry.mood === "lying";
    if (kind === "eml") {
      const threshold = query.get("threshold");
      if (threshold !== null && !isThreshold(threshold, this.habits)) throw new Refusal("badValue");
      if (transfer.message === undefined) throw new Refusal("noSuchEntity");
      const eml = threshold === null ? withFiles(transfer.message, transfer.files) : transfer.message;
      return this.#content("message/rfc822", eml, headers);
    }
    const language = chooseLanguage(headers["accept-language"], ["en", "de"]);
    const csv = () => checksumsCsv(transfer, language, isLying);
    const hasSums = transfer.checksums === undefined || transfer.checksums === "csv";
    if (kind === "checksums" && isLying && hasSums && transfer.files.length > 0) entry.isFalse = true;
    if (kind === "checksums") return this.#own("text/csv; charset=utf-8", Buffer.from(csv()));
    const ids = chooseFiles(transfer, query);
    const extra = booleanOf(query, "include-checksum-file") === true ? csv() : undefined;
    const zip = zipOf(transfer, ids, (file) => this.#bytesOf(file), extra);
    return this.#content("application/zip", isLying ? this.#falsify(zip) : zip, headers);
  }

  #bytesOf({ id, bytes }: SentFile): Buffer {
    return this.damaged.has(id) ? Buffer.alloc(bytes.length, "x") : bytes;
  }

  #falsify(bytes: Buffer): Buffer {
    const lie = this.random.pick(["other", "more", "fewer"] as const);
    if (lie === "more") return Buffer.concat([bytes, Buffer.alloc(1 + this.random.int(20), "?")]);
    if (lie === "fewer") return bytes.subarray(0, this.random.int(bytes.length));
    const other = Buffer.from(bytes);
    const at = this.random.int(other.length);
    if (other.length > 0) other[at] = (other[at] ?? 0) ^ 1;
    return other;
  }

  #content(type: string, bytes: Buffer, asked: Call["headers"], etag?: string): Answer {
    const whole = { ...this.#own(type, bytes), isContent: true };
    if (etag === undefined) return whole;
    const headers = { ...whole.headers, etag, "accept-ranges": "bytes" };
    const { range } = asked;
    if (range === undefined || !wantsRange(asked, etag, "honour")) return { ...whole, headers };
    const plan = planRange(range, bytes.length, "honour");
    if (plan === "whole") return { ...whole, headers };
    if (plan === "unsatisfiable") {
      return {
        status: 416,
        headers: { "content-range": `bytes */${bytes.length}` },
        body: NOTHING,
        isOwn: false,
      };
    }
    const { start, end } = plan.sent;
    const part = this.#own(type, bytes.subarray(start, end));
    const contentRange = `bytes ${start}-${end - 1}/${bytes.length}`;
    return {
      ...part,
      isContent: true,
      status: 206,
      headers: { ...headers, ...part.headers, "content-range": contentRange },
    };
  }

  #json(value: unknown): Answer {
    return jsonAnswer(this.#nowMs(), value);
  }

  #own(type: string, body: Buffer): Answer {
    return ownAnswer(this.#nowMs(), type, body);
  }
}

/** The message, with the files as further parts. */
function withFiles(message: Buffer, files: readonly SentFile[]): Buffer {
  const end = message.lastIndexOf("\r\n--part--");
  if (end < 0) return message;
  const parts = files.map(({ id, bytes }) =>
    Buffer.from(
      `\r\n--part\r\nContent-Disposition: attachment; filename="${id}"\r\nContent-Transfer-Encoding: base64\r\n\r\n${bytes.toString("base64")}`,
    ),
  );
  return Buffer.concat([message.subarray(0, end), ...parts, message.subarray(end)]);
}

function isThreshold(text: string, { wholeThreshold, noThreshold }: ServiceHabits): boolean {
  return !noThreshold && (wholeThreshold ? /^\d+$/ : /^\d+(\.\d+)?$/).test(text);
}

/** Of the ZIP. */
function chooseFiles({ files }: SentTransfer, query: URLSearchParams): ReadonlySet<string> {
  const isInclude = booleanOf(query, "is-customized-files-ids-include") ?? true;
  const named = query.getAll("customized-files-ids").flatMap((list) => list.split(","));
  const ids = new Set(named.map((id) => id.trim()).filter((id) => id !== ""));
  if (ids.size === 0) return new Set(files.map(({ id }) => id));
  if ([...ids].some((id) => !files.some((file) => file.id === id))) throw new Refusal("noSuchEntity");
  return new Set(files.flatMap(({ id }) => (ids.has(id) === isInclude ? [id] : [])));
}
