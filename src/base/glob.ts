/** Glob patterns for texts of senders. */

/**
 * `*` matches any run of characters, `?` matches one; nothing else is special. Senders choose the text, so time is
 * bounded by the length of the text times that of the pattern: after a mismatch, only the last `*` so far takes one
 * more character. Another run for an earlier `*` could not help, because all between it and the last `*` has matched.
 */
export function matchesGlob(text: string, glob: string): boolean {
  const [characters, pattern] = [[...text], [...glob]];
  let [textAt, patternAt] = [0, 0];
  let last: { readonly starAt: number; runEnd: number } | undefined;
  while (textAt < characters.length) {
    if (pattern[patternAt] === "*") {
      last = { starAt: patternAt, runEnd: textAt };
      patternAt++;
    } else if (pattern[patternAt] === "?" || pattern[patternAt] === characters[textAt]) {
      textAt++;
      patternAt++;
    } else if (last !== undefined) {
      last.runEnd++;
      [textAt, patternAt] = [last.runEnd, last.starAt + 1];
    } else return false;
  }
  return pattern.slice(patternAt).every((rest) => rest === "*");
}
