/** Everything that the console needs from the daemon. */
import type { Secret } from "../base/secret.ts";
import type { Actor, TransferAct } from "../model/order.ts";
import type { TransferKey } from "../model/record.ts";
import type { Status, TransferStatus } from "../model/status.ts";
import type {
  ActEntry,
  ActQuery,
  ActResult,
  HistoryEntry,
  HistoryQuery,
  JournalKind,
  JournalPage,
  ListQuery,
  Story,
  Tally,
  TransferList,
} from "../model/views.ts";
import type { Sessions } from "./sessions.ts";

export interface ConsolePort {
  readonly board: StatusSource;
  /** In Prometheus's text format. */
  metrics(): Promise<string>;
  readonly journal: JournalReader;
  /** Every known transfer that matches, delivered ones too, as `inlet list --json` prints them. */
  list(query: ListQuery, signal: AbortSignal): Promise<TransferList>;
  /** `undefined` for an unknown transfer. */
  story(key: TransferKey): Promise<Story | undefined>;
  /** Why an act is not possible, for people; `undefined` if it may be. */
  objection(act: TransferAct, key: TransferKey): Promise<string | undefined>;
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
  search(query: Partial<HistoryQuery>, signal: AbortSignal): Promise<readonly HistoryEntry[]>;
  /** Operators' actions and changes of the configuration, newest first. */
  acts(query: Partial<ActQuery>, signal: AbortSignal): Promise<readonly ActEntry[]>;
  /** As `inlet history` reads it, with the damaged lines. */
  page(kind: JournalKind, query: HistoryQuery, signal: AbortSignal): Promise<JournalPage>;
  /** How transfers ended, in slots of equal length from `sinceMs` on. */
  tally(sinceMs: number, slotMs: number, signal: AbortSignal): Promise<readonly Tally[]>;
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
  submit(request: ActionRequest, by: Actor): Promise<SubmittedAction>;
}

type SubmittedAction =
  | { readonly refused: ActResult }
  | {
      /** Resolves when the action had its effect, or the signal aborts. May be called several times. */
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
