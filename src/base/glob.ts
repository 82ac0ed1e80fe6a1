/** Patterns as people write them for addresses. */

/**
 * `*` stands for any run of characters, `?` for one; nothing else is special. Senders choose the text: it never takes more
 * steps than the text has characters, times those of the pattern, because only the last `*` is ever tried again. Where
 * the text after an earlier one fitted, to have that one stand for more could not help.
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
