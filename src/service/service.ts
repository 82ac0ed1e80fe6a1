/** Opens the client of one transfer service. */
import { Fault } from "../base/faults.ts";
import { Secret } from "../base/secret.ts";
import { serviceIdOf } from "../model/mailbox.ts";
import type { TransferFile } from "../model/transfer.ts";
import type { Bandwidth } from "./bandwidth.ts";
import { EmptyAnswer, readAtMost } from "./bodies.ts";
import { type ChecksumReport, parseChecksums } from "./checksums.ts";
import { createDownloads, type Download, type IdListForm, type TransferAccess } from "./downloads.ts";
import { type Call, type HttpOptions, openHttp } from "./http.ts";
import { Pace } from "./pace.ts";
import {
  allPages,
  LARGEST_PAGE_SIZE,
  type PageQuery,
  type PollQuery,
  pagesThatFit,
  pollLegacy,
  pollTransfers,
  type VerifiedAddress,
} from "./polling.ts";
import { type Facts, Ways } from "./ways.ts";
import * as wire from "./wire.ts";

export interface ServiceOptions extends HttpOptions {
  readonly idListForm: IdListForm;
  /** Shared by the downloads of all services. */
  readonly bandwidth?: Pick<Bandwidth, "take"> | undefined;
  /** Missing: what is found out is kept for this process only. */
  readonly facts?: Facts;
}

const PACKS = ["products", "api.rest", "language-packs"];

export type ServicePort = ReturnType<typeof openService>;

/**
 * Every method but `listReceived` sends one request, or two if an older service uses another path. None but `obtainToken` retries: the
 * caller knows whether a retry is safe. Every failure is a `Fault`. `signal` aborts the request with the fault `STOPPED`.
 * Secrets are passed as `Secret`, and sent only to the configured origin.
 */
export function openService(options: ServiceOptions) {
  const http = openHttp(options);
  const id = serviceIdOf(options.baseUrl);
  const tokenPace = new Pace();
  /** The page size that fits, by address. Missing while full pages fit. */
  const pageSizes = new Map<string, number>();
  const ask = async <Value>(decode: wire.Decoder<Value>, call: Call, signal: AbortSignal) =>
    decode(await http.json(call, signal), call.what);
  /** `undefined` for a service before version 1.13. */
  const apiVersions = (signal: AbortSignal) =>
    ask(wire.decodeStatus, { what: "the server status", path: ["status"], anonymous: true }, signal).catch(
      (error: unknown) => {
        const absent = ["NO_SUCH_ENDPOINT", "NOT_FOUND", "API_VERSION"];
        if (error instanceof Fault && absent.includes(error.code)) return undefined;
        throw error;
      },
    );
  const ways = new Ways(id, apiVersions, options.facts);
  const downloads = createDownloads(http, options.idListForm, options.bandwidth, ways);

  return {
    /** Made from its base URL. Equal for all clients of the service. */
    id,

    pollReceived: (address: VerifiedAddress, query: PollQuery, signal: AbortSignal) =>
      pollTransfers(http, "received", address, query, signal),
    /**
     * Yields each received transfer once, page by page, except those that `isKnown` names by tracking-id. Entries that
     * cannot be decoded go to `onRejected`. The list is complete only if the iteration ends without a fault.
     */
    async *listReceived(
      address: VerifiedAddress,
      query: Omit<PollQuery, keyof PageQuery>,
      onRejected: (entry: wire.Rejected) => void,
      signal: AbortSignal,
      isKnown?: (trackingId: string) => boolean,
    ) {
      const { email } = address;
      const list = (pageSize: number) => {
        if (pageSize < LARGEST_PAGE_SIZE) pageSizes.set(email, pageSize);
        const fetchPage = (page: number) =>
          pollTransfers(http, "received", address, { ...query, pageSize, page }, signal, isKnown);
        return allPages(fetchPage, onRejected, pageSize);
      };
      yield* pagesThatFit(pageSizes.get(email) ?? LARGEST_PAGE_SIZE, list);
    },
    pollSent: (address: VerifiedAddress, query: PollQuery, signal: AbortSignal) =>
      pollTransfers(http, "sent", address, query, signal),
    /** Deprecated: exists in versions 1.x only. */
    pollSentLegacy: (address: VerifiedAddress, query: PageQuery, signal: AbortSignal) =>
      pollLegacy(http, address, query, signal),

    ...downloads,

    information({ transferId, password }: TransferAccess, signal: AbortSignal) {
      const path = ["transfers", transferId];
      const call = { what: "the transfer's information", path, password, isAttempt: true };
      return ask(wire.decodeInformation, call, signal);
    },
    /** `onCount` is called with the number of files after each, and may throw to stop. */
    async files(
      { transferId, password }: TransferAccess,
      signal: AbortSignal,
      onCount?: (count: number) => void,
    ): Promise<readonly TransferFile[]> {
      const what = "the list of files";
      const files: TransferFile[] = [];
      const ids = new Set<string>();
      await http.entries({ what, path: ["transfers", transferId, "files"], password }, signal, (entry) => {
        const file = wire.decodeFile(entry, `${what}, entry ${files.length + 1}`);
        files.push(file);
        if (ids.size === ids.add(file.id).size) {
          throw new Fault("BAD_ANSWER", { detail: `${what}: two files have the same id` });
        }
        onCount?.(files.length);
      });
      return files;
    },
    /** The checksums CSV, parsed and matched to the file list. Requested before the list has arrived; throws its failure. */
    async checksums(
      access: TransferAccess,
      listing: readonly TransferFile[] | Promise<readonly TransferFile[]>,
      signal: AbortSignal,
    ) {
      const download = await downloads.openChecksums(access, signal);
      try {
        return await readChecksums(download, await listing);
      } finally {
        download.cancel();
      }
    },

    async generatePassword(signal: AbortSignal) {
      const call = { what: "a generated password", path: ["password"] };
      return new Secret((await ask(wire.decodeGeneratedPassword, call, signal)).password);
    },
    checkPassword(password: Secret, signal: AbortSignal) {
      const json = { password: password.reveal() };
      const secrets = [password];
      const call = { what: "the check of a password", method: "POST", path: ["password"] } as const;
      return ask(wire.decodeCheck, { ...call, json, secrets }, signal);
    },
    passwordRules: (signal: AbortSignal) =>
      ask(wire.decodeRules, { what: "the password rules", path: ["password", "requirements"] }, signal),

    languagePacks(majorVersion: number | undefined, signal: AbortSignal) {
      const query = [["major-version", majorVersion] as const];
      return ask(wire.decodeLanguagePacks, { what: "the language packs", path: PACKS, query }, signal);
    },
    languagePack: (id: string, signal: AbortSignal) =>
      ask(wire.decodeLanguagePack, { what: `the language pack ${id}`, path: [...PACKS, id] }, signal),

    /** With a token: whether that token is still valid. */
    verification(email: string, token: Secret | undefined, signal: AbortSignal) {
      const path = ["users", email, "verification"];
      return ask(wire.decodeVerification, { what: `the verification of ${email}`, path, token }, signal);
    },
    /** Makes the service send a code to the address. */
    async mailVerificationCode(email: string, signal: AbortSignal): Promise<void> {
      const path = ["users", email, "verification", "code", "email"];
      const call = { what: `a verification code for ${email}`, method: "POST", path } as const;
      await http.json(call, signal).catch((error: unknown) => {
        if (!(error instanceof EmptyAnswer)) throw error;
      });
    },
    /** Without a code the client id must be registered by an administrator; the request waits for its turn, and may be repeated. */
    obtainToken(email: string, code: Secret | undefined, signal: AbortSignal) {
      const path = ["users", email, "verification", "token"];
      const call = { what: `a verification token for ${email}`, method: "POST", path } as const;
      const proof = code && { json: { verificationCode: code.reveal() }, secrets: [code] };
      const send = () => ask(wire.decodeToken, { ...call, ...proof }, signal);
      // A person who types a code does not wait.
      return code === undefined ? tokenPace.run(send, signal) : send();
    },
    /** A new client id, made by the service. */
    async requestClientId(signal: AbortSignal) {
      const call = { what: "a client id", path: ["clients"], anonymous: true };
      return new Secret((await ask(wire.decodeClientId, call, signal)).clientId);
    },

    apiVersions,
    askVersion: ways.askVersion.bind(ways),

    ownAnswers: http.ownAnswers,
    clockAheadMs: http.clockAheadMs,
    close: http.close,
  };
}

/** The largest checksums CSV, its largest subject line, and the share of a row: its checksum, and each character of a name. */
const CHECKSUM_BYTES = { max: 8 * 1024 * 1024, subject: 256 * 1024, checksum: 256, nameCharacter: 3 };

async function readChecksums(
  { body, contentType }: Download,
  files: readonly TransferFile[],
): Promise<ChecksumReport> {
  const { max, subject, checksum, nameCharacter } = CHECKSUM_BYTES;
  const rows = files.reduce((sum, { name }) => sum + checksum + name.length * nameCharacter, 0);
  const maxBytes = Math.min(max, subject + rows);
  const bytes = await readAtMost(body, maxBytes);
  if (bytes === undefined) {
    const detail = `more than ${maxBytes} bytes for ${files.length} files`;
    throw new Fault("CHECKSUMS_UNREADABLE", { detail });
  }
  return parseChecksums(bytes, contentType, files);
}
