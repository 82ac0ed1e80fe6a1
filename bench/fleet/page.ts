/** Puts tables into the page for administrators, each between the two comments that name its place. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

const PAGE = resolve(import.meta.dirname, "../../docs/scaling.md");

/** Tables by name. Those of cases that did not run stay as they are. */
export function writePage(tables: Readonly<Record<string, string>>): void {
  let page = readFileSync(PAGE, "utf8");
  for (const [name, table] of Object.entries(tables)) {
    const [begin, end] = [`<!-- figures: ${name} -->\n`, "<!-- end of figures -->"];
    const from = page.indexOf(begin) + begin.length;
    const to = page.indexOf(end, from);
    if (from < begin.length || to < 0) throw new Error(`docs/scaling.md has no place for the table ${name}`);
    page = `${page.slice(0, from)}${table}\n${page.slice(to)}`;
  }
  writeFileSync(PAGE, page);
}
