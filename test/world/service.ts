/** The transfer service of a world: what it holds, what it answers, and what it counts. */
import { hash } from "node:crypto";
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
    return connect(this, this.#random, process, id);
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
  return hash("sha256", `${trackingId} ${canonicalAddress(address)}`).slice(0, 10);
}

/** The service as one process sees it. */
function connect(service: SimulatedService, random: Random, process: Process, id: string): ServicePort {
  const { habits } = service;
  let ownAnswers = 0;

  const refuse = (code: FaultCode): Fault => {
    ownAnswers++;
    return word(code, "service");
  };

  const arrive = async (signal: AbortSignal): Promise<void> => {
    if (signal.aborted) throw new Fault("STOPPED", { answeredBy: "unsent" });
    await process.wait(random.int(100));
    if (service.mood === "silent") await whenAborted(signal);
    if (signal.aborted) throw new Fault("STOPPED", { answeredBy: "none" });
  };

  /** One request: it takes time, the mood may spoil it, and the answer may be lost after the service has acted. */
  const ask = async <Answer>(signal: AbortSignal, answer: () => Answer): Promise<Answer> => {
    await arrive(signal);
    const { mood } = service;
    const isSpoilt = mood !== "fine" && random.chance(mood === "away" ? 1 : 0.4);
    if (isSpoilt) failBy(mood, random);
    const result = answer();
    await process.wait(random.int(50));
    if (isSpoilt && mood === "lossy") {
      throw word(random.chance(0.5) ? "SERVICE_TIMEOUT" : "CONNECTION_LOST", "none");
    }
    ownAnswers++;
    return result;
  };

  const unlock = ({ transferId, password }: TransferAccess): SentTransfer => {
    const transfer = service.transfers.find(({ trackingId, recipients }) =>
      recipients.some((address) => transferIdOf(trackingId, address) === transferId),
    );
    if (transfer === undefined) throw refuse("NOT_FOUND");
    transfer.opened++;
    service.onPassword(transfer, password?.reveal());
    const state = service.stateOf(transfer);
    const isThere = state !== "unsent" && state !== "processing";
    if (state !== "active") throw refuse(isThere ? "TRANSFER_DELETED" : "NOT_FOUND");
    if (password?.reveal() === transfer.password) return transfer;
    transfer.wrong++;
    throw refuse("PASSWORD_REFUSED");
  };

  const open = <Answer>(
    access: TransferAccess,
    signal: AbortSignal,
    answer: (transfer: SentTransfer) => Answer,
  ) => ask(signal, () => answer(unlock(access)));

  const list = (email: string, active: boolean | undefined, signal: AbortSignal) =>
    ask(signal, () =>
      service.transfers.flatMap((transfer): ListedTransfer[] => {
        const { trackingId, sender, subject, expiresMs } = transfer;
        const state = service.stateOf(transfer);
        const mail = transfer.recipients.find((each) => canonicalAddress(each) === canonicalAddress(email));
        const isForgotten = () => service.mood === "forgetful" && random.chance(0.5);
        if (state === "unsent" || mail === undefined || isForgotten()) return [];
        const isWanted = state === "active" || active !== true || habits.ignoresActive;
        if (!isWanted) return [];
        const transferId = transferIdOf(trackingId, mail);
        const downloadUrl = new Secret(`https://s/download?id=${transferId}`);
        const entry = {
          trackingId,
          state,
          sender,
          subject,
          recipients: [{ mail, transferId, downloadUrl }],
          to: [mail],
          cc: [],
          expires: new Date(expiresMs),
          passwordMode: "MANUAL",
          securityMode: transfer.securityMode ?? "ONE_TIME_PASSWORD",
          ...messageFacts(transfer, habits),
        };
        return [entry];
      }),
    );

  const download = (content: Buffer, offset: number): Download => {
    const cutAt = service.mood === "lossy" ? offset + random.int(content.length + 1) : undefined;
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
          await process.wait(random.int(50));
          if (cutAt !== undefined && to > cutAt) {
            yield content.subarray(from, Math.max(from, cutAt));
            throw word("CONNECTION_LOST", "none");
          }
          if (to > from) yield content.subarray(from, to);
        }
      })(),
      cancel: () => {},
    };
  };

  const port: Partial<ServicePort> = {
    id,
    async *listReceived({ email }, { active }, _onRejected, signal, isKnown) {
      yield (await list(email, active, signal)).filter(({ trackingId }) => isKnown?.(trackingId) !== true);
    },
    pollReceived: async ({ email }, { active }, signal) => ({
      entries: await list(email, active, signal),
      known: [],
      rejected: [],
    }),
    information: (access, signal) =>
      open(access, signal, ({ files, message }) => ({
        totalBytes: files.reduce((sum, { bytes }) => sum + bytes.length, message?.length ?? 0),
        algorithm: "SHA-256",
      })),
    files: (access, signal, onCount) =>
      open(access, signal, ({ files }) => {
        onCount?.(files.length);
        return files.map((file) => {
          return { id: file.id, name: file.name, bytes: file.bytes.length, checksum: file.sha256 };
        });
      }),
    checksums: async (access, listing, signal) => {
      const files = await listing;
      return open(access, signal, ({ subject, files: sent, message, messageRow }) => {
        const checksumOf = (fileId: string) => sent.find((file) => file.id === fileId)?.sha256 ?? "";
        const rows = files.map(({ id: fileId, name }) => {
          return [fileId, { name, checksum: { value: checksumOf(fileId), algorithm: "SHA-256" } }] as const;
        });
        const text = messageRow === "eml" ? message : message && fileOfMessage(message);
        const value = hash("sha256", text ?? "");
        const ofMessage = { name: "message", checksum: { value, algorithm: "SHA-256" } };
        const unlisted = text === undefined || messageRow === undefined ? [] : [ofMessage];
        return { subject, byFileId: new Map(rows), unlisted, missing: [] };
      });
    },
    openFile: (access, { id: fileId }, { resume }, signal) =>
      open(access, signal, ({ files, message }) => {
        if (fileId === MESSAGE_FILE && message !== undefined) return download(fileOfMessage(message), 0);
        const file = files.find((each) => each.id === fileId);
        if (file === undefined) throw refuse("NOT_FOUND");
        const isDamaged = file.name === service.damaged;
        const bytes = isDamaged ? Buffer.alloc(file.bytes.length, "x") : file.bytes;
        return download(bytes, resume?.offset ?? 0);
      }),
    openZip: (access, _options, signal) => open(access, signal, ({ zip }) => download(zip, 0)),
    openEml: (access, { thresholdMegabytes }, signal) =>
      open(access, signal, ({ message }) => {
        const isRefused = habits.wholeThreshold && thresholdMegabytes !== undefined;
        if (message === undefined || isRefused) throw refuse("NOT_FOUND");
        return download(message, 0);
      }),
    obtainToken: async () => ({ token: new Secret("Token-0"), validUntil: undefined }),
    apiVersions: (signal) => ask(signal, () => [{ major: 1, minor: 13 }]),
    ownAnswers: () => ownAnswers,
    clockAheadMs: () => 0,
    close: async () => {},
  };
  return port as ServicePort;
}

/** Before the service has acted. */
function failBy(mood: Mood, random: Random): void {
  if (mood === "away") throw word("SERVICE_UNREACHABLE", "unsent");
  if (mood === "failing") throw word("SERVER_FAULT", random.chance(0.5) ? "service" : "intermediary");
  if (mood === "limiting") throw word("RATE_LIMITED", "service", { retryAfterMs: 20_000 });
  if (mood === "foreign") throw word("BAD_ANSWER", "intermediary");
}

function word(code: FaultCode, answeredBy: AnsweredBy, more: FaultDetails = {}): Fault {
  return new Fault(code, { answeredBy, ...more });
}
