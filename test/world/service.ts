/** The transfer service of a world: what it holds, what it answers, and what it counts. */
import { createHash } from "node:crypto";
import { whenAborted } from "../../src/base/deadline.ts";
import type { FaultCode } from "../../src/base/fault-codes.ts";
import { type AnsweredBy, Fault, type FaultDetails } from "../../src/base/faults.ts";
import { Secret } from "../../src/base/secret.ts";
import { canonicalAddress, type ListedTransfer, type TransferState } from "../../src/model/transfer.ts";
import type { Download, ServicePort, TransferAccess } from "../../src/service/port.ts";
import type { Plan } from "./plan.ts";
import type { Process } from "./process.ts";
import type { Random } from "./random.ts";

export interface SentFile {
  readonly id: string;
  readonly name: string;
  readonly bytes: Buffer;
  /** Of what the sender sent. The service may hold damaged bytes. */
  readonly sha256: string;
  /** The members of an archive that Inlet may unpack. */
  readonly members?: readonly { readonly name: string; readonly bytes: Buffer }[];
}

export interface SentTransfer {
  readonly trackingId: string;
  readonly sender: string;
  readonly subject: string;
  readonly recipients: readonly string[];
  readonly password: string;
  readonly files: readonly SentFile[];
  readonly message: Buffer | undefined;
  readonly zip: Buffer;
  readonly expiresMs: number;
  /** Missing: one-time passwords. */
  readonly securityMode?: string;
  /** The message's row in the checksums file has the checksum of its file, or of the EML. */
  readonly messageRow?: "file" | "eml";
  state: TransferState | "unsent";
  /** Wrong passwords that the service received. */
  wrong: number;
  /** Requests with a password. */
  opened: number;
}

/** How the service differs from others. */
export interface ServiceHabits {
  /** Lists have transfers in every state, also those that are still processed. */
  readonly ignoresActive: boolean;
  /** A threshold that is not a whole number is answered with "not found". */
  readonly wholeThreshold: boolean;
  /** Lists do not say whether there is a message. */
  readonly hidesMessages: boolean;
}

const USUAL: ServiceHabits = { ignoresActive: false, wholeThreshold: false, hidesMessages: false };

/** How the service behaves now. */
export const MOODS = ["fine", "away", "failing", "lossy", "limiting", "foreign", "forgetful"] as const;
/** `silent`: no request is ever answered. */
export type Mood = (typeof MOODS)[number] | "silent";

export class SimulatedService {
  mood: Mood = "fine";
  /** The file of this name arrives with other bytes. */
  damaged: string | undefined;
  readonly transfers: readonly SentTransfer[];
  readonly habits: ServiceHabits;
  /** Called with each password that arrives. */
  onPassword: (transfer: SentTransfer, password: string | undefined) => void = () => {};
  readonly #random: Random;
  readonly #nowMs: () => number;

  constructor(
    { transfers, habits = USUAL }: Pick<Plan, "transfers" | "habits">,
    random: Random,
    nowMs: () => number,
  ) {
    this.transfers = transfers;
    this.habits = habits;
    this.#random = random;
    this.#nowMs = nowMs;
  }

  /** The service as one process sees it. */
  open(process: Process, id: string): ServicePort {
    return new Connection(this, this.#random, process, id).port();
  }

  stateOf(transfer: SentTransfer): TransferState | "unsent" {
    if (transfer.state === "active" && this.#nowMs() >= transfer.expiresMs) return "deleted_by_expiration";
    return transfer.state;
  }
}

const MESSAGE_FILE = "message-file";

/** The file from which the service makes the EML. */
function fileOfMessage(message: Buffer): Buffer {
  return Buffer.concat([Buffer.from("<p>"), message]);
}

function messageFacts({ message }: SentTransfer, { hidesMessages }: ServiceHabits) {
  if (hidesMessages) return { messageFile: undefined, messageFileId: undefined };
  if (message === undefined) return { messageFile: "none", messageFileId: undefined } as const;
  return { messageFile: "present", messageFileId: MESSAGE_FILE } as const;
}

function transferIdOf(trackingId: string, address: string): string {
  return createHash("sha256")
    .update(`${trackingId} ${canonicalAddress(address)}`)
    .digest("hex")
    .slice(0, 10);
}

class Connection {
  readonly #service: SimulatedService;
  readonly #random: Random;
  readonly #process: Process;
  readonly #id: string;
  #ownAnswers = 0;

  constructor(service: SimulatedService, random: Random, process: Process, id: string) {
    this.#service = service;
    this.#random = random;
    this.#process = process;
    this.#id = id;
  }

  port(): ServicePort {
    const connection = this;
    const port: Partial<ServicePort> = {
      id: this.#id,
      async *listReceived({ email }, { active }, _onRejected, signal, isKnown) {
        yield (await connection.#list(email, active, signal)).filter(
          ({ trackingId }) => isKnown?.(trackingId) !== true,
        );
      },
      pollReceived: async ({ email }, { active }, signal) => ({
        entries: await connection.#list(email, active, signal),
        known: [],
        rejected: [],
      }),
      information: (access, signal) =>
        connection.#ask(signal, () => {
          const { files, message } = connection.#unlock(access);
          const totalBytes = files.reduce((sum, { bytes }) => sum + bytes.length, message?.length ?? 0);
          return { totalBytes, algorithm: "SHA-256" };
        }),
      files: (access, signal, onCount) =>
        connection.#ask(signal, () => {
          const { files } = connection.#unlock(access);
          onCount?.(files.length);
          return files.map(({ id, name, bytes, sha256 }) => ({
            id,
            name,
            bytes: bytes.length,
            checksum: sha256,
          }));
        }),
      checksums: async (access, listing, signal) => {
        const files = await listing;
        return connection.#ask(signal, () => {
          const { subject, files: sent, message, messageRow } = connection.#unlock(access);
          const checksumOf = (id: string) => sent.find((file) => file.id === id)?.sha256 ?? "";
          const rows = files.map(({ id, name }) => {
            return [id, { name, checksum: { value: checksumOf(id), algorithm: "SHA-256" } }] as const;
          });
          const text = messageRow === "eml" ? message : message && fileOfMessage(message);
          const value = createHash("sha256")
            .update(text ?? "")
            .digest("hex");
          const ofMessage = { name: "message", checksum: { value, algorithm: "SHA-256" } };
          const unlisted = text === undefined || messageRow === undefined ? [] : [ofMessage];
          return { subject, byFileId: new Map(rows), unlisted, missing: [] };
        });
      },
      openFile: (access, { id }, { resume }, signal) =>
        connection.#ask(signal, () => {
          const { files, message } = connection.#unlock(access);
          if (id === MESSAGE_FILE && message !== undefined) {
            return connection.#download(fileOfMessage(message), 0);
          }
          const file = files.find((each) => each.id === id);
          if (file === undefined) throw connection.#word("NOT_FOUND");
          const isDamaged = file.name === connection.#service.damaged;
          const bytes = isDamaged ? Buffer.alloc(file.bytes.length, "x") : file.bytes;
          return connection.#download(bytes, resume?.offset ?? 0);
        }),
      openZip: (access, _options, signal) =>
        connection.#ask(signal, () => connection.#download(connection.#unlock(access).zip, 0)),
      openEml: (access, { thresholdMegabytes }, signal) =>
        connection.#ask(signal, () => {
          const { message } = connection.#unlock(access);
          const isRefused = connection.#service.habits.wholeThreshold && thresholdMegabytes !== undefined;
          if (message === undefined || isRefused) throw connection.#word("NOT_FOUND");
          return connection.#download(message, 0);
        }),
      obtainToken: async () => ({ token: new Secret("Token-0"), validUntil: undefined }),
      apiVersions: (signal) => connection.#ask(signal, () => [{ major: 1, minor: 13 }]),
      ownAnswers: () => connection.#ownAnswers,
      clockAheadMs: () => 0,
      close: async () => {},
    };
    return port as ServicePort;
  }

  async #arrive(signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw new Fault("STOPPED", { answeredBy: "unsent" });
    await this.#process.wait(this.#random.int(100));
    if (this.#service.mood === "silent") await whenAborted(signal);
    if (signal.aborted) throw new Fault("STOPPED", { answeredBy: "none" });
  }

  /** One request: it takes time, the mood may spoil it, and the answer may be lost after the service has acted. */
  async #ask<Answer>(signal: AbortSignal, answer: () => Answer): Promise<Answer> {
    await this.#arrive(signal);
    const { mood } = this.#service;
    const isSpoilt = mood !== "fine" && this.#random.chance(mood === "away" ? 1 : 0.4);
    if (isSpoilt && mood === "away") throw word("SERVICE_UNREACHABLE", "unsent");
    if (isSpoilt && mood === "failing") {
      throw word("SERVER_FAULT", this.#random.chance(0.5) ? "service" : "intermediary");
    }
    if (isSpoilt && mood === "limiting") throw word("RATE_LIMITED", "service", { retryAfterMs: 20_000 });
    if (isSpoilt && mood === "foreign") throw word("BAD_ANSWER", "intermediary");
    const result = answer();
    await this.#process.wait(this.#random.int(50));
    if (isSpoilt && mood === "lossy") {
      throw word(this.#random.chance(0.5) ? "SERVICE_TIMEOUT" : "CONNECTION_LOST", "none");
    }
    this.#ownAnswers++;
    return result;
  }

  #list(email: string, active: boolean | undefined, signal: AbortSignal): Promise<ListedTransfer[]> {
    return this.#ask(signal, () => {
      const isForgotten = () => this.#service.mood === "forgetful" && this.#random.chance(0.5);
      return this.#service.transfers.flatMap((transfer) => {
        const state = this.#service.stateOf(transfer);
        const mail = transfer.recipients.find((each) => canonicalAddress(each) === canonicalAddress(email));
        if (state === "unsent" || mail === undefined || isForgotten()) return [];
        const isWanted = state === "active" || active !== true || this.#service.habits.ignoresActive;
        if (!isWanted) return [];
        const { trackingId, sender, subject, expiresMs } = transfer;
        const transferId = transferIdOf(trackingId, mail);
        const recipient = {
          mail,
          transferId,
          downloadUrl: new Secret(`https://s/download?id=${transferId}`),
        };
        const entry: ListedTransfer = {
          trackingId,
          state,
          sender,
          subject,
          recipients: [recipient],
          to: [mail],
          cc: [],
          expires: new Date(expiresMs),
          passwordMode: "MANUAL",
          securityMode: transfer.securityMode ?? "ONE_TIME_PASSWORD",
          ...messageFacts(transfer, this.#service.habits),
        };
        return [entry];
      });
    });
  }

  #unlock({ transferId, password }: TransferAccess): SentTransfer {
    const transfer = this.#service.transfers.find(({ trackingId, recipients }) =>
      recipients.some((address) => transferIdOf(trackingId, address) === transferId),
    );
    if (transfer === undefined) throw this.#word("NOT_FOUND");
    transfer.opened++;
    this.#service.onPassword(transfer, password?.reveal());
    const state = this.#service.stateOf(transfer);
    const isThere = state !== "unsent" && state !== "processing";
    if (state !== "active") throw this.#word(isThere ? "TRANSFER_DELETED" : "NOT_FOUND");
    if (password?.reveal() === transfer.password) return transfer;
    transfer.wrong++;
    throw this.#word("PASSWORD_REFUSED");
  }

  #word(code: FaultCode): Fault {
    this.#ownAnswers++;
    return word(code, "service");
  }

  #download(content: Buffer, offset: number): Download {
    const connection = this;
    const cutAt = this.#service.mood === "lossy" ? offset + this.#random.int(content.length + 1) : undefined;
    return {
      offset,
      totalBytes: content.length,
      etag: undefined,
      canResume: true,
      contentType: "application/octet-stream",
      body: (async function* () {
        const middle = offset + Math.floor((content.length - offset) / 2);
        for (const [from, to] of [
          [offset, middle],
          [middle, content.length],
        ] as const) {
          await connection.#process.wait(connection.#random.int(50));
          if (cutAt !== undefined && to > cutAt) {
            yield content.subarray(from, Math.max(from, cutAt));
            throw word("CONNECTION_LOST", "none");
          }
          if (to > from) yield content.subarray(from, to);
        }
      })(),
      cancel: () => {},
    };
  }
}

function word(code: FaultCode, answeredBy: AnsweredBy, more: FaultDetails = {}): Fault {
  return new Fault(code, { answeredBy, ...more });
}
