/** What the operator decided: which mailboxes there are, within which limits they work, and how they hand over. */
import type { SecretSource } from "../base/secret.ts";
import type { Timetable, WeeklyTime } from "../base/timetable.ts";

/** One verified email address whose received transfers are mirrored. */
export interface Mailbox {
  /** What it is called in folders, ledger and messages; the email address unless told otherwise. */
  readonly name: string;
  readonly email: string;
  readonly pollMs: number;
  /** `auto`: a ZIP for many small files, else single files. */
  readonly fetch: "auto" | "files" | "zip";
  /** Whether what came without checksums is quarantined, or delivered marked as not verified. */
  readonly verify: "require" | "prefer";
  /** A path with placeholders, such as `{mailbox}/{sender}/{trackingId}`. */
  readonly layout: string;
  /** In the order in which they are tried. */
  readonly passwords: readonly PasswordRule[];
  /** How many refused passwords a transfer may cost, at most. */
  readonly passwordAttempts: number;
  readonly paused: boolean;
  /** When no download is begun; missing: never. */
  readonly quiet?: Timetable | undefined;
  readonly expect?: readonly Expectation[];
}

/** A transfer that is to come regularly. */
export interface Expectation {
  /** A glob over the sender's address. */
  readonly sender: string;
  readonly by: WeeklyTime;
  /** How long before the deadline it may come; missing: since the deadline before. */
  readonly withinMs: number | undefined;
  /** For people: `*@bank.example by 06:00 mon-fri`. */
  readonly described: string;
}

/** Fits a transfer if every condition that is given does. */
export interface PasswordRule {
  /** A glob over the sender's address: `*@supplier.example`. */
  readonly sender: string | undefined;
  readonly trackingId: string | undefined;
  readonly password: SecretSource;
}

export interface Limits {
  /** How many transfers at once. */
  readonly transfers: number;
  /** How many files of one transfer at once. */
  readonly filesPerTransfer: number;
  /** What must stay free on the inbox's disk. */
  readonly minFreeBytes: number;
  readonly maxTransferBytes: number;
  readonly maxFiles: number;
  /** The first one that fits counts; where none does, there is no limit. */
  readonly bandwidth?: readonly BandwidthRule[];
}

/** How fast all downloads together may be. */
export interface BandwidthRule {
  /** Missing: always. */
  readonly at: Timetable | undefined;
  /** Missing: no limit. */
  readonly bytesPerSecond: number | undefined;
}

export interface Handoff {
  /** Permission bits of delivered files and folders. */
  readonly fileMode: number;
  readonly folderMode: number;
  /** The name of an empty file that is written last inside the folder, before it appears; `undefined` for none. */
  readonly marker: string | undefined;
  /** Run after each delivery; missing: none. */
  readonly command?: HandoffCommand | undefined;
  /** Told of each delivery; missing: none. */
  readonly webhook?: HandoffWebhook | undefined;
  /** The name of a file by which a consumer says, inside the folder, that it has taken it; missing: none. */
  readonly acknowledgement?: string | undefined;
  /** A folder that is not picked up within this time is reported; missing: never. */
  readonly expectWithinMs?: number | undefined;
  readonly keep?: HandoffKeep;
}

export interface HandoffCommand {
  readonly argv: readonly [string, ...string[]];
  /** What it gets of our environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface HandoffWebhook {
  /** Its query may hold a secret. */
  readonly url: URL;
  /** What bodies are signed with. */
  readonly secret: SecretSource;
  readonly timeoutMs: number;
}

/** How long folders stay in the inbox; missing: for ever. */
export interface HandoffKeep {
  /** From their acknowledgement. */
  readonly pickedUpMs: number | undefined;
  /** From the delivery of a folder that is not picked up. */
  readonly notPickedUpMs: number | undefined;
}

/** Names a service by its base URL: several can live at one origin, below paths of their own. */
export function serviceIdOf({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, "");
}
