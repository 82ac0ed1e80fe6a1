/** The pages of the project, and the blocks of code in them. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./root.ts";

/** Paths from the project's root. */
export const PAGES: readonly string[] = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "CODE_OF_CONDUCT.md",
  "SECURITY.md",
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path))
    .toSorted(),
];

export interface Block {
  readonly page: string;
  /** The word behind the backquotes; empty without one. */
  readonly language: string;
  readonly text: string;
  /** The name in a comment above it, `<!-- run: NAME -->`: another test runs it. */
  readonly mark: string | undefined;
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

/** In the order of the page, without the indentation of a list. */
export function blocksOf(page: string): Block[] {
  const block = /(?:<!-- run: ([\w-]+) -->\n)?^( *)```(\w*)\n([\s\S]*?)^\2```$/gm;
  return [...readPage(page).matchAll(block)].map(([, mark, indent = "", language = "", text = ""]) => ({
    page,
    language,
    text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    mark,
  }));
}

/** Code within sentences and tables. */
export function inlineCodeOf(page: string): string[] {
  const prose = readPage(page).replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}
