/** What the pages say of files, tests and one another is there. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { PAGES, readPage } from "../../support/pages.ts";
import { ROOT } from "../../support/root.ts";

describe.each(PAGES)("%s", (page) => {
  const text = readPage(page);

  test("links to what there is", () => {
    const links = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, target]) => target ?? "");
    const local = links.filter((target) => !/^[a-z]+:/.test(target));
    expect(local.filter((target) => !existsSync(join(ROOT, dirname(page), target)))).toEqual([]);
  });

  test("links to headings that there are", () => {
    const links = [...text.matchAll(/\]\(([^)#\s:]*)#([^)\s]+)\)/g)];
    const wrong = links.filter(([, target = "", anchor = ""]) => {
      const other = target === "" ? page : join(dirname(page), target);
      return !anchorsOf(other).includes(anchor);
    });
    expect(wrong.map(([link]) => link)).toEqual([]);
  });
});

test("every invariant in docs/design.md is named by the tests that it names", () => {
  const page = readPage("docs/design.md");
  const rows = [...page.matchAll(/^\| (I\d [a-z ]+?) \|.*\| ([^|]+) \|$/gm)];
  expect(rows).toHaveLength(8);
  for (const [, name = "", shown = ""] of rows) {
    const files = [...shown.matchAll(/\(\.\.\/(test\/[^)]+)\)/g)].map(([, file]) => file ?? "");
    expect(files.length).toBeGreaterThan(0);
    for (const file of files) expect(readFileSync(join(ROOT, file), "utf8"), file).toContain(name);
  }
});

/** As GitHub makes them from headings. */
function anchorsOf(page: string): string[] {
  const headings = [...readPage(page).matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading ?? "");
  return headings.map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} -]/gu, "")
      .replaceAll(" ", "-"),
  );
}
