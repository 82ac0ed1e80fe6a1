/** What senders send in a world, and how its services differ and behave. Plain data: a plan holds it. */
import type { TransferState } from "../../../src/model/transfer.ts";
import type { Operation } from "../service/requests.ts";

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
  /** The number of the service that has it. */
  readonly service: number;
  readonly sender: string;
  readonly subject: string;
  readonly recipients: readonly string[];
  /** Missing: the sender chose none, and the recipient's link carries this one. */
  readonly password: string;
  readonly isPasswordInLink?: boolean;
  /** Missing: one-time passwords. In the modes `QUICK` and `EID` no password helps, and in others it does. */
  readonly securityMode?: string;
  readonly files: readonly SentFile[];
  /** The EML as the service makes it, without attachments. */
  readonly message: Buffer | undefined;
  readonly zip: Buffer;
  readonly expiresMs: number;
  /** The message's row in the checksums file has the checksum of its file, or of the EML. */
  readonly messageRow?: "file" | "eml";
  /** Which checksums the service gives. Missing: SHA-256, in the list of files and in the checksums file. */
  readonly checksums?: "listed" | "csv" | "none";
}

/** A transfer at its service, which a run of a world changes. */
export interface StoredTransfer extends SentTransfer {
  state: TransferState | "unsent";
  /** Wrong passwords that the service received. */
  wrong: number;
  /** Requests that named it. */
  opened: number;
  /** Locked until then, in true time, by transfer-id. */
  readonly lockedUntilMs: Map<string, number>;
}

/** How a service differs from others, for all of its life. */
export interface ServiceHabits {
  /** Lists have transfers in every state, also those that are still processed. */
  readonly ignoresActive?: boolean;
  /** A threshold that is not a whole number is refused. */
  readonly wholeThreshold?: boolean;
  /** Every threshold is refused, and every file is added to a message. */
  readonly noThreshold?: boolean;
  /** Lists never say whether there is a message, also to requests that name it. */
  readonly hidesMessages?: boolean;
  /** Lists never name a security mode, also to requests that name it: an old service. */
  readonly hasNoModes?: boolean;
  /** Refuses fields that the interface does not document, with 400 and 1004. */
  readonly refusesFields?: boolean;
  /** Where it has `zip`, `eml` and `checksums`. Missing: directly below the transfer. */
  readonly paths?: "short" | "files" | "both";
  /** Caps pages. */
  readonly pageCap?: number;
  /** What it does after so many wrong passwords. Missing: deletes the transfer after 5. */
  readonly onWrong?: {
    readonly after: number;
    readonly lockMs?: number;
    readonly saysUntil?: boolean;
    readonly saysMs?: number;
  };
  /** How long a token is valid. Missing: for ever. */
  readonly tokenMs?: number;
  /** It gives no more tokens in this time. Missing: any number. */
  readonly tokenLimit?: { readonly count: number; readonly ms: number; readonly saysUntil: boolean };
}

/**
 * How a service behaves now. `fine`: as it should. The others apply to a share of the requests, and `scope` limits them.
 * - `away`: a connection is refused, or not made in time. `silent`: no answer, or only the first half of a file; the service
 *   may have acted. `dripping`: an answer of a byte every few seconds. `slow`: an answer after some seconds.
 * - `failing`: 5xx, its own or an intermediary's; the service may have acted. `limiting`: 429 or 503 with `retryAfter`.
 * - `foreign`: an HTML page with 200 or 503.
 * - `firewall`: 403 without its format. `confused`: an error in its own format about something else (400 1002, 500 5000).
 * - `lossy`: cut before or after the service has acted, or in the middle of a body.
 * - `forgetful`: lists omit entries. `cutting`: a list ends in the middle, or a page is repeated.
 * - `stripping`: an intermediary removes the security mode, the message's id or the recipients from entries of a list.
 * - `luring`: redirects to another origin.
 * - `lying`: files have other bytes, more bytes, fewer bytes or another size than announced; checksums of another file.
 */
export const MOODS = [
  "fine",
  "away",
  "silent",
  "dripping",
  "slow",
  "failing",
  "limiting",
  "foreign",
  "firewall",
  "confused",
  "lossy",
  "forgetful",
  "cutting",
  "stripping",
  "luring",
  "lying",
] as const;

export type Mood = (typeof MOODS)[number];

export interface Weather {
  readonly mood: Mood;
  /** The share of requests that it applies to. */
  readonly share: number;
  readonly scope?: "lists" | "transfers";
  /** It applies to this operation only. */
  readonly about?: Operation;
  /** The value of `Retry-After`. Missing: none. */
  readonly retryAfter?: string;
  /** What `stripping` removes from all entries. Missing: now this, now that, from some. */
  readonly strips?: "mode" | "message" | "recipients";
}

export const FINE: Weather = { mood: "fine", share: 0 };
