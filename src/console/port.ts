/** Everything that the console needs from the daemon. */
import type { Status, TransferStatus } from "../model/status.ts";
import type { Tally } from "../model/views.ts";
import type { Local } from "../operate/local.ts";
import type { Sessions } from "./sessions.ts";

export interface ConsolePort {
  readonly board: StatusSource;
  /** In Prometheus's text format. */
  metrics(): Promise<string>;
  readonly operate: Pick<Local, "list" | "story" | "history" | "objectionTo" | "start" | "actOnMailboxes">;
  /** How transfers ended, in slots of equal length from `sinceMs` on. Rejects when the signal aborts. */
  tally(sinceMs: number, slotMs: number, signal: AbortSignal): Promise<readonly Tally[]>;
  /** `undefined`: everyone may read, and actions are switched off. */
  readonly access: Sessions | undefined;
  /** Host names of the console, besides addresses, `localhost` and the machine's own name. */
  readonly hosts: readonly string[];
  /** Names the work that hangs, if any. */
  stuck(): string | undefined;
}

interface StatusSource {
  read(): Status;
  /** The most urgent first. */
  transfers(): readonly TransferStatus[];
  /** Adds what can be done. */
  withHelp(transfer: TransferStatus): TransferStatus;
  /** Called after every event. Returns a function that ends the subscription. */
  onChange(subscriber: () => void): () => void;
}
