/** HTML as a template: every value is text and is escaped, unless it is HTML that was made here. */

export class Html {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  toString(): string {
    return this.#text;
  }
}

type Value = string | number | Html | undefined | readonly Value[];

/** `undefined` is nothing, a list is its elements one after the other. */
export function html(literals: TemplateStringsArray, ...values: readonly Value[]): Html {
  return new Html(literals.reduce((text, literal, at) => `${text}${format(values[at - 1])}${literal}`));
}

function format(value: Value): string {
  if (value === undefined) return "";
  if (typeof value === "number" || value instanceof Html) return String(value);
  return typeof value === "string" ? escapeText(value) : value.map(format).join("");
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Control characters, and those that turn the direction of text around, are shown as what they are. */
function escapeText(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "")
    .replace(
      /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu,
      (character) => `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")}`,
    );
}
