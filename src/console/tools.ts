/** What the answers to all requests share. */
import type { Clock } from "../base/clock.ts";
import type { EventStreams } from "./events.ts";
import type { JournalAccess } from "./journal.ts";
import type { Outcomes } from "./outcomes.ts";
import type { ConsolePort } from "./port.ts";

export interface ConsoleTools extends ConsolePort {
  readonly clock: Clock;
  readonly journal: JournalAccess;
  readonly outcomes: Outcomes;
  readonly streams: EventStreams;
  /** Another one after each change that pages show. */
  version(): number;
}
