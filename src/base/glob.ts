/** Glob patterns for texts of senders. */

/**
 * `*` matches any run of characters, `?` matches one; nothing else is special. Senders choose the text, so time is
 * bounded by the length of the text times that of the pattern: after a mismatch, only the last `*` so far takes one
 * more character. Earlier ones keep theirs, because everything between them and the last one matched.
 */
export function matchesGlob(text: string, glob: string): boolean {
  const [characters, pattern] = [[...text], [...glob]];
  let [at, next] = [0, 0];
  let last: { star: number; until: number } | undefined;
  while (at < characters.length) {
    if (pattern[next] === "*") {
      last = { star: next, until: at };
      next++;
    } else if (pattern[next] === "?" || pattern[next] === characters[at]) {
      at++;
      next++;
    } else if (last !== undefined) {
      last.until++;
      [at, next] = [last.until, last.star + 1];
    } else return false;
  }
  return pattern.slice(next).every((rest) => rest === "*");
}
