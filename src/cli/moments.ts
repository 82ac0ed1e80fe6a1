/** Points in time as people give them on the command line, and as they read them. */
import { InvalidArgumentError } from "commander";
import { parseMoment } from "../base/moments.ts";

/** `7d` (so long ago), `2026-03-01` (where that day begins here), `2026-03-01T14:30`. */
export function parseSince(text: string): number {
  return demandMoment(text, 0);
}

/** The same, but a day counts to its end. */
export function parseUntil(text: string): number {
  return demandMoment(text, 1);
}

/** `2026-03-01 14:30:07`, by the clock of this machine. */
export function formatMoment(iso: string): string {
  const at = new Date(iso);
  const pad = (number: number) => String(number).padStart(2, "0");
  const day = [at.getFullYear(), pad(at.getMonth() + 1), pad(at.getDate())].join("-");
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(pad).join(":")}`;
}

function demandMoment(text: string, daysAfter: number): number {
  const ms = parseMoment(text, Date.now(), daysAfter);
  if (ms === undefined) {
    throw new InvalidArgumentError("It must be so long ago (30m, 12h, 7d, 4w) or a date (2026-03-01).");
  }
  return ms;
}
