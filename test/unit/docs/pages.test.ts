/** What the pages say of files, tests and one another is there. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "../../support/root.ts";

const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  ...readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path)),
];

describe.each(PAGES)("%s", (page) => {
  const text = readFileSync(join(ROOT, page), "utf8");

  test("links to what there is", () => {
    const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target]) => target ?? "");
    const local = links.filter((target) => !/^[a-z]+:/.test(target));
    expect(local.filter((target) => !existsSync(join(ROOT, dirname(page), target)))).toEqual([]);
  });
});

test("every invariant in docs/design.md is named by the tests that it names", () => {
  const page = readFileSync(join(ROOT, "docs/design.md"), "utf8");
  const rows = [...page.matchAll(/^\| (I\d [a-z ]+?) \|.*\| ([^|]+) \|$/gm)];
  expect(rows).toHaveLength(8);
  for (const [, name = "", shown = ""] of rows) {
    const files = [...shown.matchAll(/\(\.\.\/(test\/[^)]+)\)/g)].map(([, file]) => file ?? "");
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(readFileSync(join(ROOT, file), "utf8"), file).toContain(name);
  }
});
