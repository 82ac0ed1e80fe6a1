/** Patterns with `*` and `?` that were written as regular expressions. */
import { type Draft, formatPath, type KeyPath, showValue } from "./draft.ts";

/** Such as `^…`, `.*` after no letter, `[a-z]`, `[…]+` and `\.`: no address, subject or file name is like that. */
const EXPRESSION =
  /^\^|(^|[^\w*?])\.\*|\.\+|\.\*.*\$$|\[[^\]]*(a-z|A-Z|0-9)[^\]]*\]|\[[^\]]+\][+{]|\\[.dswDSW]/;

/** The last step of the path is the name of the key. The warning goes to the draft. */
export function warnOfExpression(pattern: string, path: KeyPath, { warnings }: Draft): void {
  const isLikely = EXPRESSION.test(pattern) || (path.at(-1) === "subject" && pattern.includes(".*"));
  if (!isLikely) return;
  const simple = pattern
    .replace(/^\^|\$$/g, "")
    .replace(/(\[[^\]]+\]|\\[dswDSW]|\.)([*+]|\{[\d,]*\})/g, "*")
    .replace(/\[[^\]]+\]|\\[dswDSW]/g, "?")
    .replace(/\\(.)/g, "$1");
  warnings.push(
    `${formatPath(path)}: ${showValue(pattern)} looks like a regular expression, but only * and ? are wildcards: write ${showValue(simple)}.`,
  );
}
