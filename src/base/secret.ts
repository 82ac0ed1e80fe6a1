/** A value that must not be shown: it prints, serialises and inspects as a placeholder. */
import { inspect } from "node:util";

const PLACEHOLDER = "[secret]";

export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
  }

  /** The value itself, for the code that has to send it. */
  reveal(): string {
    return this.#value;
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

/** Describes a password that no service accepts; `undefined` for any other. */
export function describeWrongPassword(password: Secret): string | undefined {
  return /[\r\n]/.test(password.reveal())
    ? "has several lines: keep only the line with the password"
    : undefined;
}

/** Names the blanks around a password, which are usually a mistake; `undefined` if there are none. */
export function describeOuterBlanks(password: Secret): string | undefined {
  if (password.reveal().trim() === password.reveal()) return undefined;
  return "begins or ends with a blank, which is sent as part of the password: if that is wrong, remove it";
}

/**
 * Replaces every secret in a text from outside. If a secret appears in another spelling (partly encoded, or in another
 * case), the whole text is replaced.
 */
export function scrub(text: string, secrets: readonly Secret[]): string {
  const values = secrets.map((secret) => secret.reveal()).filter((value) => value.trim() !== "");
  const spellings = values
    .flatMap((value) => [value, encodeURIComponent(value.toWellFormed()), value.trim()])
    .toSorted((a, b) => b.length - a.length);
  const scrubbed = spellings.reduce((rest, spelling) => rest.replaceAll(spelling, PLACEHOLDER), text);
  const bare = bareText(scrubbed);
  // Shorter values occur in any text by chance.
  return values.some((value) => value.length >= 4 && bare.includes(bareText(value))) ? PLACEHOLDER : scrubbed;
}

/** Decodes percent encoding and character references, in lower case. Each character stands for a byte, as in `%c3%a4`. */
function bareText(text: string): string {
  const bytesOf = (piece: string) => Buffer.from(piece).toString("latin1");
  const character = (code: number) => (code <= 0x10ffff ? bytesOf(String.fromCodePoint(code)) : " ");
  return bytesOf(text.toLowerCase())
    .replace(/&#x([0-9a-f]{1,6});/g, (_, digits: string) => character(Number.parseInt(digits, 16)))
    .replace(/&#(\d{1,7});/g, (_, digits: string) => character(Number(digits)))
    .replace(/%([0-9a-f]{2})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)))
    .toLowerCase();
}

/** The source of a secret. It is read each time, so that a changed secret is used at once. */
export interface SecretSource {
  /** For messages: `file /run/secrets/supplier`. Never the secret itself. */
  readonly described: string;
  /** Throws `SECRET_UNREADABLE`. */
  read(signal: AbortSignal): Promise<Secret>;
}
