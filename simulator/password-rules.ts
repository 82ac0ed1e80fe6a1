/** The rules of transfer passwords: checks them, and generates passwords that fulfil all. */
import { ScenarioError } from "./errors.ts";
import type { PasswordRules } from "./scenario.ts";
import { deriveBytes } from "./seeded.ts";

type RuleName = keyof PasswordRules;

/** A rule as the service shows it. */
export interface Rule {
  readonly name: RuleName;
  readonly details: Readonly<Record<string, unknown>>;
}

/** The active rules. */
export function listRules(rules: PasswordRules): readonly Rule[] {
  const active = (Object.keys(BREAKS) as RuleName[]).filter((name) => rules[name] !== undefined);
  return active.map((name) => ({ name, details: describeDetails(name, rules) }));
}

/** The active rules that a password breaks. */
export function brokenRules(password: string, rules: PasswordRules): readonly Rule[] {
  return listRules(rules).filter(({ name }) => BREAKS[name](password, rules));
}

/** A password that fulfils the rules; equal for equal seeds and labels. Throws a ScenarioError if it finds none. */
export function generatePassword(rules: PasswordRules, seed: number, label: string): string {
  const { minimumLengthRequired: atLeast = 0, maximumLengthRequired: atMost = Number.POSITIVE_INFINITY } =
    rules;
  const length = Math.min(Math.max(atLeast, PREFERRED_LENGTH), atMost);
  const allowed = [...GENERATED_CHARACTERS].filter(
    (character) => !blockedCharacters(rules).includes(character),
  );
  for (let attempt = 0; attempt < ATTEMPTS && allowed.length > 0; attempt += 1) {
    const bytes = deriveBytes(seed, `password ${label} ${attempt}`, length);
    const password = Array.from(bytes, (byte) => allowed[byte % allowed.length]).join("");
    if (brokenRules(password, rules).length === 0) return password;
  }
  throw new ScenarioError("passwordRules: no password fulfils all of them");
}

const PREFERRED_LENGTH = 14;
const ATTEMPTS = 2000;
/** Includes characters with a meaning in URLs, which expose a client that does not encode them. */
const GENERATED_CHARACTERS = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789+%&=#/?!$-_.";

/** Whether a password breaks each rule, in the order of the interface. */
const BREAKS: Readonly<Record<RuleName, (password: string, rules: PasswordRules) => boolean>> = {
  whitespacesDeclined: (password) => /\s/u.test(password),
  alphabeticalSequenceDeclined: (password) => hasRunOf(password, ["abcdefghijklmnopqrstuvwxyz"], 3),
  numericSequenceDeclined: (password) => hasRunOf(password, ["0123456789"], 3),
  keyboardSequenceDeclined: (password) => hasRunOf(password, KEYBOARD_ROWS, 4),
  blacklistedCharactersDeclined: (password, rules) =>
    [...blockedCharacters(rules)].some((character) => password.includes(character)),
  repeatedCharactersDeclined: (password) => /(.)\1/su.test(password),
  dictionaryWordsDeclined: (password) => WORDS.some((word) => password.toLowerCase().includes(word)),
  minimumLengthRequired: (password, rules) => lengthOf(password) < (rules.minimumLengthRequired ?? 0),
  maximumLengthRequired: (password, rules) =>
    lengthOf(password) > (rules.maximumLengthRequired ?? Number.POSITIVE_INFINITY),
  lettersRequired: (password) => !/\p{L}/u.test(password),
  digitsRequired: (password) => !/\p{Nd}/u.test(password),
  specialCharactersRequired: (password) => !/[^\p{L}\p{Nd}\s]/u.test(password),
  upperCaseRequired: (password) => !/\p{Lu}/u.test(password),
  lowerCaseRequired: (password) => !/\p{Ll}/u.test(password),
};

const KEYBOARD_ROWS = ["qwertyuiop", "qwertzuiop", "asdfghjkl", "zxcvbnm", "yxcvbnm", "1234567890"];

const WORDS = [
  "admin",
  "dragon",
  "football",
  "geheim",
  "hallo",
  "hello",
  "letmein",
  "master",
  "monkey",
  "passwort",
  "password",
  "qwerty",
  "secret",
  "sommer",
  "summer",
  "welcome",
  "willkommen",
  "winter",
];

const OFTEN_BLOCKED = "<>\"'`\\";

function describeDetails(name: RuleName, rules: PasswordRules): Readonly<Record<string, unknown>> {
  if (name === "minimumLengthRequired") return { length: rules.minimumLengthRequired };
  if (name === "maximumLengthRequired") return { length: rules.maximumLengthRequired };
  if (name === "blacklistedCharactersDeclined") return { characters: blockedCharacters(rules) };
  return {};
}

function blockedCharacters({ blacklistedCharactersDeclined: blocked = "" }: PasswordRules): string {
  return blocked === true ? OFTEN_BLOCKED : blocked;
}

/** Whether the password has `length` consecutive characters of a row, forwards or backwards, case-insensitive. */
function hasRunOf(password: string, rows: readonly string[], length: number): boolean {
  const text = password.toLowerCase();
  return rows
    .flatMap((row) => [row, [...row].reverse().join("")])
    .flatMap((row) => Array.from({ length: row.length - length + 1 }, (_, at) => row.slice(at, at + length)))
    .some((run) => text.includes(run));
}

function lengthOf(password: string): number {
  return [...password].length;
}
