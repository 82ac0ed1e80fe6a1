/** One line of the result: what was measured, beside what, and what it has to be. */

export interface Row {
  /** What is measured. */
  readonly what: string;
  /** Beside what; missing where the figure stands for itself. */
  readonly beside?: string;
  readonly unit:
    | "s"
    | "CPU s per GiB"
    | "CPU ms per transfer"
    | "MiB"
    | "% of a core"
    | "% of the bandwidth"
    | "per s"
    | "calls"
    | "fsyncs";
  readonly ours: number;
  readonly theirs?: number;
  /** The ratio of the two, or our figure where it stands for itself. */
  readonly value: number;
  /** Missing where nothing is demanded. */
  readonly must?: number;
  readonly aim?: number;
  /** Whether more is better. */
  readonly rises?: boolean;
}

export function besides(
  what: string,
  beside: string,
  unit: Row["unit"],
  [ours, theirs]: readonly [ours: number, theirs: number],
  /** Missing where nothing is demanded. */
  limits?: readonly [must: number, aim: number],
): Row {
  const demanded = limits === undefined ? {} : { must: limits[0], aim: limits[1] };
  return { what, beside, unit, ours, theirs, value: ours / theirs, ...demanded };
}

export function alone(
  what: string,
  unit: Row["unit"],
  ours: number,
  [must, aim]: readonly [must: number, aim: number],
): Row {
  return { what, unit, ours, value: ours, must, aim };
}

export type Verdict = "aim reached" | "reached" | "not reached" | "";

export function verdictOf({ value, must, aim, rises }: Row): Verdict {
  if (must === undefined || aim === undefined) return "";
  const reaches = (limit: number) => (rises ? value >= limit : value <= limit);
  if (reaches(aim)) return "aim reached";
  return reaches(must) ? "reached" : "not reached";
}
