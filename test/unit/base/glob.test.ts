import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesGlob } from "../../../src/base/glob.ts";

describe("a pattern for addresses", () => {
  test("means what it says, however stars and characters are mixed", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", "👍", "\ud800"), maxLength: 12 });
    fc.assert(
      fc.property(text, text, (one, other) => {
        expect(matchesGlob(one, other)).toBe(fits([...one], [...other]));
      }),
      { numRuns: 20_000 },
    );
  });

  // A test that takes for ever fails.
  test("is soon done with, whatever a sender calls itself", () => {
    for (const glob of ["*orders*@*supplier*.example", "*a*a*a*a*a*a*a*a*b"]) {
      for (const piece of ["orders@supplier", "a", "orders", "@supplier."]) {
        expect(matchesGlob(piece.repeat(10_000), glob)).toBe(false);
      }
    }
  });
});

/** Worked out by trying everything. */
function fits(text: readonly string[], [first, ...pattern]: readonly string[]): boolean {
  if (first === undefined) return text.length === 0;
  if (first === "*") return text.some((_, at) => fits(text.slice(at), pattern)) || fits([], pattern);
  const [character, ...rest] = text;
  return character !== undefined && (first === "?" || first === character) && fits(rest, pattern);
}
