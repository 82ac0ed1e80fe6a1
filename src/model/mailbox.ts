/** The operator's settings: mailboxes, limits and the hand-off. */

import { makeMatcher, textForm } from "../base/normal-form.ts";
import type { Secret, SecretSource } from "../base/secret.ts";
import type { Receiver } from "../base/signed-post.ts";
import type { ProgramStart } from "../base/system-program.ts";
import type { Timetable, WeeklyTime } from "../base/timetable.ts";
import type { StepOwners } from "./handoff.ts";
import type { Actor } from "./order.ts";
import { mailboxIdOf } from "./transfer.ts";

/** An operator's pause of a mailbox. */
export interface Pause extends Actor {
  readonly at: string;
}

/** One verified email address whose received transfers are mirrored. */
export interface Mailbox {
  /** Its key in folders and ledger, which never changes. In the configuration, what people call it; by default the address. */
  readonly name: string;
  /** What people call it, once `name` is its key. */
  readonly label?: string | undefined;
  readonly email: string;
  readonly pollMs: number;
  /** `auto`: a ZIP for many small files, else single files. */
  readonly fetch: "auto" | "files" | "zip";
  /** A transfer without checksums is quarantined (`require`), or delivered marked as not verified (`prefer`). */
  readonly verify: "require" | "prefer";
  /** A path with placeholders, such as `{mailbox}/{sender}/{trackingId}`. */
  readonly layout: string;
  readonly passwords: readonly PasswordRule[];
  /** How many wrong passwords may be tried for one transfer. */
  readonly passwordAttempts: number;
  /** Whether rules apply to a transfer whose mode the service does not name, though it names others. Missing: nobody has said. */
  readonly rulesWithoutMode?: boolean | undefined;
  readonly paused: boolean;
  /** Missing unless an operator has paused it. */
  readonly pause?: Pause | undefined;
  /** An absolute path. Missing: the common inbox. */
  readonly inbox?: string | undefined;
  /** Transfers that were first listed before this time, or at the first poll (`now`), are left out. Missing: all count. */
  readonly since?: number | "now" | undefined;
  /** No download starts during these hours. */
  readonly quiet?: Timetable | undefined;
  /** Missing: the common one. */
  readonly handoff?: Handoff;
  readonly check?: Check | undefined;
  readonly expect?: readonly Expectation[];
  /** Missing: every transfer is delivered in the same way. */
  readonly routing?: Routing | undefined;
}

export const ROUTE_ACTIONS = ["deliver", "hold", "ignore"] as const;

/** `hold`: an operator has to release the transfer. `ignore`: it is never downloaded. */
export type RouteAction = (typeof ROUTE_ACTIONS)[number];

export interface Route {
  /** Its name in the configuration, or its place, such as `routes[2]`: for people. */
  readonly name: string;
  /** Identifies the rule: its name together with what it matches. Missing for a route without a name of its own. */
  readonly rule?: string | undefined;
  readonly when: RouteConditions;
  readonly action: RouteAction;
  /** Missing: those of the mailbox. */
  readonly inbox?: string | undefined;
  readonly layout?: string | undefined;
  readonly handoff?: Handoff | undefined;
}

/** A transfer has to meet each condition that is set. One of several patterns is enough. */
export interface RouteConditions {
  readonly sender?: readonly string[] | undefined;
  readonly subject?: readonly string[] | undefined;
  /** Over the addresses that it was sent to: one has to match. */
  readonly recipient?: readonly string[] | undefined;
  /** Over the names of files: one file has to match. */
  readonly file?: readonly string[] | undefined;
  /** Of all files together. */
  readonly minBytes?: number | undefined;
  readonly maxBytes?: number | undefined;
}

export interface Routing {
  readonly routes: readonly Route[];
  /** For transfers that match no route. */
  readonly otherwise: RouteAction;
}

/** Placeholders that a layout may hold, as `{name}`. */
export const PLACEHOLDERS = [
  "mailbox",
  "sender",
  "senderDomain",
  "trackingId",
  "transferId",
  "subject",
  "year",
  "month",
  "day",
] as const;

export type Placeholder = (typeof PLACEHOLDERS)[number];

/** A transfer that is due regularly. */
export interface Expectation {
  /** A glob over the sender's address. */
  readonly sender: string;
  readonly by: WeeklyTime;
  /** How long before the deadline it may arrive; by default since the previous deadline. */
  readonly withinMs: number | undefined;
  /** Such as `*@bank.example by 06:00 mon-fri`. */
  readonly described: string;
}

/** Applies to a transfer that meets every condition set here. */
export interface PasswordRule {
  /** A glob over the sender's address: `*@supplier.example`. */
  readonly sender: string | undefined;
  readonly trackingId: string | undefined;
  readonly password: SecretSource | PasswordCommand;
}

/** A command that is asked for the password of one transfer. */
export interface PasswordCommand {
  /** For messages: `command vault`. */
  readonly described: string;
  /** A path, or a name to look up in PATH. */
  readonly program: string;
  /** `undefined` if it knows none. Throws `SECRET_UNREADABLE`. */
  ask(transfer: AskedTransfer, signal: AbortSignal): Promise<Secret | undefined>;
}

/** The sender chooses all but the mailbox. */
export type AskedTransfer = Readonly<Record<"mailbox" | "sender" | "trackingId" | "subject", string>>;

export interface Limits {
  /** Requests for transfers at once, per service. */
  readonly requests: number;
  readonly transfers: number;
  readonly filesPerTransfer: number;
  /** Space that must stay free on the inbox's disk. */
  readonly minFreeBytes: number;
  readonly maxTransferBytes: number;
  readonly maxFiles: number;
  /** The first rule that applies now sets the limit; without one there is no limit. */
  readonly bandwidth?: readonly BandwidthRule[];
}

/** The bandwidth of all downloads together. */
export interface BandwidthRule {
  /** Missing: at all times. */
  readonly at: Timetable | undefined;
  /** Missing: no limit. */
  readonly bytesPerSecond: number | undefined;
}

export interface Handoff {
  /** Permission bits of delivered files and folders. */
  readonly fileMode: number;
  readonly folderMode: number;
  /** The group (name or number) of delivered files and folders, and of the folders above them. Missing: the group is left as it is. */
  readonly group?: string | undefined;
  /** The number of that group on this system, once it was looked up. */
  readonly gid?: number | undefined;
  /** The name of an empty file that is written last, before the folder appears. */
  readonly marker: string | undefined;
  /** Each transfer is one folder (the default), or each file comes by itself into a folder that transfers share. */
  readonly deliver?: "folder" | "files";
  /** The names of files that are delivered by themselves, such as `{trackingId}_{name}`. */
  readonly names?: string;
  /** Where manifest and sums are: in the folder (the default), beside the folder or the files, or nowhere. */
  readonly manifest?: "inside" | "beside" | "none";
  /** Received ZIP files are not unpacked (the default), unpacked beside the archive, or delivered unpacked instead of it. */
  readonly unpack?: "none" | "beside" | "instead";
  /** The suffix of an empty file that is created after each delivered folder or file. */
  readonly done?: string | undefined;
  readonly command?: HandoffCommand | undefined;
  readonly webhook?: Receiver | undefined;
  /** The name of the file that a consumer creates in the folder to acknowledge it. */
  readonly acknowledgement?: string | undefined;
  /** A folder that is not picked up within this time is reported. */
  readonly expectWithinMs?: number | undefined;
  readonly keep?: HandoffKeep;
  /** Of the steps that are configured here. */
  readonly owners?: StepOwners;
  /** Steps that do not run, because their owner is no longer configured, or does not have them any longer. */
  readonly gone?: StepOwners;
}

export type HandoffCommand = Pick<ProgramStart, "argv" | "env" | "timeoutMs">;

/** Stands for the path of the transfer's folder in an argument of a check. */
export const FOLDER = "{folder}";

/** A command that sees each complete transfer before its delivery: exit code 0 delivers, 1 quarantines. */
export interface Check extends HandoffCommand {
  /** The most address space of each process; `undefined`: no limit. */
  readonly memoryBytes: number | undefined;
}

/** How long folders stay in the inbox; by default for ever. */
interface HandoffKeep {
  /** Counted from the acknowledgement. */
  readonly pickedUpMs: number | undefined;
  /** For a folder that is not picked up, counted from its delivery. */
  readonly notPickedUpMs: number | undefined;
}

/** The id of a service, from its base URL: several can live at one origin, below paths of their own. */
export function serviceIdOf({ origin, pathname }: URL): string {
  return origin + pathname.replace(/\/+$/, "");
}

type Mailboxed = { readonly mailbox?: string | undefined };

export type Labelled = Pick<Mailbox, "name" | "label" | "email">;

/** What people call mailboxes, and the keys in records. */
export class Labels {
  readonly #labels = new Map<string, string>();
  readonly #keys = new Map<string, string>();

  constructor(mailboxes: readonly Labelled[]) {
    for (const { name, label = name } of mailboxes) {
      this.#labels.set(mailboxIdOf(name), label);
      this.#keys.set(mailboxIdOf(label), name);
    }
    for (const { name, email } of mailboxes) {
      if (!this.#keys.has(mailboxIdOf(email))) this.#keys.set(mailboxIdOf(email), name);
    }
  }

  /** For people. A mailbox that is not configured never goes by the label of another. */
  of(key: string): string {
    const isOther = this.#keys.has(mailboxIdOf(key));
    return this.#labels.get(mailboxIdOf(key)) ?? (isOther ? `${key} (removed)` : key);
  }

  /** `wanted`: a label, an address or a key. */
  keyOf(wanted: string): string {
    return this.#keys.get(mailboxIdOf(wanted)) ?? wanted.replace(/ \(removed\)$/, "");
  }

  /** As `keyed`, for a filter whose mailbox may be a pattern: it matches labels and addresses too. */
  readonly filtered = <Of extends Mailboxed>(of: Of) => {
    const matches = makeMatcher(of.mailbox, textForm);
    const keys = [...this.#keys].flatMap(([name, key]) => (matches(name) ? mailboxIdOf(key) : []));
    return { ...this.keyed(of), mailboxes: new Set(keys) };
  };

  /** What people see of something that names its mailbox. */
  readonly shown = <Of extends Mailboxed>(of: Of): Of =>
    of.mailbox === undefined ? of : { ...of, mailbox: this.of(of.mailbox) };

  /** The reverse of `shown`. */
  readonly keyed = <Of extends Mailboxed>(of: Of): Of =>
    of.mailbox === undefined ? of : { ...of, mailbox: this.keyOf(of.mailbox) };
}

/** The settings of a transfer's mailbox, however its name is spelled; `undefined` if it is not configured. */
export function mailboxOf<Named extends { readonly name: string }>(
  mailboxes: readonly Named[],
  { mailbox }: { readonly mailbox: string },
): Named | undefined {
  return mailboxes.find(({ name }) => mailboxIdOf(name) === mailboxIdOf(mailbox));
}
