/** Writes tables into a page, each between two comments that mark its place. */

/** Throws if the page has no place for a table. Places without a new table stay unchanged. */
export function fillPlaces(page: string, tables: Readonly<Record<string, string>>, name: string): string {
  let filled = page;
  for (const [place, table] of Object.entries(tables)) {
    const [begin, end] = [`<!-- figures: ${place} -->\n`, "<!-- end of figures -->"];
    const from = filled.indexOf(begin) + begin.length;
    const to = filled.indexOf(end, from);
    if (from < begin.length || to < 0) throw new Error(`${name} has no place for the table ${place}`);
    filled = `${filled.slice(0, from)}${table}\n${filled.slice(to)}`;
  }
  return filled;
}
