/** What the answers to all requests share, and what each page consists of. */
import type { ServerResponse } from "node:http";
import type { Clock } from "../base/clock.ts";
import type { Status } from "../model/status.ts";
import type { EventStreams } from "./events.ts";
import type { Html } from "./html.ts";
import type { JournalAccess } from "./journal.ts";
import type { Notice } from "./layout.ts";
import type { Outcomes } from "./outcomes.ts";
import type { ConsolePort } from "./port.ts";
import type { RowContext } from "./rows.ts";

export interface ConsoleTools extends ConsolePort {
  readonly clock: Clock;
  readonly journal: JournalAccess;
  readonly outcomes: Outcomes;
  readonly streams: EventStreams;
  /** Another one after each change that pages show. */
  version(): number;
}

export interface Shown {
  /** Missing: 200. */
  readonly code?: number;
  readonly title?: string;
  readonly notice?: Notice | undefined;
  render(status: Status, context: RowContext): Html;
}

/** A page for a query that is not valid says why. */
export function noticeOf(parsed: object | string): Pick<Shown, "code" | "notice"> {
  return typeof parsed === "string" ? { code: 400, notice: { text: parsed, isError: true } } : {};
}

/** Gathers the data of a page. May throw faults. */
export type ShowPage = (
  tools: ConsoleTools,
  response: ServerResponse,
  parameters: URLSearchParams,
) => Shown | Promise<Shown>;
