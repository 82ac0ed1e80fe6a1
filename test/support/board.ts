/** What a board is told at its start, for tests of what it shows. */
import type { ShownMailbox } from "../../src/model/events.ts";

export const FACTS = {
  program: "1",
  host: "h",
  pid: 1,
  queue: "embedded",
  role: "all",
  inbox: "/inbox",
} as const;

/** A mailbox that is polled each minute. */
export function shownMailbox(name: string, more: Partial<ShownMailbox> = {}): ShownMailbox {
  const service = { baseUrl: new URL("https://transfer.example.com/") };
  return { name, email: `${name}@example.com`, pollMs: 60_000, paused: false, service, ...more };
}
