/** The forms in which texts of senders are compared, and patterns for them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  addressForm,
  fileNameForm,
  makeMatcher,
  matchesGlob,
  textForm,
} from "../../../src/base/normal-form.ts";

const FORMS = Object.entries({ textForm, fileNameForm, addressForm });
/** Ideographs and characters for private use have only one spelling. */
const CHARACTERS = Array.from({ length: 0x110000 }, (_, code) => String.fromCodePoint(code)).filter(
  (character) => /(?!\p{Unified_Ideograph}|\p{Co}|\p{Cs})\p{Assigned}/u.test(character),
);
/** The others have one spelling alone, and in texts of ten. */
const SPELLED = CHARACTERS.filter((character) => respell(character).some((other) => other !== character));
const TENS = CHARACTERS.flatMap((_, at) => (at % 10 === 0 ? [CHARACTERS.slice(at, at + 10).join("a")] : []));
const text = fc.oneof(
  fc.string({
    unit: fc.constantFrom(..."aAeßΣς .。・¨´…İı\u0301\u0345\u3099ｶﾞ\u00a0\u200b\t\u2800*?@"),
    maxLength: 12,
  }),
  fc.string({ unit: "binary" }),
  fc.string({ unit: "grapheme" }),
);

test.each(FORMS)(
  "the normal form stays the same if it is made again, and ignores case and Unicode form (%s)",
  (_, form) => {
    const changed = SPELLED.filter((character) => {
      const own = form(`a${character}b`);
      return respell(`a${character}b`).some((other) => form(other) !== own);
    });
    expect([changed, TENS.map(form).filter((own = "") => form(own) !== own)]).toEqual([[], []]);
    fc.assert(
      fc.property(text, (given) => {
        const own = form(given) ?? "";
        for (const other of [own, ...respell(given)]) expect(form(other)).toBe(own);
      }),
      { numRuns: 500 },
    );
  },
);

test.each(FORMS)(
  "the normal form ignores invisible and control characters, wherever they are (%s)",
  (_, form) => {
    const invisible = CHARACTERS.filter((it) =>
      /[\p{Default_Ignorable_Code_Point}\p{Cf}]|(?!\s)\p{Cc}/u.test(it),
    );
    expect(
      invisible.filter(
        (it) => form(`${it}a${it}\u0345${it}\u0301.${it}ｶ${it}ﾞ${it}`) !== form("a\u0345\u0301.ｶﾞ"),
      ),
    ).toEqual([]);
    fc.assert(
      fc.property(text, fc.array(fc.constantFrom("", ...invisible), { minLength: 1 }), (given, added) => {
        const other = [...given].map((character, at) => character + added[at % added.length]).join("");
        expect(form(added[0] + other)).toBe(form(given));
      }),
      { numRuns: 500 },
    );
  },
);

test.each([
  [textForm, "  Two \u00a0\n words\u3000", "two words"],
  [textForm, "\ufeffZero\u200bwidth\u00ad, \u202egpj\u202c \u0000\u009b\ufe0f", "zerowidth, gpj"],
  [textForm, "ＷＩＤＥ ﬁ ｶﾞ", "wide fi ガ"],
  [textForm, "ΟΔΟΣ ΣΑΣ", "οδοσ σασ"],
  [textForm, "STRAẞE straße", "strasse strasse"],
  [textForm, "Gro\u0308sse", "grösse"],
  [textForm, "unknown \u0378 \ue000", "unknown \u0378 \ue000"],
  [textForm, " . ", "."],
  [fileNameForm, "Evil.EXE. . .", "evil.exe"],
  [fileNameForm, "evil . exe", "evil.exe"],
  [fileNameForm, "evil․exe…", "evil.exe"],
  [fileNameForm, " .exe", ".exe"],
  [fileNameForm, "two words.txt", "two words.txt"],
  [fileNameForm, "...", ""],
  [addressForm, " Anna @ supplier.example. ", "anna@supplier.example"],
  [addressForm, "ａnna＠supplier．example", "anna@supplier.example"],
  [addressForm, "anna@supplier。example｡", "anna@supplier.example"],
  [addressForm, "*@*.Example", "*@*.example"],
])("the normal form %o of %j is %j", (form, given, expected) => {
  expect(form(given)).toBe(expected);
});

test.each(FORMS)("the normal form is missing for half a character (%s)", (_, form) => {
  expect(["\ud800", "a\udfff", "\udc00\ud800"].map(form)).toEqual([undefined, undefined, undefined]);
});

test("a matcher compares forms: `*` and `?` stay special, also in full width", () => {
  const matches = makeMatcher("Ｐart-？.＊", fileNameForm);
  expect(["part-1.pdf", "PART-\u200b1.pdf."].filter(matches)).toHaveLength(2);
  expect(["part-.pdf", "part-12.pdf"].filter(matches)).toEqual([]);
});

test("a matcher matches every text without a pattern, and no text or pattern without a form", () => {
  expect(makeMatcher(undefined, textForm)("\ud800")).toBe(true);
  expect(makeMatcher("*", textForm)("\ud800")).toBe(false);
  expect(makeMatcher("*\ud800", textForm)("a")).toBe(false);
});

function respell(given: string): string[] {
  const forms = (["NFKD", "NFKC", "NFD", "NFC"] as const).map((form) => given.normalize(form));
  // The mark for iota becomes a letter in upper case, so other marks would move.
  const [decomposed = ""] = forms;
  const upper = decomposed.replace(/\P{M}+/gu, (letters) => letters.toUpperCase());
  return [upper, decomposed.toLowerCase(), ...forms];
}

test("a pattern for addresses means what it says, however stars and characters are mixed", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "*", "?", "👍", "\ud800"), maxLength: 12 });
  fc.assert(
    fc.property(text, text, (one, other) => {
      expect(matchesGlob(one, other)).toBe(fits([...one], [...other]));
    }),
    { numRuns: 5_000 },
  );
});

// A test that takes for ever fails.
test("a pattern for addresses is soon done with, whatever a sender calls itself", () => {
  for (const glob of ["*orders*@*supplier*.example", "*a*a*a*a*a*a*a*a*b"]) {
    for (const piece of ["orders@supplier", "a", "orders", "@supplier."]) {
      expect(matchesGlob(piece.repeat(10_000), glob)).toBe(false);
    }
  }
});

/** Worked out by trying everything. */
function fits(text: readonly string[], [first, ...pattern]: readonly string[]): boolean {
  if (first === undefined) return text.length === 0;
  if (first === "*") return text.some((_, at) => fits(text.slice(at), pattern)) || fits([], pattern);
  const [character, ...rest] = text;
  return character !== undefined && (first === "?" || first === character) && fits(rest, pattern);
}
