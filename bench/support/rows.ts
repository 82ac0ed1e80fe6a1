/** One row of a result: a figure, the figure it is compared with, and the limits. */

export interface Row {
  readonly what: string;
  /** The other program or setting, if there is a comparison. */
  readonly beside?: string;
  readonly unit:
    | "s"
    | "ms"
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
  /** The figure that the limits apply to: the ratio of the two, or ours. */
  readonly value: number;
  /** Missing without limits. */
  readonly must?: number;
  readonly aim?: number;
  /** More is better. */
  readonly rises?: boolean;
}

export function besides(
  what: string,
  beside: string,
  unit: Row["unit"],
  [ours, theirs]: readonly [ours: number, theirs: number],
  limits?: readonly [must: number, aim: number],
): Row {
  const given = limits === undefined ? {} : { must: limits[0], aim: limits[1] };
  return { what, beside, unit, ours, theirs, value: ours / theirs, ...given };
}

export function alone(
  what: string,
  unit: Row["unit"],
  ours: number,
  limits?: readonly [must: number, aim: number],
): Row {
  const given = limits === undefined ? {} : { must: limits[0], aim: limits[1] };
  return { what, unit, ours, value: ours, ...given };
}

type RowResult = "aim reached" | "reached" | "not reached" | "";

export function resultOf({ value, must, aim, rises }: Row): RowResult {
  if (must === undefined || aim === undefined) return "";
  const reaches = (limit: number) => (rises ? value >= limit : value <= limit);
  if (reaches(aim)) return "aim reached";
  return reaches(must) ? "reached" : "not reached";
}
