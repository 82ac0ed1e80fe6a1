/** Finds the known name that was probably meant by an unknown one. */

/** The nearest known name, case-insensitive; `undefined` if none is near enough. */
export function nearestName(
  name: string,
  known: readonly string[],
  maxDistance: (known: string) => number = halfOf,
): string | undefined {
  const lower = name.toLowerCase();
  const [nearest] = known
    .map((candidate) => ({ candidate, distance: distanceOf(lower, candidate.toLowerCase()) }))
    .toSorted((a, b) => a.distance - b.distance);
  if (nearest === undefined || nearest.distance > maxDistance(nearest.candidate)) return undefined;
  // Two names without a common letter are not near.
  return nearest.distance < name.length ? nearest.candidate : undefined;
}

/** A question for the end of a message; `otherwise` if no known name is near enough. */
export function didYouMean(name: string, known: readonly string[], otherwise: string, maxDistance = halfOf) {
  const nearest = nearestName(name, known, maxDistance);
  return nearest === undefined ? otherwise : `did you mean ${nearest}?`;
}

export function describeUnknownKey(key: string, known: readonly string[]): string {
  return `unknown key, ${didYouMean(key, known, `known: ${known.join(", ")}`)}`;
}

function halfOf(known: string): number {
  return Math.max(2, known.length / 2);
}

/** The number of letters to add, drop or change (Levenshtein distance). */
function distanceOf(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [row, letter] of [...a].entries()) {
    const current = [row + 1];
    for (const [column, other] of [...b].entries()) {
      const changed = (previous[column] ?? 0) + (letter === other ? 0 : 1);
      current.push(Math.min(changed, (previous[column + 1] ?? 0) + 1, (current[column] ?? 0) + 1));
    }
    previous = current;
  }
  return previous.at(-1) ?? 0;
}
