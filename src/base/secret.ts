/** A value that must not be shown: it prints, serialises and inspects as a placeholder. */
import { inspect } from "node:util";

const PLACEHOLDER = "[secret]";

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself, for the one place that has to send it. */
  reveal(): string {
    return this.#value;
  }

  equals(other: Secret): boolean {
    return this.#value === other.#value;
  }

  toString(): string {
    return PLACEHOLDER;
  }

  toJSON(): string {
    return PLACEHOLDER;
  }

  [inspect.custom](): string {
    return PLACEHOLDER;
  }
}

/** Replaces every one of the secrets in a text that somebody else wrote, also where it stands URL-encoded. */
export function scrub(text: string, secrets: readonly Secret[]): string {
  const spellings = secrets
    .map((secret) => secret.reveal())
    .flatMap((value) => [value, encodeURIComponent(value.toWellFormed()), value.trim()])
    .filter((spelling) => spelling.length > 0)
    .toSorted((a, b) => b.length - a.length);
  return spellings.reduce((rest, spelling) => rest.replaceAll(spelling, PLACEHOLDER), text);
}
