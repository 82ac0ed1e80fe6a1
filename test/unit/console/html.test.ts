import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { html } from "../../../src/console/html.ts";

describe("the HTML of the console", () => {
  test("escapes senders' text in elements and in attributes", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...`<>"'&;a\u2028`) }), (text) => {
        const made = String(html`<p title="${text}">${text}</p>`);
        expect(made.slice("<p title=".length, -"</p>".length)).not.toMatch(/<|'|"[^>]*"[^>]*"/);
        expect(made).toMatch(/^<p title="[^"<]*">[^<]*<\/p>$/);
      }),
    );
  });

  test("shows line breaks and direction marks as escapes", () => {
    expect(String(html`${"exe.\u202Efdp\n"}`)).toBe("exe.\\u202efdp\\u000a");
  });

  test("joins lists, skips missing values, and does not escape twice", () => {
    expect(String(html`<ul>${["a<b", "c"].map((it) => html`<li>${it}</li>`)}</ul>${undefined}${0}`)).toBe(
      "<ul><li>a&lt;b</li><li>c</li></ul>0",
    );
  });
});
