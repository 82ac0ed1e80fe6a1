/** What the console needs from the daemon, what the answers to all requests share, and what each page is made from. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../base/clock.ts";
import type { Status, TransferStatus } from "../model/status.ts";
import type { Local } from "../operate/local.ts";
import type { Callers, OnLimited } from "./callers.ts";
import type { EventStreams } from "./events.ts";
import type { Html, PageTime } from "./html.ts";
import type { JournalAccess, JournalSource } from "./journal.ts";
import type { Outcomes } from "./outcomes.ts";
import type { Notice, Sessions, Visitor } from "./sessions.ts";

export interface ConsolePort extends JournalSource {
  readonly board: StatusSource;
  /** In Prometheus's text format. */
  metrics(): Promise<string>;
  readonly operate: Pick<Local, "list" | "story" | "history" | "objectionTo" | "start" | "actOnMailboxes">;
  /** `undefined`: everyone may read, and actions are switched off. */
  readonly access: Sessions | undefined;
  /** Host names of the console, besides addresses, `localhost` and the machine's own name. */
  readonly hosts: readonly string[];
  readonly onLimited: OnLimited;
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

export interface ConsoleTools extends ConsolePort {
  readonly clock: Clock;
  readonly callers: Callers;
  readonly journal: JournalAccess;
  readonly outcomes: Outcomes;
  readonly streams: EventStreams;
}

export interface PageContext {
  readonly tools: ConsoleTools;
  readonly response: ServerResponse;
  readonly parameters: URLSearchParams;
  readonly status: Status;
  readonly time: PageTime;
  readonly visitor: Visitor;
  /** Of the page, relative to the console's root: to return to after an action. */
  readonly address: string;
}

/** What is inside the frame of a page. */
export interface Page {
  /** The status of the answer. Missing: 200. */
  readonly code?: number;
  /** The heading above the body; some pages have none. */
  readonly title?: string;
  readonly notice?: Notice | undefined;
  readonly body: Html;
}

/** May throw faults. */
export type ShowPage = (context: PageContext) => Page | Promise<Page>;

/** A page for a query that is not valid says why. */
export function noticeOf(parsed: object | string): Pick<Page, "code" | "notice"> {
  return typeof parsed === "string" ? { code: 400, notice: { text: parsed, isError: true } } : {};
}
