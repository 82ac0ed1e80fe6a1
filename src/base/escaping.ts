/** Text that strangers chose, made harmless for whoever looks at it in a terminal. */

/**
 * JSON that says the same without any character that could move a cursor, hide or reorder text. JSON itself escapes
 * those below a space.
 */
export function escapeJson(json: string): string {
  return json.replace(/[\u007f-\u009f\p{Cf}\u2028\u2029]/gu, escapeUnits);
}

/** As JSON writes what it must not hold as it is. */
function escapeUnits(character: string): string {
  return character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}
