/** Everything that the console needs from the daemon. */
import type { Secret } from "../base/secret.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import type { State, TransferKey } from "../model/record.ts";
import type { Status, TransferStatus } from "../model/status.ts";
import type { Sessions } from "./sessions.ts";

export interface ConsolePort {
  readonly board: StatusSource;
  /** In Prometheus's text format. */
  metrics(): Promise<string>;
  readonly journal: JournalReader;
  /** Every known transfer that matches, delivered ones too, as `inlet list --json` prints them. */
  list(query: ListQuery, signal: AbortSignal): Promise<object>;
  /** `undefined` for an unknown transfer. */
  story(key: TransferKey): Promise<Story | undefined>;
  /** `undefined`: the console is read-only. */
  readonly actions: ConsoleActions | undefined;
  /** Host names of the console, besides addresses, `localhost` and the machine's own name. */
  readonly hosts: readonly string[];
  /** Names the work that hangs, if any. */
  stuck(): string | undefined;
}

interface StatusSource {
  read(): Status;
  /** The most urgent first. */
  transfers(): readonly TransferStatus[];
  /** Adds the commands that help. */
  withHelp(transfer: TransferStatus): TransferStatus;
  /** Called after every event. Returns a function that ends the subscription. */
  onChange(subscriber: () => void): () => void;
}

/** All methods reject when the signal aborts. */
export interface JournalReader {
  /** Newest first. */
  search(query: JournalQuery, signal: AbortSignal): Promise<readonly JournalEntry[]>;
  /** Operators' actions and changes of the configuration, newest first. */
  acts(query: Pick<JournalQuery, "sinceMs" | "limit">, signal: AbortSignal): Promise<readonly JournalAct[]>;
  /** How transfers ended, in slots of equal length from `sinceMs` on. */
  tally(sinceMs: number, slotMs: number, signal: AbortSignal): Promise<readonly TallySlot[]>;
}

/** Missing keys choose all. */
export interface ListQuery {
  readonly mailbox?: string | undefined;
  readonly sender?: string | undefined;
  readonly state?: State | undefined;
  readonly reason?: string | undefined;
  readonly search?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  readonly page: number;
  readonly size: number;
  readonly sort: "newest" | "expires";
}

export interface JournalQuery {
  readonly search?: string | undefined;
  readonly state?: string | undefined;
  readonly mailbox?: string | undefined;
  readonly sender?: string | undefined;
  readonly sinceMs?: number | undefined;
  readonly limit?: number | undefined;
}

export interface JournalEntry extends TransferKey {
  readonly at: string;
  readonly state: string;
  readonly sender: string;
  readonly folder?: string | undefined;
  readonly reason?: string | undefined;
  readonly subject?: string | undefined;
  readonly files?: number | undefined;
  readonly bytes?: number | undefined;
  /** From discovery to delivery. */
  readonly seconds?: number | undefined;
}

export interface JournalAct {
  readonly at: string;
  readonly act: string;
  readonly who: string;
  readonly from: string;
  readonly mailbox?: string | undefined;
  readonly trackingId?: string | undefined;
  /** Changed keys of the configuration. */
  readonly keys?: readonly string[] | undefined;
}

export interface TallySlot {
  readonly delivered: number;
  readonly quarantined: number;
  readonly gone: number;
  readonly bytes: number;
}

/** Everything known about one transfer, as `inlet show --json` prints it. */
export interface Story extends TransferKey {
  readonly transferId: string;
  readonly sender: string;
  readonly state: State;
  readonly reason: string | null;
  readonly message: string | null;
  readonly until: string | null;
  readonly expires: string | null;
  readonly folder: string | null;
  readonly verified: string | null;
  readonly subject: string | null;
  readonly files: number | null;
  readonly bytes: number | null;
  readonly passwordsSpent: number | null;
  readonly passwordAttempts: number | null;
  readonly attempts: number;
  readonly at: Readonly<Partial<Record<State, string>>>;
  readonly rounds: readonly StoryRound[];
  /** Oldest first. */
  readonly acts: readonly JournalAct[];
  /** The folder in quarantine. */
  readonly kept: string | null;
  readonly commands: readonly string[];
  /** Actions that apply in its state. */
  readonly actions: readonly TransferAct[];
}

export interface StoryRound {
  readonly round: number;
  readonly begun?: { readonly why: string; readonly by: string; readonly at: string } | undefined;
  readonly ended?:
    | {
        readonly outcome: State;
        readonly at: string | undefined;
        readonly reason: string | undefined;
        readonly message: string | undefined;
        readonly folder: string | undefined;
        readonly verified: string | undefined;
        readonly released: { readonly by: string; readonly reason: string } | undefined;
        readonly handoff: { readonly progress: string; readonly pickedUpAt?: string | undefined } | undefined;
      }
    | undefined;
}

export interface ActionRequest extends TransferKey {
  readonly action: TransferAct;
  readonly password?: Secret | undefined;
}

export interface ConsoleActions {
  readonly sessions: Sessions;
  /** Called before each use of the sessions, because tokens may have changed. False if one cannot be read. */
  renew(): Promise<boolean>;
  /** Resolves when the action is accepted or refused. */
  give(request: ActionRequest, by: Actor): Promise<GivenAction>;
}

type GivenAction =
  /** 404: no such transfer; 409: not possible in its state. */
  | { readonly refused: 404 | 409; readonly text: string }
  | {
      readonly refused?: undefined;
      readonly text: string;
      /** Resolves when the action had its effect, or the signal aborts. */
      outcome(signal: AbortSignal): Promise<ActionOutcome>;
    };

export interface ActionOutcome {
  /** `attention`: a person has to act again. `pending`: not over yet. */
  readonly result: "fine" | "attention" | "pending";
  /** A sentence for people. */
  readonly text: string;
  readonly state?: string | undefined;
  readonly reason?: string | undefined;
}
