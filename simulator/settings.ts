/** A scenario with all defaults filled in. */
import type { CsvStyle, LanguagePackPlan, PasswordRules, Scenario } from "./scenario.ts";
import { deriveText } from "./seeded.ts";

export type Settings = Readonly<ReturnType<typeof settingsOf>>;

export interface Version {
  readonly major: number;
  readonly minor: number;
}

export function settingsOf(scenario: Scenario) {
  const seed = scenario.seed ?? 1;
  const { ignoresFileIds = false } = scenario;
  const { limit = 5, reaction = "delete", lockSeconds = 600 } = scenario.wrongPasswords ?? {};
  const [major = 1, minor = 15] = (scenario.apiVersion ?? "1.15").split(".").map(Number);
  const version: Version = { major, minor };
  return {
    seed,
    version,
    clientId: scenario.clientId ?? deriveText(seed, "registered client", 64),
    tokenMs: (scenario.tokenSeconds ?? 86_400) * 1000,
    tokenLimit: scenario.tokenLimit,
    wrongPasswords: { limit, reaction, lockMs: lockSeconds * 1000 },
    retentionMs: (scenario.retentionDays ?? 30) * 86_400_000,
    maxPageSize: scenario.maxPageSize ?? 100,
    csv: { ...DEFAULT_CSV, ...scenario.csv },
    passwordRules: scenario.passwordRules ?? DEFAULT_RULES,
    languagePacks: scenario.languagePacks ?? DEFAULT_PACKS,
    oldPaths: scenario.oldPaths ?? false,
    showsMessage: scenario.showsMessage ?? true,
    otherFields: scenario.otherFields ?? "select",
    refusedFields: scenario.refusedFields ?? [],
    ignoresActive: scenario.ignoresActive ?? false,
    ignoresFileIds,
    threshold: scenario.threshold,
    wholeThreshold: scenario.wholeThreshold ?? false,
    sessionLinks: scenario.sessionLinks ?? false,
    codesPerAddress: scenario.codesPerAddress ?? Number.POSITIVE_INFINITY,
    noPassword: scenario.noPassword ?? "link",
  };
}

export function isAtLeast(version: Version, other: Version): boolean {
  return version.major === other.major ? version.minor >= other.minor : version.major > other.major;
}

const DEFAULT_CSV: Required<CsvStyle> = {
  delimiter: ",",
  quote: "minimal",
  byteOrderMark: false,
  charset: "utf-8",
  announceCharset: true,
  lineEnd: "\r\n",
  subject: "shown",
};

const DEFAULT_RULES: PasswordRules = {
  minimumLengthRequired: 12,
  maximumLengthRequired: 128,
  lettersRequired: true,
  digitsRequired: true,
  specialCharactersRequired: true,
  upperCaseRequired: true,
  lowerCaseRequired: true,
  whitespacesDeclined: true,
  numericSequenceDeclined: true,
  dictionaryWordsDeclined: true,
};

const DEFAULT_PACKS: readonly LanguagePackPlan[] = [
  pack("en-US", "English (United States)", "2.1", "2025-03-04T09:30:00+00:00", "Welcome"),
  pack("de-DE", "Deutsch (Deutschland)", "2.1", "2025-03-04T09:30:00+00:00", "Willkommen"),
  pack("en-US", "English (United States)", "3.0", null, "Welcome back"),
  pack("de-DE", "Deutsch (Deutschland)", "3.0", null, "Willkommen zurück"),
];

function pack(
  locale: string,
  displayName: string,
  version: string,
  lastChangeTimestamp: string | null,
  greeting: string,
): LanguagePackPlan {
  const language = locale.slice(0, 2);
  const files = {
    [`messages_${language}.properties`]: `greeting=${greeting}\n`,
    [`terms_${locale}.html`]: `<!doctype html>\n<title>${greeting}</title>\n`,
    "license.txt": "Invented for the simulated service.\n",
  };
  return { locale, displayName, version, lastChangeTimestamp, files };
}
