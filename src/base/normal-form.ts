/** Compares an operator's patterns with a sender's texts, in a normal form of both. */
import { foldName, limitMarks } from "./fold-name.ts";

/**
 * Brings a text or a pattern into a normal form; a second time changes nothing. `undefined` if the text holds a lone
 * surrogate, which programs read in different ways. A pattern keeps its `*` and `?`; those in full width become `*` and `?`.
 */
export type NormalForm = (text: string) => string | undefined;

/** Ignores case, width, Unicode form, invisible and control characters, and blanks at the ends. Joins other blanks. */
export function textForm(text: string): string | undefined {
  if (!text.isWellFormed()) return undefined;
  const folded = foldName(limitMarks(text).normalize("NFKC").replace(INVISIBLE, ""));
  // Whether a sigma is final depends on its neighbours, which a pattern need not name.
  return limitMarks(folded.replaceAll("ς", "σ").replace(BLANKS, " ").trim().normalize("NFKC"));
}

/** Also ignores blanks beside dots, and dots at the end. */
export function fileNameForm(name: string): string | undefined {
  return textForm(name)
    ?.replace(/ ?\. ?/g, ".")
    .replace(LAST_DOTS, "");
}

/** Also ignores all blanks, and dots at the end. An ideographic full stop is a dot, as in domain names. */
export function addressForm(address: string): string | undefined {
  return textForm(address)?.replaceAll(" ", "").replaceAll("。", ".").replace(LAST_DOTS, "").normalize("NFC");
}

/**
 * Matches texts against a pattern with `*` and `?`. Without a pattern, every text matches. A text without a normal form
 * matches no pattern.
 */
export function makeMatcher(pattern: string | undefined, form: NormalForm): (text: string) => boolean {
  if (pattern === undefined) return () => true;
  const glob = form(pattern);
  return (text) => {
    const own = form(text);
    return own !== undefined && glob !== undefined && matchesGlob(own, glob);
  };
}

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

/** Format and control characters; blanks among them stay. `foldName` drops the other invisible characters. */
const INVISIBLE = /\p{Cf}|(?!\s)\p{Cc}/gu;

/** Also the blank of Braille, which is a symbol in Unicode. */
const BLANKS = /[\s\u2800]+/g;

/** The look-behind keeps this linear for long runs in the middle. */
const LAST_DOTS = /(?<!\.)\.+$/;
