/** Puts tables into the page for administrators. */
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { fillPlaces } from "../support/places.ts";

const PAGE = resolve(import.meta.dirname, "../../docs/scaling.md");

/** Tables by name. Those of cases that did not run stay as they are. */
export function writePage(tables: Readonly<Record<string, string>>): void {
  writeFileSync(PAGE, fillPlaces(readFileSync(PAGE, "utf8"), tables, "docs/scaling.md"));
}
